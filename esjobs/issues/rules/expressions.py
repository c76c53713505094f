"""Expressions of rules: a small closed language over columns, with missing values.

Grammar: a part of Python's, parsed by Python and never executed: numbers, texts, names (``cores``,
``mem_bw_b_s.mean``), ``+ - * /``, comparisons, ``in [...]``, ``and``, ``or``, ``not``, and the functions
``min``, ``max``, ``abs`` and ``kinds``. Anything else is refused on reading.

Numbers are float64 columns, NaN if missing or not finite. Truth is 1, 0 or 0.5 (unknown), with Kleene's
logic: ``and`` is the minimum, ``or`` the maximum. A comparison with a missing value is unknown, and unknown
never flags.
"""

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["number", "text", "truth"]
Column = npt.NDArray[Any]
"""Numbers and truth: float64; texts: objects, None if missing."""
Columns = Callable[[str], Column]
"""Column of a name."""
Kinds = Callable[[str], Kind | None]
"""Kind of a name; None if it does not exist."""

UNKNOWN = 0.5
LONGEST = 1000
"""Characters of an expression."""
# levels of brackets; Python's own limit of recursion lies far beyond
_DEEPEST = 24
# products of ten such numbers are still numbers
_LARGEST = 1e30
_FUNCTIONS = ("min", "max", "abs", "known")


class ExpressionError(ValueError):
    """Error in an expression; the reader of rules adds file and line."""


@dataclass(frozen=True)
class Expression:
    """Parsed expression with the kind of its value and its names."""

    text: str
    kind: Kind
    names: frozenset[str]
    _value: Callable[[Columns], Column]

    def of(self, columns: Columns, n: int) -> Column:
        """Return the value for each of ``n`` rows."""
        with np.errstate(all="ignore"):
            return np.broadcast_to(self._value(columns), (n,))


_Part = tuple[Kind, Callable[[Columns], Column]]


def read_expression(text: object, kinds: Kinds) -> Expression:
    """Parse an expression; raises :class:`ExpressionError`.

    >>> names = {"cores": "number", "load": "number"}
    >>> busy = read_expression("load / cores > 0.5", names.get)
    >>> columns = {"cores": np.array([2.0, 2.0, np.nan]), "load": np.array([1.5, 0.5, 1.0])}
    >>> busy.kind, busy.of(columns.__getitem__, 3).tolist()
    ('truth', [1.0, 0.0, 0.5])
    """
    if not isinstance(text, str):
        raise ExpressionError(f"expected an expression as text, got {text!r:.40}")
    if len(text) > LONGEST:
        raise ExpressionError(f"longer than {LONGEST} characters")
    try:
        # parsed, never compiled or executed: what runs is built from the nodes accepted below
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "nested too deeply"
        raise ExpressionError(f"'{_short(text)}' is not an expression: {reason}") from None
    names: set[str] = set()
    kind, value = _Reader(text, kinds, names).read(body, 0)
    return Expression(text.strip(), kind, frozenset(names), value)


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 80 else f"{one_line[:79]}…"


