"""A field map held against the jobs' index as it is, and what each difference costs."""

from collections.abc import Mapping
from dataclasses import dataclass

from esjobs.core.fields import field
from esjobs.store.base import FieldState, JobStore

_NO_BUCKETS = "no job enters a bucket: no factors, no verdicts"
COSTS: Mapping[str, str] = {
    "job_id": "jobs have no identity: nothing works",
    "queue": "no job has a queue: nothing works",
    "end_time": "no job has a day: nothing works",
    "task_id": _NO_BUCKETS,
    "events": _NO_BUCKETS,
    "cores": _NO_BUCKETS,
    "cpu_s": _NO_BUCKETS,
    "wall_s": _NO_BUCKETS,
    "cpu_raw": "no factors of CPU models",
    "processing_type": "no factors by processing type, and no type is excluded",
    "transformation": "mixed tasks cannot be split, only excluded",
    "state": "failed and finished jobs cannot be separated; all count as state unknown",
    "hs06_s": "declared corepower from imports only",
    "source": "sources cannot be separated",
}
"""Results that are missing without a field; without any other one, only queries of it."""
_UNDATED = "these documents belong to no day and are not counted"
OK, MISSING, FAILED = "ok", "missing", "failed"
"""Outcomes of checks of ``esjobs doctor``: nothing to do; results lack something; nothing works."""
_ORDER = (FAILED, MISSING, OK)
_SLOWER = "same numbers, but each question that requires it reads all documents of the window"


@dataclass(frozen=True)
class CheckedField:
    """A field, its name and state in the index, and the cost of that state (empty: none).

    ``check``: in the words of ``esjobs doctor``; an absent field that no result needs is ok.
    """

    field: str
    foreign: str
    state: str
    type: str
    needed: bool
    note: str
    effect: str
    check: str


def check_fields(store: JobStore) -> list[CheckedField]:
    """Check every stored field of the catalogue, the most severe first; asks the store once."""
    checked = [
        CheckedField(
            *(item.field, item.foreign, item.state, item.type, item.needed, item.note),
            effect := _effect(item),
            _check(item, effect),
        )
        for item in store.check_fields()
    ]
    return sorted(checked, key=lambda item: (_ORDER.index(item.check), not item.effect))


def _check(item: FieldState, effect: str) -> str:
    if item.needed:
        return FAILED
    return MISSING if effect and (item.field in COSTS or item.state != "absent") else OK


def _effect(item: FieldState) -> str:
    if item.state == "absent" or item.needed:
        return COSTS.get(item.field, f"no questions about {item.field} ({field(item.field).meaning})")
    # the index has documents without one
    if item.field == "end_time" and item.note:
        return _UNDATED
    return _SLOWER if item.state == "wrong type" else ""
