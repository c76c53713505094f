"""Numbers of jobs as an index can count them: by a path, in the units of the index, of some jobs each.

A stored number is a path. A quotient or product with a whole number of few values (memory per core) is, for
each of these, a path whose values are divided or multiplied by it: both ways are rising functions, so that an
edge of the one is an edge of the other, exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from esjobs.core import fields
from esjobs.core.fields import Quotient
from esjobs.core.query import In
from esjobs.store.elastic.asking.clauses import Clause, Clauses, has_value, least_raw, translated
from esjobs.store.elastic.asking.quotients import MOST_CLASSES, reaching
from esjobs.store.elastic.asking.refinement import Floats
from esjobs.store.elastic.fields.live_fields import LiveField


@dataclass(frozen=True)
class Form:
    """A number of some jobs as a rising function of what is under a path.

    ``clause``: of these jobs. ``edge``: the least number under the path for which the function reaches a
    number, None where it cannot be told. ``values``: what numbers under the path stand for.
    """

    clause: Clause
    path: str
    edge: Callable[[float], float | None]
    values: Callable[[Floats], Floats]


def forms_of(name: str, clauses: Clauses) -> list[Form] | None:
    """A field in all its forms; none where no job has it, None where the index cannot count it.

    One look at the values of the whole number of a quotient.
    """
    derived = fields.field(name).derived
    if derived is None:
        return _stored(clauses.live[name])
    match derived:
        case Quotient((free,), (whole,)):
            return _by_classes(free, whole, clauses, divided=True)
        case Quotient((free, whole), ()):
            return _by_classes(free, whole, clauses, divided=False)
    return None


def _stored(live: LiveField) -> list[Form] | None:
    if live.state == "absent":
        return []
    if live.state != "present" or len(live.paths) != 1 or live.field.type not in ("integer", "number"):
        return None
    if not live.one_kind:
        return None  # whole numbers and fractions make no groups together
    (path,) = live.paths
    there = has_value(live, path)
    if live.plain and (live.whole_numbers or live.field.type == "number"):
        return [Form(there, path, lambda edge: edge, lambda values: values)]

    def values(raw: Floats) -> Floats:
        return np.array([translated(live, value) for value in raw.tolist()], np.float64)

    return [Form(there, path, lambda edge: least_raw(live, edge, beyond=False), values)]


def _by_classes(free: str, whole: str, clauses: Clauses, *, divided: bool) -> list[Form] | None:
    number, live = clauses.live[free], clauses.live[whole]
    if (number.field.type, live.field.type) != ("number", "integer"):
        return None
    if "absent" in (number.state, live.state):
        return []
    known = clauses.distinct(whole)
    if (
        not number.plain
        or not number.one_kind
        or known is None
        or len(known) > MOST_CLASSES
        or any(value < 0 for value in known)
    ):
        return None
    if 0 in known and not divided:
        return None
    forms: list[Form] = []
    for value in known:
        both = clauses.filters([In(whole, (value,))])
        if both is None:
            return None
        if value:
            there = has_value(number, number.paths[0])
            clause = {"bool": {"filter": [*both, there]}}
            forms.append(_form(clause, number.paths[0], float(value), divided=divided))
    return forms


def _form(clause: Clause, path: str, by: float, *, divided: bool) -> Form:
    def values(raw: Floats) -> Floats:
        return raw / by if divided else raw * by

    def one(raw: float) -> float:
        return raw / by if divided else raw * by

    def edge(value: float) -> float | None:
        return reaching(one, value * by if divided else value / by, value, beyond=False)

    return Form(clause, path, edge, values)
