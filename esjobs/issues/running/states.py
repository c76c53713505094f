"""States of findings in running jobs from look to look. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

Row = dict[str, Any]
Key = tuple[str, str, str]

_KEPT = timedelta(days=7)  # after the end, so that people can look
_LOOKS = 2  # in a row before anybody is warned
_NEW: Row = {"n_looks": 0, "warned_at": None, "hook_at": None, "hook_error": None}


@dataclass(frozen=True)
class Look:
    """Answers of one look by (source, job, rule).

    ``found``: rows of flagged ones; ``cleared``: seen and not flagged; others were not seen. ``running``: the
    jobs by (source, id), with the end of their time limit.
    """

    found: Mapping[Key, Row]
    cleared: Collection[Key]
    running: Mapping[tuple[str, str], datetime | None]


def advanced(rows: Iterable[Row], look: Look, now: datetime) -> list[Row]:
    """Return the rows of ``running_issues`` after a look.

    Flagged twice in a row is a warning, one per job and rule, and none in the last half hour before the time
    limit. A finding that was not seen stays as it is; one that is over or whose job is gone ends, and leaves
    after a week; without a warning at once.
    """
    after: list[Row] = []
    before = {_key(row): row for row in rows}
    for key, row in before.items():
        job = key[:2]
        # written below, with its new numbers
        if key in look.found:
            continue
        # not seen now: an exporter may be silent, so nothing is over
        if job in look.running and key not in look.cleared:
            after.append(row)
        elif row["warned_at"] is not None and now - (row["ended_at"] or now) <= _KEPT:
            after.append({**row, "ended_at": row["ended_at"] or now, "n_looks": 0})
    for key, row in look.found.items():
        old = before.get(key, _NEW | {"first_seen": now})
        after.append({**row, **_seen_again(old, look.running[key[:2]], now)})
    return sorted(after, key=_key)


def _seen_again(old: Row, end: datetime | None, now: datetime) -> dict[str, Any]:
    n_looks, warned = old["n_looks"] + 1, old["warned_at"]
    if warned is None and n_looks >= _LOOKS and (end is None or end - now >= timedelta(minutes=30)):
        warned = now
    kept = {name: old[name] for name in ("first_seen", "hook_at", "hook_error")}
    return {**kept, "last_seen": now, "n_looks": n_looks, "warned_at": warned, "ended_at": None}


def due_for_hook(rows: Iterable[Row], now: datetime, after: timedelta) -> list[Row]:
    """Return the rows whose warning is ``after`` old, still flagged and without a call of the hook."""
    waiting = (row for row in rows if row["last_seen"] == now and row["hook_at"] is None)
    return [row for row in waiting if row["warned_at"] is not None and now - row["warned_at"] >= after]


def _key(row: Mapping[str, Any]) -> Key:
    return row["source"], row["job_id"], row["rule"]
