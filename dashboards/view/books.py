"""The books of a run: jobs in = binned + dropped by reason, and what the fit left out of the binned ones."""

from collections import defaultdict
from dataclasses import dataclass

from dashboards.view.rows import Row
from esjobs.core.rules import CleaningRules


@dataclass(frozen=True)
class Books:
    """Counts of jobs over the days of a window.

    ``dropped``: reason and jobs, in the published order of the rules. ``notes``: counts of jobs that are also
    binned, such as those whose state is unknown. ``jobs_in``: an independent count of the jobs in the window,
    or ``None`` when there is none. ``days``: day, binned, dropped.
    """

    binned: int
    dropped: tuple[tuple[str, int], ...]
    notes: tuple[tuple[str, int], ...]
    jobs_in: int | None
    days: tuple[tuple[str, int, int], ...]

    @property
    def n_dropped(self) -> int:
        """Jobs dropped for any reason."""
        return sum(jobs for _, jobs in self.dropped)

    @property
    def accounted(self) -> int:
        """Jobs that are either binned or dropped."""
        return self.binned + self.n_dropped

    @property
    def missing(self) -> int:
        """Jobs of the independent count that the books do not hold; 0 when they balance or none was made."""
        return 0 if self.jobs_in is None else self.jobs_in - self.accounted


def books_of(days: list[Row], jobs_in: int | None = None) -> Books:
    """Add up the rows of the ``days`` table; ``jobs_in`` is counted independently of them."""
    by_kind: dict[str, dict[str, int]] = {kind: defaultdict(int) for kind in ("binned", "dropped", "note")}
    by_day: dict[str, dict[str, int]] = defaultdict(lambda: {"binned": 0, "dropped": 0})
    for row in days:
        kind, jobs = row["kind"], int(row["n_jobs"] or 0)
        by_kind.setdefault(kind, defaultdict(int))[row["outcome"]] += jobs
        if kind in {"binned", "dropped"}:
            by_day[str(row["day"])[:10]][kind] += jobs
    # the order in which rules are applied: the first that a job fails has it
    order = {rule.reason: place for place, rule in enumerate(CleaningRules().drops())}
    return Books(
        binned=sum(by_kind["binned"].values()),
        dropped=tuple(sorted(by_kind["dropped"].items(), key=lambda item: order.get(item[0], len(order)))),
        notes=tuple(by_kind["note"].items()),
        jobs_in=jobs_in,
        days=tuple((day, jobs["binned"], jobs["dropped"]) for day, jobs in sorted(by_day.items())),
    )
