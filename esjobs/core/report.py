"""Report of a step: rows in, rows out, rows dropped by reason, seconds."""

from dataclasses import dataclass, field
from html import escape

from esjobs.core.text import visible


@dataclass(frozen=True, repr=False)
class RunReport:
    """Report that every step prints and stores in ``runs``.

    ``rows_in`` and ``rows_out`` count ``rows_are`` and ``rows_become``; ``dropped``: by reason; ``counts``:
    other numbers.
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
    fruitless: bool = False
    """True of a load whose rows were all refused for what they are; superseded ones are not refused so."""

    @property
    def n_dropped(self) -> int:
        """Sum over all reasons."""
        return sum(self.dropped.values())

    @property
    def headline(self) -> str:
        """Report in one line.

        >>> RunReport("fit", "d5f6", 59, 220, 0.2, rows_are="buckets", rows_become="factor rows").headline
        'fit: 59 buckets, 220 factor rows, 0.2 s (d5f6)'
        """
        text = f"{self.step}: {self.rows_in:,} {self.rows_are}"
        # a load: its balance in one line
        if "stored" in self.counts and self.rows_become == "rows":
            text += f" = {self.counts['stored']:,} stored + {self.counts['updated']:,} updated"
            if self.counts.get("unchanged"):
                text += f" (of them {self.counts['unchanged']:,} unchanged)"
            text += f" + {self.n_dropped:,} rejected"
        else:
            text += f", {self.rows_out:,} {self.rows_become}"
        where = f" [{self.window}]" if self.window else ""
        return f"{text}, {self.seconds:.1f} s{where} ({self.run})"

    def __repr__(self) -> str:
        return f"<{self.headline}>"

    def _repr_html_(self) -> str:
        """Return the complete report for notebooks."""
        rows = [("dropped", count, reason) for reason, count in self.dropped.items()]
        rows += [("", count, name) for name, count in self.counts.items()]
        cells = "".join(
            f"<tr><td>{what}</td><td>{count:,}</td><td>{escape(visible(name))}</td></tr>"
            for what, count, name in rows
        )
        notes = "".join(f"<p>{escape(visible(note))}</p>" for note in self.notes)
        return f"<p>{escape(visible(self.headline))}</p><table>{cells}</table>{notes}"
