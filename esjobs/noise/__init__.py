"""Overhead of monitoring: a test with MPI collectives, its statistics and programs."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability(
    "noise",
    facade=Lazy("esjobs.noise.facade:Noise"),
    offers={"noise.sentences": Lazy("esjobs.noise.budget:cost_sentences")},
)
