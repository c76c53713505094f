"""Units of A: one task, one core class, one processing type, one kind of work; and the label of each."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UNIT = ("task_id", "core_class", "processing_type", "work_kind")
"""What makes a unit of A."""
_BAR = "\x1f"
"""Stands for a bar inside a part of a unit, so that bars always part it."""


def unit_label(*parts: str | None) -> str:
    """One text for a unit of A; :func:`unit_parts` undoes it, :func:`readable_unit` is for people.

    >>> unit_label("15350577", "single", None, "")
    '15350577|single||'
    """
    return "|".join((part or "").replace("|", _BAR) for part in parts)


def unit_labels(table: pa.Table) -> npt.NDArray[np.object_]:
    """The label of each row of a table that has the columns of ``UNIT``."""
    parts = [pc.replace_substring(pc.fill_null(table.column(column), ""), "|", _BAR) for column in UNIT]
    return np.asarray(pc.binary_join_element_wise(*parts, "|").to_numpy(zero_copy_only=False))


def unit_parts(unit: str) -> tuple[str | None, ...]:
    """Task, core class, processing type and kind of work of a unit of A, None where there is none.

    >>> unit_parts("15350577|single||")
    ('15350577', 'single', None, None)
    """
    return tuple(part.replace(_BAR, "|") or None for part in unit.split("|"))


def readable_unit(unit: str) -> str:
    """A unit of A as people say it.

    >>> readable_unit("15350577|single|simul|"), readable_unit("7|multi||EVNTMerge_tf.py")
    ('15350577 (single-core, simul)', '7 (multi-core, EVNTMerge_tf.py)')
    """
    task, core_class, *kinds = unit_parts(unit)
    return f"{task} ({', '.join([f'{core_class}-core', *filter(None, kinds)])})"
