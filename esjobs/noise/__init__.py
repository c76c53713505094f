"""What monitoring costs: a test with collective operations of MPI, its statistics, and its two programs."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability(
    "noise",
    facade=Lazy("esjobs.noise.facade:Noise"),
    offers={"noise.sentences": Lazy("esjobs.noise.budget:cost_sentences")},
)
