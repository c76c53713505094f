"""Buckets of a window by task, queue and CPU model, as columns with codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from esjobs.records.tasks.keys import Parts
from esjobs.records.tasks.sums import FineSums, FloatArray, added

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class MachineSums:
    """One row per unit, queue and CPU model with jobs, in the order of these keys.

    A unit is what shares a level: task id, core class and processing type. ``units``, ``queues``, ``models``:
    what the codes mean; ``sums``: by ``SUMS``.
    """

    units: Sequence[Parts]
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


def machine_sums(fine: FineSums) -> MachineSums:
    """Add up the sums of a window that name a CPU model."""
    named = (fine.queue.codes >= 0) & (fine.cpu_model.codes >= 0)
    task, queue, model = (labels[named].used() for labels in (fine.task, fine.queue, fine.cpu_model))
    pair = queue.codes.astype(np.int64) * len(model.names) + model.codes
    # queues x models stay far below 2^32
    keys, row = np.unique(task.codes.astype(np.int64) << 32 | pair, return_inverse=True)
    queue_of, model_of = np.divmod(keys & 0xFFFFFFFF, max(len(model.names), 1))
    units = fine.keys.listed()
    return MachineSums(
        [units[number][:3] for number in task.names.tolist()],
        queue.names.tolist(),
        model.names.tolist(),
        (keys >> 32).astype(np.int32),
        queue_of.astype(np.int32),
        model_of.astype(np.int32),
        {name: added(row, values[named], len(keys)) for name, values in fine.sums.items()},
    )
