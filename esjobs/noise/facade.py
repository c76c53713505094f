"""Cost of monitoring in a session: ``s.noise``."""

from pathlib import Path
from typing import TYPE_CHECKING

from esjobs.core.report import RunReport
from esjobs.noise.budget import cost_sentences, keep_cost
from esjobs.noise.recorded import GATE
from esjobs.records.context import Facade
from esjobs.store.checks import writes

if TYPE_CHECKING:
    from esjobs.noise.analysis import Told


class Noise(Facade):
    """Cost of the collectors of monitoring data."""

    @writes
    def keep(self, collector: str, off: Path, on: Path, *, gate: float = GATE) -> "tuple[Told, RunReport]":
        """Compare runs without and with a collector: :func:`~esjobs.noise.budget.keep_cost`.

        ``s.tables.noise_costs()`` has the rows.
        """
        return keep_cost(self._context.store, collector, off, on, self._context.clock(), gate=gate)

    def sentences(self) -> tuple[str, ...]:
        """Cost of every collector in words: :func:`~esjobs.noise.budget.cost_sentences`."""
        return cost_sentences(self._context.store)
