"""Delivered work: core-hours times the declared and the measured score per core."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability(
    "delivered",
    sections=(("delivered", Lazy("esjobs.delivered.settings:DeliveredSettings")),),
    facade=Lazy("esjobs.delivered.facade:Delivered"),
    offers={"delivered.measured": Lazy("esjobs.delivered.scores:measured_scores")},
)