class _Reader:
    """Compiles a syntax tree into functions, innermost first."""

    def __init__(self, text: str, kinds: Kinds, names: set[str]) -> None:
        self._text = text
        self._kinds = kinds
        self._names = names

    def read(self, node: ast.expr, depth: int) -> _Part:
        """Return kind and function of a part; :class:`ExpressionError` for what the language lacks."""
        if depth > _DEEPEST:
            raise ExpressionError(f"'{_short(self._text)}' is nested too deeply")
        match node:
            case ast.Constant(value=value):
                return self._constant(value)
            case ast.Name() | ast.Attribute():
                return self._name(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return "truth", _negated(self._of("truth", operand, depth))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._of("number", operand, depth)
                return "number", lambda columns: -number(columns)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                first, second = self._of("number", left, depth), self._of("number", right, depth)
                operation = _OPERATIONS[type(op)]
                return "number", lambda columns: _finite(operation(first(columns), second(columns)))
            case ast.BoolOp(op=op, values=values):
                parts = [self._of("truth", value, depth) for value in values]
                # three values as numbers, 0, 0.5 (unknown) and 1: "and" is the smaller, "or" the larger
                together = np.minimum if isinstance(op, ast.And) else np.maximum
                return "truth", lambda columns: _folded(together, parts, columns)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._comparison([left, *comparators], ops, depth)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return self._call(name, arguments, depth)
        raise self._refused(node)

    def _refused(self, node: ast.expr) -> ExpressionError:
        part = ast.get_source_segment(self._text.strip(), node) or self._text
        return ExpressionError(
            f"'{_short(part)}' is not allowed; use numbers, names, + - * /, comparisons, in, and, or, not, "
            f"{', '.join(_FUNCTIONS)}"
        )

    def _constant(self, value: object) -> _Part:
        if isinstance(value, bool):
            truth = np.float64(value)
            return "truth", lambda _: np.asarray(truth)
        if isinstance(value, str):
            text = np.empty((), object)
            text[()] = value
            return "text", lambda _: text
        if isinstance(value, int | float):
            # a whole number of a thousand digits has no float
            if not (isinstance(value, float) or abs(value) < 10**31) or not abs(value) <= _LARGEST:
                raise ExpressionError(f"a number in '{_short(self._text)}' exceeds 1e30")
            number = np.float64(value)
            return "number", lambda _: np.asarray(number)
        raise ExpressionError(f"'{_short(repr(value))}' is neither a number, text, true nor false")

    def _name(self, node: ast.expr) -> _Part:
        name = dotted(node)
        if name is None:
            raise self._refused(node)
        kind = self._kinds(name)
        if kind is None:
            raise ExpressionError(f"unknown name '{name}'")
        self._names.add(name)
        return kind, lambda columns: columns(name)

    def _of(self, wanted: Kind, node: ast.expr, depth: int) -> Callable[[Columns], Column]:
        kind, value = self.read(node, depth + 1)
        if kind != wanted:
            part = ast.get_source_segment(self._text.strip(), node) or self._text
            raise ExpressionError(f"'{_short(part)}' is a {kind}; expected a {wanted}")
        return value

    def _comparison(self, parts: list[ast.expr], ops: list[ast.cmpop], depth: int) -> _Part:
        compared = []
        for left, op, right in zip(parts, ops, parts[1:], strict=False):
            if isinstance(op, ast.In | ast.NotIn):
                within = self._membership(left, right, depth)
                compared.append(_negated(within) if isinstance(op, ast.NotIn) else within)
            elif type(op) in _COMPARISONS:
                compared.append(self._compared(left, type(op), right, depth))
            else:
                raise ExpressionError(f"'{_short(self._text)}' compares with 'is'; use == or !=")
        return "truth", lambda columns: _folded(np.minimum, compared, columns)

    def _compared(
        self, left: ast.expr, op: type[ast.cmpop], right: ast.expr, depth: int
    ) -> Callable[[Columns], Column]:
        (kind, first), (other, second) = self.read(left, depth + 1), self.read(right, depth + 1)
        if kind != other:
            raise ExpressionError(f"'{_short(self._text)}' compares a {kind} with a {other}")
        if kind != "number" and op not in (ast.Eq, ast.NotEq):
            raise ExpressionError(f"'{_short(self._text)}': a {kind} cannot be compared with < or >")
        compare = _COMPARISONS[op]
        if kind == "text":
            return lambda columns: _texts_compared(compare, first(columns), second(columns))
        missing = _is_nan if kind == "number" else _is_unknown
        return lambda columns: _compared(compare, first(columns), second(columns), missing)

    def _membership(self, left: ast.expr, right: ast.expr, depth: int) -> Callable[[Columns], Column]:
        # an empty list would never be true
        if not isinstance(right, ast.List | ast.Tuple) or not right.elts:
            raise ExpressionError(f"'{_short(self._text)}': in requires a list, such as ['a', 'b']")
        each = [self._compared(left, ast.Eq, item, depth) for item in right.elts]
        return lambda columns: _folded(np.maximum, each, columns)

    def _call(self, name: str, arguments: list[ast.expr], depth: int) -> _Part:
        if name == "known":
            if len(arguments) != 1:
                raise ExpressionError(f"'{_short(self._text)}': known requires one name")
            kind, value = self.read(arguments[0], depth + 1)
            missing = {"number": _is_nan, "text": _is_none, "truth": _is_unknown}[kind]
            return "truth", lambda columns: np.where(missing(value(columns)), 0.0, 1.0)
        numbers = [self._of("number", argument, depth) for argument in arguments]
        if name == "abs" and len(numbers) == 1:
            return "number", lambda columns: np.abs(numbers[0](columns))
        if name == "abs" or len(numbers) < 2:
            raise ExpressionError(
                f"'{_short(self._text)}': min and max require at least two numbers, abs one"
            )
        together = np.minimum if name == "min" else np.maximum
        return "number", lambda columns: _folded(together, numbers, columns)


def dotted(node: ast.expr) -> str | None:
    """Return the dotted name of a node; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None


def _folded(together: Any, parts: list[Callable[[Columns], Column]], columns: Columns) -> Column:
    value = parts[0](columns)
    for part in parts[1:]:
        value = together(value, part(columns))
    return value


def _negated(truth: Callable[[Columns], Column]) -> Callable[[Columns], Column]:
    # unknown, 0.5, stays unknown
    return lambda columns: 1.0 - truth(columns)


def _finite(values: Column) -> Column:
    return np.where(np.isfinite(values), values, np.nan)


def _is_nan(values: Column) -> Column:
    return np.isnan(values)


def _is_unknown(values: Column) -> Column:
    return np.asarray(values == UNKNOWN)


def _is_none(values: Column) -> Column:
    # of an array of objects, is it None element by element
    return np.asarray(np.frompyfunc(lambda value: value is None, 1, 1)(values), np.bool_)


def _compared(compare: Any, left: Column, right: Column, missing: Callable[[Column], Column]) -> Column:
    return np.where(missing(left) | missing(right), UNKNOWN, compare(left, right))


def _texts_compared(compare: Any, left: Column, right: Column) -> Column:
    return np.where(_is_none(left) | _is_none(right), UNKNOWN, np.asarray(compare(left, right), np.float64))


_OPERATIONS: Mapping[type[ast.operator], Any] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}
_COMPARISONS: Mapping[type[ast.cmpop], Any] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}


def finite_number(value: object) -> bool:
    """True if rules can count with the value."""
    if isinstance(value, bool):
        return False
    if isinstance(value, float):
        return math.isfinite(value) and abs(value) <= _LARGEST
    # a larger integer may have no float
    return isinstance(value, int) and abs(value) < 10**31
