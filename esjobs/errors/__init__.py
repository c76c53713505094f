"""Lost work by reason, and nodes on which jobs fail."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability(
    "errors",
    sections=(("errors", Lazy("esjobs.errors.settings:ErrorsSettings")),),
    facade=Lazy("esjobs.errors.facade:Errors"),
)
"""Lost work and nodes in a session: ``s.errors``."""
