"""Jobs that came to a day after its rows were made.

On a large day they get rows of their own, which are published beside the others: the day is not made again.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from esjobs.core.window import Window
from esjobs.store.base import Adding, JobStore

LARGE_DAY = 10_000
"""Jobs of a day from which on late ones are added to it; a smaller one is made again as cheaply."""
# Late jobs of more parts, or a larger share, are as many rows as those of the day made again
_MOST_PARTS, _MOST_LATE = 8, 0.1


@dataclass(frozen=True)
class LateJobs:
    """Late jobs of a day. ``store``: the same store, as if it had no others."""

    store: JobStore
    n_jobs: int


def late_jobs(
    store: JobStore, made: Mapping[date, Collection[str]], digest: Callable[[date, str], str]
) -> dict[date, LateJobs]:
    """Return the late jobs of those days on which nothing else changed since their rows were made.

    ``made``: by day, the digests of its rows, one for each part. ``digest``: that of a day, from a
    fingerprint of its jobs. Days with corrected or withdrawn jobs are left out: no fingerprint of earlier
    loads is theirs. One question to a store that knows the order of its loads (:class:`Adding`).
    """
    days = {day for day, digests in made.items() if 0 < len(digests) <= _MOST_PARTS}
    if not days or not isinstance(store, Adding):
        return {}
    loads: dict[date, list[dict[str, Any]]] = defaultdict(list)
    for row in store.load_fingerprints(Window.of_days(min(days), max(days))).to_pylist():
        if row["day"] in days:
            loads[row["day"]].append(row)
    found = {}
    for day, of_day in loads.items():
        last = {digest(day, row["fingerprint"]): number for number, row in enumerate(of_day)}
        if not last.keys() >= set(made[day]):
            continue
        upto = max(last[each] for each in made[day])
        n_jobs, n_late = (sum(row["n_jobs"] for row in rows) for rows in (of_day, of_day[upto + 1 :]))
        if n_jobs >= LARGE_DAY and 0 < n_late <= _MOST_LATE * n_jobs:
            found[day] = LateJobs(store.jobs_after(of_day[upto]["load"]), n_late)
    return found


def adding(store: JobStore) -> Adding:
    """Return a store that :func:`late_jobs` found late jobs in."""
    assert isinstance(store, Adding), "only such a store has late jobs"  # noqa: S101
    return store
