"""What monitoring costs: a test with collective operations of MPI, its statistics, and its two programs."""

from esjobs.core.capability import Capability

CAPABILITY = Capability("noise")
