"""Buckets of a window by task, queue and CPU model, as columns with codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.query import Days, Filter, Present, Query, Sum
from esjobs.core.window import Window
from esjobs.records.tasks.sums import SUMS, FloatArray
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import JobStore

Unit = tuple[str | None, str | None, str | None]
"""Task id, core class and processing type: what shares a level."""
_UNIT = ("task_id", "core_class", "processing_type")

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class MachineSums:
    """One row per unit, queue and CPU model with jobs, in the order of these keys.

    ``units``, ``queues``, ``models``: what the codes mean; ``sums``: by ``SUMS``.
    """

    units: Sequence[Unit]
    queues: Sequence[str]
    models: Sequence[str]
    unit: Codes
    queue: Codes
    model: Codes
    sums: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.unit)

    def keep(self, rows: npt.NDArray[np.bool_]) -> "MachineSums":
        """Return some of the rows; the codes keep their meaning."""
        return replace(
            self,
            unit=self.unit[rows],
            queue=self.queue[rows],
            model=self.model[rows],
            sums={name: values[rows] for name, values in self.sums.items()},
        )

    @property
    def task(self) -> Codes:
        """Return for each row a code of its task id."""
        return _numbered([unit[:1] for unit in self.units])[self.unit]

    @property
    def kind_of_unit(self) -> Codes:
        """Return for each unit a code of its core class and processing type."""
        return _numbered([unit[1:] for unit in self.units])

    def mix(self) -> dict[str, dict[str, float]]:
        """Return by queue the shares of its CPU models in its CPU time."""
        total = np.zeros((len(self.queues), len(self.models)))
        np.add.at(total, (self.queue, self.model), self.sums["cpu_s"])
        shares = {}
        for queue, row in zip(self.queues, total, strict=True):
            if row.sum() > 0:
                part = row / row.sum()
                shares[queue] = {self.models[at]: float(part[at]) for at in np.flatnonzero(part).tolist()}
        return shares


def _numbered(parts: Sequence[tuple[str | None, ...]]) -> Codes:
    numbers: dict[tuple[str | None, ...], int] = {}
    return np.array([numbers.setdefault(part, len(numbers)) for part in parts], np.int32)


def read_machine_sums(store: JobStore, window: Window, where: Sequence[Filter] = ()) -> MachineSums:
    """Read the sums of the buckets that name a CPU model; one query."""
    keys = (*_UNIT, "queue", "cpu_model")
    metrics = tuple(Sum(name, name) for name in SUMS)
    chosen = (Days.of_window(window), Present("cpu_model"), *where)
    rows = store.aggregate(Query(keys, metrics, where=chosen, over=BUCKETS)).table
    coded = {name: _coded(rows.column(name)) for name in keys}
    # engines give groups in any order, and sums depend on it in their last digit
    order = np.lexsort([coded[name][1] for name in reversed(keys)])
    number = {name: codes[order] for name, (_, codes) in coded.items()}
    parts, unit = np.unique(np.stack([number[name] for name in _UNIT]), axis=1, return_inverse=True)
    texts = [np.array([*coded[name][0], None], object)[row] for name, row in zip(_UNIT, parts, strict=True)]
    return MachineSums(
        list(zip(*texts, strict=True)),
        coded["queue"][0],
        coded["cpu_model"][0],
        np.ravel(unit).astype(np.int32),
        number["queue"],
        number["cpu_model"],
        {name: np.asarray(rows.column(name).to_numpy(), np.float64)[order] for name in SUMS},
    )


def _coded(column: pa.ChunkedArray) -> tuple[list[str], Codes]:
    # Sorted texts and the place of each value among them; -1 for a missing one.
    values = pc.cast(column, pa.string()).combine_chunks()
    texts = sorted(text for text in pc.unique(values).to_pylist() if text is not None)
    codes = pc.index_in(values, pa.array(texts, pa.string())).fill_null(-1)
    return texts, np.asarray(codes, np.int32)
