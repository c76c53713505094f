"""Cleaning rules: jobs that enter the buckets, in a fixed, published order.

A job counts under the first rule it fails, so engines agree only on a common order. Source: the ATLAS
speed-factor study.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from esjobs.core.identity import content_id
from esjobs.core.query import DropRule, In, NotLike, Present, Range


@dataclass(frozen=True)
class CleaningRules:
    """Thresholds of the cleaning rules; seconds, and efficiency as a fraction.

    Limits on wall time and efficiency are exclusive, those on events and cores inclusive.
    """

    finished_states: tuple[str, ...] = ("finished",)
    min_events: int = 1
    min_cores: int = 1
    min_wall_s: float = 60.0
    max_wall_s: float = 30 * 86400.0
    min_efficiency: float = 0.0
    max_efficiency: float = 2.0
    # merging is I/O, and the others are tests: their CPU time per event is not that of physics work
    excluded_types: tuple[str, ...] = ("merge", "pmerge", "panda*", "ganga*", "hammercloud*", "gangarobot*")

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return the rules from plain data, lists in place of tuples."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        return cls(**values)

    def drops(self) -> tuple[DropRule, ...]:
        """Return the rules in their published order."""
        return (
            DropRule(
                "not finished", In("state", self.finished_states), missing="pass", unknown="state unknown"
            ),
            DropRule("no events", Range("events", ge=self.min_events)),
            DropRule("no cores", Range("cores", ge=self.min_cores)),
            DropRule("wall time out of range", Range("wall_s", gt=self.min_wall_s, lt=self.max_wall_s)),
            DropRule(
                "efficiency out of range", Range("efficiency", gt=self.min_efficiency, lt=self.max_efficiency)
            ),
            DropRule(
                "excluded processing type", NotLike("processing_type", self.excluded_types), missing="pass"
            ),
            # last, so that this count says how many usable jobs lack nothing but a task
            DropRule("no task", Present("task_id")),
        )

    @property
    def digest(self) -> str:
        """Short name of these rules; buckets of another digest are stale."""
        return content_id(asdict(self))


LARGEST = 10**9
"""No limit may be larger: in seconds it is thirty years, and no job has so many cores or events."""


def _unusable_range(rules: CleaningRules, kind: str) -> tuple[str, object, str] | None:
    low, high = getattr(rules, f"min_{kind}"), getattr(rules, f"max_{kind}")
    # written so that NaN, which compares with nothing, is refused
    if not 0 <= low <= LARGEST:
        return f"min_{kind}", low, f"a number from 0 to {LARGEST}"
    if not 0 < high <= LARGEST:
        return f"max_{kind}", high, f"a number above 0 and up to {LARGEST}"
    if low < high:
        return None
    # where the upper one is the default, only the lower one can have been set
    if high == getattr(CleaningRules, f"max_{kind}"):
        return f"min_{kind}", low, f"a number below max_{kind} ({high})"
    return f"max_{kind}", high, f"a number above min_{kind} ({low})"


def unusable(rules: CleaningRules) -> tuple[str, object, str] | None:
    """Return name, value and accepted range of the first invalid rule; None if all are valid.

    >>> unusable(CleaningRules()), unusable(CleaningRules(min_cores=0))
    (None, ('min_cores', 0, 'a whole number from 1 to 1000000000'))
    """
    for name in ("min_events", "min_cores"):
        if not 1 <= getattr(rules, name) <= LARGEST:
            return name, getattr(rules, name), f"a whole number from 1 to {LARGEST}"
    for kind in ("wall_s", "efficiency"):
        if wrong := _unusable_range(rules, kind):
            return wrong
    if not rules.finished_states or not all(map(str.strip, rules.finished_states)):
        accepted = "a list of at least one state; no state is empty"
        return "finished_states", list(rules.finished_states), accepted
    if not all(pattern.strip(" *") for pattern in rules.excluded_types):
        return "excluded_types", list(rules.excluded_types), "a list of types; no type is empty or only *"
    return None
