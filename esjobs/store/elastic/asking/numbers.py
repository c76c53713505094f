"""Numbers that an index can count: a path in its units, for some jobs.

A quotient or product with an integer of few values is, for each value, a scaled path: a rising function, so
edges map exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esjobs.core import fields
from esjobs.core.fields import Quotient
from esjobs.core.query import In
from esjobs.store.elastic.asking.clauses import Clause, Clauses, has_value, least_raw, translated
from esjobs.store.elastic.asking.quotients import reaching, scaled_number, small_classes
from esjobs.store.elastic.asking.refinement import Floats
from esjobs.store.elastic.fields.live_fields import LiveField


@dataclass(frozen=True)
class Form:
    """Number as a rising function of a path, for the jobs of ``clause``.

    ``edge``: least raw number that reaches a value, None if not found. ``values``: raw numbers converted.
    """

    clause: Clause
    path: str
    edge: Callable[[float], float | None]
    values: Callable[[Floats], Floats]


def forms_of(name: str, clauses: Clauses) -> list[Form] | None:
    """Return a field in all its forms; empty if no job has it, None if the index cannot count it."""
    derived = fields.field(name).derived
    if derived is None:
        return _stored(clauses.live[name])
    parts = scaled_number(derived) if isinstance(derived, Quotient) else None
    return None if parts is None else _by_classes(*parts, clauses)


def _stored(live: LiveField) -> list[Form] | None:
    if live.state == "absent":
        return []
    if live.state != "present" or len(live.paths) != 1 or live.field.type not in ("integer", "number"):
        return None
    if not live.one_kind:
        return None  # whole numbers and fractions make no groups together
    (path,) = live.paths
    exists = has_value(live, path)
    # counts are rounded when translated, so fractions of an index are no plain counts
    if live.plain and (live.whole_numbers or live.field.type == "number"):
        return [Form(exists, path, lambda edge: edge, lambda values: values)]

    def values(raw: Floats) -> Floats:
        return np.array([translated(live, value) for value in raw.tolist()], np.float64)

    return [Form(exists, path, lambda edge: least_raw(live, edge, beyond=False), values)]


def _by_classes(free: str, integer: str, divided: bool, clauses: Clauses) -> list[Form] | None:
    """Return a scaled path for each value of the integer."""
    number, live = clauses.live[free], clauses.live[integer]
    if (number.field.type, live.field.type) != ("number", "integer"):
        return None
    if "absent" in (number.state, live.state):
        return []
    classes = small_classes(clauses, integer)
    if classes is None or not number.plain or not number.one_kind:
        return None
    if 0 in classes and not divided:
        # every value times 0 is 0: no rising function
        return None
    forms: list[Form] = []
    # divided by 0 there is no number
    for value in filter(None, classes):
        both = clauses.filters([In(integer, (value,))])
        if both is None:
            return None
        clause = {"bool": {"filter": [*both, has_value(number, number.paths[0])]}}
        forms.append(_form(clause, number.paths[0], float(value), divided=divided))
    return forms


def _form(clause: Clause, path: str, by: float, *, divided: bool) -> Form:
    def scaled(raw: Any) -> Any:
        return raw / by if divided else raw * by

    def edge(value: float) -> float | None:
        # searched, not computed: dividing back would miss the exact edge by a rounding
        return reaching(scaled, value * by if divided else value / by, value, beyond=False)

    return Form(clause, path, edge, scaled)
