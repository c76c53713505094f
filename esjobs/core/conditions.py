"""The grammar of conditions: ``efficiency<0.1``, ``queue=CERN,RAL``, ``user is missing``.

Converts between texts and field, operator, values. ``docs/questions.md`` explains the language to users.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

from esjobs.core import fields
from esjobs.core.errors import UsageError

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~", "!~", "is missing", "is present"]

OPERATORS: tuple[Operator, ...] = ("!=", "!~", "<=", ">=", "=", "<", ">", "~")
"""The operators that take values, in the order in which they are looked for."""
ALTERNATIVES: frozenset[Operator] = frozenset({"=", "~", "is missing"})
"""Operators that say what a field may be: of several conditions with them one has to hold."""
BOUNDS: frozenset[Operator] = frozenset({"<", "<=", ">", ">="})

# longer operators first: "<=" would else be "<" with a value that begins with "="
_CONDITION = re.compile(r"\s*([A-Za-z_]\w*)\s*(!=|!~|<=|>=|=|<|>|~)(.*)", re.DOTALL | re.ASCII)
_IS = re.compile(
    r"\s*([A-Za-z_]\w*)\s+is\s+(missing|present|not\s+missing)\s*", re.DOTALL | re.ASCII | re.IGNORECASE
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_QUOTED = re.compile(r'\s*"((?:[^"]|"")*)"\s*(,|$)', re.DOTALL)
_UNQUOTED = re.compile(r"([^,]*)(,|$)", re.DOTALL)
_EXPECTED = "expected FIELD=VALUE, such as queue=CERN, or an operator: != < <= > >= ~, is missing, is present"


@dataclass(frozen=True)
class Condition:
    """One condition; ``values`` is empty for ``is missing`` and ``is present``, single for bounds."""

    field: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the condition in a form that :func:`read_condition` reads."""
        if not self.values:
            return f"{self.field}=" if self.operator == "is missing" else f"{self.field} {self.operator}"
        return f"{self.field}{self.operator}{','.join(map(quoted, self.values))}"


def read_condition(text: str) -> Condition:
    """Read one condition; an empty value after ``=`` means missing.

    Raises :class:`UsageError` for malformed text or an unknown field.

    >>> read_condition('queue = CERN, "A,B"')
    Condition(field='queue', operator='=', values=('CERN', 'A,B'))
    >>> read_condition("user is missing")
    Condition(field='user', operator='is missing', values=())
    >>> read_condition("user is not missing")
    Condition(field='user', operator='is present', values=())
    """
    if state := _IS.fullmatch(text):
        name, kind = state.groups()
        is_missing = kind.lower() == "missing"
        return Condition(fields.field(name).name, "is missing" if is_missing else "is present")
    parts = _CONDITION.fullmatch(text)
    if parts is None:
        raise UsageError(f"'{text}' is not a condition; {_EXPECTED}")
    name, sign, rest = parts.groups()
    field, operator = fields.field(name).name, cast("Operator", sign)
    if not rest.strip():
        if operator == "=":
            return Condition(field, "is missing")
        if operator == "!=":
            return Condition(field, "is present")
        raise UsageError(f"'{text}' has no value after {operator}; expected {name}{operator}VALUE")
    values = _values(text, rest)
    if operator in BOUNDS and len(values) > 1:
        raise UsageError(f"'{text}' has several values; {operator} accepts one")
    return Condition(field, operator, values)


def named(text: str) -> str:
    """Return the name at the start of a condition, known or not; empty without one.

    >>> named(" queue=CERN"), named("=CERN")
    ('queue', '')
    """
    name = _NAME.match(text.strip())
    return name.group() if name else ""


def _values(condition: str, text: str) -> tuple[str, ...]:
    """Split a list at commas; a quoted value is literal, with ``""`` for a quote."""
    values: list[str] = []
    at = 0
    while True:
        if member := _QUOTED.match(text, at):
            values.append(member.group(1).replace('""', '"'))
        else:
            member = _UNQUOTED.match(text, at)
            value = member.group(1).strip() if member else ""
            if member is None or not value:
                raise UsageError(
                    f"'{condition}' has an empty value in its list; for jobs without a value use: is missing"
                )
            # queue==CERN, or efficiency<>1: a slip rather than a value
            if value[0] in '"=<>!~':
                raise UsageError(
                    f"'{condition}' has a value that begins with {value[0]}; write it in double quotes, and "
                    'double each quote inside: queue="=A"'
                )
            values.append(value)
        at = member.end()
        if not member.group(2):
            return tuple(dict.fromkeys(values))


def quoted(value: str) -> str:
    """Return a value in quotes if it would be misread without them.

    >>> quoted("CERN"), quoted("a,b"), quoted('say "so"')
    ('CERN', '"a,b"', 'say "so"')
    """
    # everything that read_condition would trim, split or take for an operator
    plain = value and value == value.strip() and "," not in value and value[0] not in '"=<>!~'
    return value if plain else '"' + value.replace('"', '""') + '"'


def written(field: str, operator: str, values: Iterable[str]) -> str:
    """Return a condition as text with its values quoted as needed.

    Raises :class:`UsageError` for an invalid name or operator.

    >>> written("queue", "=", ["CERN", "a,b"])
    'queue=CERN,"a,b"'
    """
    if not _NAME.fullmatch(field):
        raise UsageError(f"'{field}' is not a field name; list fields: esjobs fields")
    if operator not in OPERATORS:
        raise UsageError(f"'{operator}' is not an operator; use one of: {' '.join(OPERATORS)}")
    return f"{field}{operator}{','.join(map(quoted, values))}"


def canonical(conditions: Iterable[str]) -> tuple[str, ...]:
    """Return conditions with canonical names, one value each, without repeats: equal questions, equal runs.

    >>> canonical(["queue=CERN", "queue = CERN,RAL", "user is missing"])
    ('queue=CERN', 'queue=RAL', 'user=')
    """
    single: dict[str, None] = {}
    for condition in map(read_condition, conditions):
        for value in condition.values:
            # patterns are the same in any case
            text = value.lower() if condition.operator in ("~", "!~") else value
            single[str(Condition(condition.field, condition.operator, (text,)))] = None
        if not condition.values:
            single[str(condition)] = None
    return tuple(single)


def matches(text: str, pattern: str) -> bool:
    """True if a text matches a pattern with ``*`` as wildcard; case is ignored.

    >>> matches("CERN-PROD", "cern*"), matches("CERN-PROD", "*prod"), matches("CERN-PROD", "cern")
    (True, True, False)
    """
    first, *rest = pattern.lower().split("*")
    text = text.lower()
    if not rest:
        return text == first
    # both ends must fit without overlap: "a*a" does not match "a"
    if not text.startswith(first) or len(text) < len(first) + len(rest[-1]):
        return False
    at, end = len(first), len(text) - len(rest[-1])
    # the leftmost match of each part leaves most room for the others
    for part in rest[:-1]:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return at <= end and text.endswith(rest[-1])
