"""Results of the search for mixed tasks, and the decision from the evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.layout.arrays import Codes, Floats, Ints, Texts, texts
from fitters.layout.table import Table

UNKNOWN = float("nan")


@dataclass(frozen=True, eq=False)
class MixtureTable(Table):
    """One row per task that has a row left, sorted, and after a task that is split one per kind of it."""

    name: Texts  # The task
    kind: Texts  # The kind that the row is about; None in the row of a whole task and for a missing kind
    n_jobs: Floats
    n_units: Ints
    # ratio, share, significance: How many times as much CPU time per event the one mode takes as the other,
    # the share of the jobs of the smaller one, and how certain that is, in sigma; NaN where there is only one
    ratio: Floats
    share: Floats
    significance: Floats
    # Largest robust sigma of a unit's ln residuals with 10 jobs or more; NaN where no unit has so many
    sigma: Floats
    decision: Texts  # ``keep``, ``split`` (each kind is to be a task of its own) or ``excluded``
    reason: Texts


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Mixed tasks and the decision of every input row."""

    tasks: MixtureTable
    # shape (n,): Of every input row: ``keep`` (under its task), ``split`` (its (task, kind) is a task of its
    # own), ``excluded``; empty where the row is no measurement
    decision: Texts
    n_jobs_aside: float  # Jobs that are excluded
    n_rows: int
    dropped: Mapping[str, int]  # Rows that were not examined, by reason


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence from a task or one kind of it; `mixed` is the reason why it is mixed, or empty."""

    ratio: float = UNKNOWN
    share: float = UNKNOWN
    significance: float = UNKNOWN
    sigma: float = UNKNOWN
    mixed: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Codes of the labels of the jobs examined, shape (n,) each."""

    task: Codes
    unit: Codes
    kind: Codes

    def take(self, rows: NDArray[Any]) -> "Points":
        """Return some of the rows."""
        return Points(self.task[rows], self.unit[rows], self.kind[rows])


class Decider:
    """Decisions, collected task by task."""

    def __init__(self, points: Points, task_names: Texts, kind_names: Texts) -> None:
        self.points = points
        self.task_names, self.kind_names = task_names, kind_names
        self.decision = texts(points.task.size, "keep")
        self.rows: list[dict[str, Any]] = []
        order = np.lexsort((points.kind, points.task))
        task = points.task[order]
        first = np.flatnonzero(np.diff(task, prepend=-1))
        ends = np.append(first, task.size)[1:]
        spans = zip(task[first].tolist(), first.tolist(), ends.tolist(), strict=True)
        self.members = {code: order[begin:end] for code, begin, end in spans}
        """Per task the positions of its rows, sorted by kind."""

    def has_kinds(self, code: int) -> bool:
        """True if a task's rows name more than one kind."""
        rows = self.points.kind[self.members[code]]
        return bool(rows[0] != rows[-1])

    def decide(self, code: int, of_task: Evidence, parts: Mapping[int, Evidence]) -> None:
        """Keep a task that is not mixed; split it if some of its kinds are not; otherwise exclude it."""
        rows = self.members[code]
        if not of_task.mixed:
            self._row(code, None, rows, of_task, "keep", of_task.remark)
            return
        why = f"mixed task: {of_task.mixed}"
        if all(evidence.mixed for evidence in parts.values()):
            self._row(code, None, rows, of_task, "excluded", why)
            self.decision[rows] = "excluded"
            return
        self._row(code, None, rows, of_task, "split", why)
        for kind, evidence in parts.items():
            part = rows[self.points.kind[rows] == kind]
            aside = bool(evidence.mixed)
            reason = f"mixed task: {evidence.mixed}" if aside else evidence.remark
            self._row(code, kind, part, evidence, "excluded" if aside else "keep", reason)
            self.decision[part] = "excluded" if aside else "split"

    def _row(
        self, code: int, kind: int | None, rows: NDArray[Any], evidence: Evidence, decision: str, reason: str
    ) -> None:
        self.rows.append(
            {
                "name": self.task_names[code],
                "kind": None if kind is None else self.kind_names[kind],
                "n_jobs": float(rows.size),
                "n_units": len(set(self.points.unit[rows].tolist())),
                "ratio": evidence.ratio,
                "share": evidence.share,
                "significance": evidence.significance,
                "sigma": evidence.sigma,
                "decision": decision,
                "reason": reason,
            }
        )

    def result(self, index: Ints, n_rows: int, dropped: Mapping[str, int]) -> Mixtures:
        """Return all decisions in the order of the input; `index`: input position of each row."""
        columns: dict[str, Any] = {}
        for name in MixtureTable.__dataclass_fields__:
            values = [row[name] for row in self.rows]
            if name in {"name", "kind", "decision", "reason"}:
                columns[name] = texts(len(values))
                columns[name][:] = values
            else:
                columns[name] = np.array(values, np.int64 if name == "n_units" else np.float64)
        decision = texts(n_rows)
        decision[index] = self.decision
        decision.flags.writeable = False
        aside = float(np.count_nonzero(self.decision == "excluded"))
        return Mixtures(MixtureTable(**columns), decision, aside, n_rows, MappingProxyType(dict(dropped)))
