"""Cost of monitoring in a session: ``s.noise``."""

from pathlib import Path

from esjobs.core.report import RunReport
from esjobs.noise.budget import cost_sentences, keep_cost
from esjobs.noise.recorded import GATE
from esjobs.records.answer import Answer
from esjobs.records.context import Facade
from esjobs.store.checks import writes


class Noise(Facade):
    """Overhead of the collectors of monitoring data."""

    @writes
    def keep(self, collector: str, off: Path, on: Path, *, gate: float = GATE) -> tuple[Answer, RunReport]:
        """Measure and store the overhead of a collector: :func:`~esjobs.noise.budget.keep_cost`.

        ``s.tables.noise_costs()`` has the rows.
        """
        return keep_cost(self._context.store, collector, off, on, self._context.clock(), gate=gate)

    def sentences(self) -> tuple[str, ...]:
        """Return the overhead of every collector in words."""
        return cost_sentences(self._context.store)
