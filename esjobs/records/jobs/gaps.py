"""Missing fields of the rows of a load, and their cost."""

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from esjobs.core.rules import CleaningRules
from esjobs.store.base import PutCounts

COUNTED: Mapping[str, str] = {
    "task_id": "a task id",
    "events": "events",
    "cores": "cores",
    "cpu_raw": "a CPU model",
}
"""Fields that a job may lack, at a price, and what people call them."""


class Gaps:
    """Counts, over the accepted rows of a load, those that lack a field when all is filled that can be.

    ``for_fits``: True if the rows are meant for fits; None: if one of them has a task or events.
    """

    def __init__(self, *, for_fits: bool | None = True) -> None:
        self._rows: Counter[str] = Counter()
        self._total = 0
        self._for_fits = for_fits

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch of ``PUT_SCHEMA``."""
        self._total += batch.num_rows
        for name in COUNTED:
            self._rows[name] += batch.column(name).null_count

    def columns(self) -> dict[str, int]:
        """The counts by the columns of ``loads``."""
        return {f"without_{name}": self._rows[name] for name in COUNTED}

    def notes(self) -> list[str]:
        """Return one sentence per missing field.

        Fields that only fits need are not mentioned for rows that are not meant for them.
        """
        for_fits = self._for_fits
        if for_fits is None:
            for_fits = min(self._rows["task_id"], self._rows["events"]) < self._total
        notes = []
        for name, words in COUNTED.items():
            rows = self._rows[name]
            # a cluster without events has no fit to lose
            if rows and (for_fits or name == "cores"):
                lacks = "row lacks" if rows == 1 else "rows lack"
                notes.append(f"{rows:,} {lacks} {words}: these jobs {_cost(name, for_fits=for_fits)}")
        return notes


def _cost(name: str, *, for_fits: bool) -> str:
    if not for_fits:
        return "have no core-hours"
    reasons = {rule.keep.field: rule.reason for rule in CleaningRules().drops() if rule.missing == "drop"}
    if name in reasons:
        return f"are dropped ({reasons[name]}) and enter no fit"
    return "count for their queue, but for no CPU model"


def change_notes(counts: PutCounts) -> list[str]:
    """Return notes on the fields that a load changed, and on those that it kept."""
    notes = []
    if counts.updated:
        changes = f"in {counts.jobs_changed:,} of the updated jobs: {_listed(counts.changed)}"
        notes.append(
            f"fields changed {changes}" if counts.changed else "no field of the updated jobs changed"
        )
    if counts.kept:
        notes.append(f"absent from this file, values of earlier copies kept: {_listed(counts.kept)}")
    return notes


def _listed(fields: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {jobs:,}" for name, jobs in fields.items())
