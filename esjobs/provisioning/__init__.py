"""Service quality of a centre: waiting, losses, an index, effects."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability("provisioning", facade=Lazy("esjobs.provisioning.facade:Provisioning"))
