"""How well a centre provides its resources: waiting, losses, an index, effects."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability("provisioning", facade=Lazy("esjobs.provisioning.facade:Provisioning"))
