"""What a step did: rows in, rows out, rows dropped by reason, seconds."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RunReport:
    """The account that every step gives of itself; printed by the command line and stored in ``runs``.

    ``rows_in`` and ``rows_out`` count what the step consumes (``rows_are``) and produces (``rows_become``);
    ``dropped`` counts what it left out, by reason, and ``counts`` whatever else a reader asks for
    (stored, updated, jobs whose state is unknown, ...).
    """

    step: str
    run: str
    rows_in: int
    rows_out: int
    seconds: float
    rows_are: str = "rows"
    rows_become: str = "rows"
    dropped: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    window: str | None = None

    @property
    def n_dropped(self) -> int:
        """The sum over all reasons."""
        return sum(self.dropped.values())
