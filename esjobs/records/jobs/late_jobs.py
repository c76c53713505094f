"""Jobs that came to a day after its rows were made.

On a large day they get rows of their own, which are published beside the others: the day is not made again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class DaysMade:
    """Days with rows: ``fresh`` ones need nothing, those of ``late`` further rows; others are made again."""

    fresh: set[date] = field(default_factory=set)
    late: dict[date, LateJobs] = field(default_factory=dict)


def fingerprints_by_day(rows: Iterable[Mapping[str, Any]]) -> dict[date, set[str]]:
    """Return the fingerprints that rows name, by their day."""
    found: dict[date, set[str]] = defaultdict(set)
    for row in rows:
        found[row["day"]].add(row["fingerprint"])
    return dict(found)


def progress_of(
    store: JobStore,
    made: Mapping[date, AbstractSet[str]],
    now: Mapping[date, str],
    digest: Callable[[date, str], str],
) -> DaysMade:
    """Compare the rows of days with their jobs.

    ``made``: by day, the digests of its rows, one for each part. ``now``: the digest of each day; ``digest``
    returns that of a day from a fingerprint of its jobs. A day with late jobs alone had each digest of its
    rows after some load; corrected or withdrawn jobs leave none of those behind.

    Cost: one question if a day has changed, or rows in parts, to a store that knows its loads
    (:class:`Adding`).
    """
    found = DaysMade({day for day, digests in made.items() if digests == {now.get(day)}})
    left = {day for day in made.keys() & now.keys() if made[day]} - found.fresh
    if not left or not isinstance(store, Adding):
        return found
    for day, of_day in _loads_of(store, left).items():
        upto = _last_seen([digest(day, row["fingerprint"]) for row in of_day], made[day], now[day])
        # rows in parts, of which the last has seen all jobs
        if upto == len(of_day) - 1:
            found.fresh.add(day)
        elif upto is not None and (n_late := _few_late(of_day, upto, len(made[day]))) is not None:
            later = store.jobs_of_loads(of_day[upto]["load"], of_day[-1]["load"])
            found.late[day] = LateJobs(later, n_late)
    return found


def _last_seen(digests: Sequence[str], made: AbstractSet[str], now: str) -> int | None:
    """Return the number of the last load that the rows of a day have seen.

    None where jobs were corrected or withdrawn: then the last load does not lead to the jobs of now, or some
    row is of no earlier state.
    """
    last = {digest: number for number, digest in enumerate(digests)}
    if last.get(now) != len(digests) - 1 or not last.keys() >= made:
        return None
    return max(last[each] for each in made)


def _loads_of(store: Adding, days: AbstractSet[date]) -> dict[date, list[dict[str, Any]]]:
    """Return the fingerprints of days after each load, in the order of loads."""
    loads: dict[date, list[dict[str, Any]]] = defaultdict(list)
    for row in store.load_fingerprints(Window.of_days(min(days), max(days))).to_pylist():
        if row["day"] in days:
            loads[row["day"]].append(row)
    return loads


def _few_late(loads: Sequence[Mapping[str, Any]], upto: int, n_parts: int) -> int | None:
    """Return the jobs of a day that came after a load; None where making the day again is as cheap.

    ``n_parts``: parts that the rows of the day are in so far.
    """
    counts = [row["n_jobs"] for row in loads]
    n_jobs, n_late = sum(counts), sum(counts[upto + 1 :])
    few = n_parts <= _MOST_PARTS and n_late <= _MOST_LATE * n_jobs
    return n_late if few and n_jobs >= LARGE_DAY else None


def adding(store: JobStore) -> Adding:
    """Return a store in which :func:`progress_of` found late jobs."""
    assert isinstance(store, Adding), "only such a store has late jobs"  # noqa: S101
    return store
