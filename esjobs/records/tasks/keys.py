"""Keys of tasks for the fits: task id, core class, processing type and kind of work; by number.

The levels A of a fit belong to these keys. Columns hold their numbers, which stand in the order of the keys,
and one table says what each number is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

KEY = ("task_id", "core_class", "processing_type", "work_kind")
"""The columns of a key. The records may lack the last three: then they are None."""

Parts = tuple[str | None, ...]
"""Task id, core class, processing type and kind of work; None where the records name none."""


@dataclass(frozen=True)
class TaskKeys:
    """The keys of a window as object arrays of texts or None; sorted, a key's number is its position."""

    task_id: npt.NDArray[np.object_]
    core_class: npt.NDArray[np.object_]
    processing_type: npt.NDArray[np.object_]
    work_kind: npt.NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.task_id)

    @classmethod
    def of(cls, keys: Iterable[Parts]) -> tuple["TaskKeys", npt.NDArray[np.int32]]:
        """The table of some keys, and the number of each of them; an empty part is a missing one.

        >>> keys, numbers = TaskKeys.of([("7", "multi", "simul", None), ("7", "multi", "evgen", "")])
        >>> keys.processing_type.tolist(), numbers.tolist()
        (['evgen', 'simul'], [1, 0])
        """
        normalised = [tuple(part or None for part in key) for key in keys]
        listed = sorted(set(normalised), key=lambda key: [part or "" for part in key])
        number = {key: position for position, key in enumerate(listed)}
        columns = np.empty((len(KEY), len(listed)), object)
        for position, key in enumerate(listed):
            columns[:, position] = key
        return cls(*columns), np.fromiter((number[key] for key in normalised), np.int32, len(normalised))

    def parts(self, number: int) -> Parts:
        """Task id, core class, processing type and kind of work of a key."""
        return tuple(getattr(self, column)[number] for column in KEY)

    def listed(self) -> list[Parts]:
        """The parts of every key, in the order of their numbers."""
        return list(zip(*(getattr(self, column) for column in KEY), strict=True))

    def kinds(self) -> npt.NDArray[np.int64]:
        """A code for each key: the same for those of one core class, processing type and kind of work.

        >>> parts = [("7", "multi", "simul", ""), ("8", "single", "simul", ""), ("9", "multi", "simul", "")]
        >>> keys, _ = TaskKeys.of(parts)
        >>> keys.kinds().tolist()
        [0, 1, 0]
        """
        codes: dict[Parts, int] = {}
        return np.array([codes.setdefault(key[1:], len(codes)) for key in self.listed()], np.int64)

    def readable(self, number: int) -> str:
        """A key as people say it.

        >>> keys, _ = TaskKeys.of([("7", "multi", None, "EVNTMerge_tf.py"), ("9", "single", "simul", None)])
        >>> keys.readable(0), keys.readable(1)
        ('7 (multi-core, EVNTMerge_tf.py)', '9 (single-core, simul)')
        """
        task, core_class, *kinds = self.parts(number)
        return f"{task} ({', '.join([f'{core_class}-core', *(kind for kind in kinds if kind)])})"

    def extended(self, more: Sequence[Parts]) -> tuple["TaskKeys", npt.NDArray[np.int32]]:
        """The table with more keys, and the new number of each key: those of this table, then ``more``."""
        return TaskKeys.of([*self.listed(), *more])

    def numbers(self, table: pa.Table) -> npt.NDArray[np.int32]:
        """The number of the key in each row of a table with the columns of ``KEY``; -1 for one not known."""
        code, own_codes = np.zeros(table.num_rows, np.int64), np.zeros(len(self), np.int64)
        for column in KEY:
            mine = pc.fill_null(pa.array(getattr(self, column), pa.string()), "")
            texts = pc.unique(mine)
            position = pc.index_in(pc.fill_null(table.column(column), ""), texts)
            # mixed-radix numbers: one per key, equal only for equal keys
            code = code * (len(texts) + 1) + np.asarray(pc.fill_null(position, len(texts)))
            own_codes = own_codes * (len(texts) + 1) + np.asarray(pc.index_in(mine, texts))
        order = np.argsort(own_codes)
        nearest = order[np.minimum(np.searchsorted(own_codes, code, sorter=order), len(self) - 1)]
        return np.where(own_codes[nearest] == code, nearest, -1).astype(np.int32)
