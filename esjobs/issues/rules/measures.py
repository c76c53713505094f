"""Units and ranges in rules: a limit in hours cannot apply to bytes.

Unit and range are defined for each name and derived for formulas. Bare numbers, and products with one, fit
every unit: they may be conversions. Only certain errors are refused.
"""

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from esjobs.issues.rules.expressions import ExpressionError, dotted

Dimension = tuple[int, int, int, int]
"""Powers of bytes, seconds, joules, and hours of cores, GPUs or nodes."""

NUMBER: Dimension = (0, 0, 0, 0)
BYTES: Dimension = (1, 0, 0, 0)
SECONDS: Dimension = (0, 1, 0, 0)
A_SECOND: Dimension = (0, -1, 0, 0)
BYTES_A_SECOND: Dimension = (1, -1, 0, 0)
JOULES: Dimension = (0, 0, 1, 0)
WATTS: Dimension = (0, -1, 1, 0)
HOURS: Dimension = (0, 0, 0, 1)
BYTES_AN_HOUR: Dimension = (1, 0, 0, -1)

NAMES: Mapping[Dimension, str] = {
    NUMBER: "a number",
    BYTES: "B",
    SECONDS: "s",
    A_SECOND: "1/s",
    BYTES_A_SECOND: "B/s",
    JOULES: "J",
    WATTS: "W",
    HOURS: "core-h, GPU-h or node-h",
    BYTES_AN_HOUR: "B/h",
}
"""Units for people."""

_OF_UNITS: Mapping[str, Dimension] = {
    **dict.fromkeys(("", "1", "fraction", "cores", "nodes", "GPUs", "events", "attempts"), NUMBER),
    **dict.fromkeys(("processes", "threads", "periods", "samples", "units", "cycles", "%", "phases"), NUMBER),
    **dict.fromkeys(("s", "core s", "min", "h", "d"), SECONDS),
    **dict.fromkeys(("1/s", "Hz", "ops/s", "FLOP/s"), A_SECOND),
    **dict.fromkeys(("core-h", "GPU-h", "node-h"), HOURS),
    "B": BYTES,
    "B/s": BYTES_A_SECOND,
    "B/h": BYTES_AN_HOUR,
    "J": JOULES,
    "W": WATTS,
}


@dataclass(frozen=True)
class Measure:
    """Dimension (None: any) and range of a number."""

    dimension: Dimension | None = None
    low: float = -math.inf
    high: float = math.inf


ANYTHING = Measure()
Facts = Callable[[str], Measure]
"""Dimension and range of a name."""


def dimension_of(unit: str) -> Dimension | None:
    """Return the dimension of a unit; None for units without conversion.

    >>> dimension_of("B/s"), dimension_of("HS06 s")
    ((1, -1, 0, 0), None)
    """
    return _OF_UNITS.get(unit)


def checked(text: str, facts: Facts, limits: Mapping[str, float]) -> tuple[Measure, dict[str, Dimension]]:
    """Return dimension and range of an expression, and dimensions of its limits without a unit.

    Raises :class:`ExpressionError` if units do not fit, or a limit is out of range.
    """
    body = ast.parse(text, mode="eval").body
    meant: dict[str, Dimension] = {}
    for node in ast.walk(body):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for first, second in pairwise(sides):
                if not isinstance(second, ast.List | ast.Tuple):
                    _compare(text, first, second, facts, limits, meant)
    return _measure(text, body, facts), meant


def fits(name: str, number: Measure, of: str, limit: float, dimension: Dimension | None) -> None:
    """Refuse a limit with another unit than the number, or outside its range."""
    both = (number.dimension, dimension)
    if None not in both and both[0] != both[1]:
        raise ExpressionError(
            f"{name} is in {_named(dimension)}, but '{of}' is in {_named(number.dimension)}"
        )
    if limit < number.low:
        raise ExpressionError(f"{name} is {limit:g}, but '{of}' is never below {number.low:g}")
    if limit > number.high:
        # the usual slip: 20 in place of 20 %
        percent = f'; write {limit:g} % as "{limit:g} %"' if number.high == 1 and limit <= 100 else ""
        raise ExpressionError(f"{name} is {limit:g}, but '{of}' is never above {number.high:g}{percent}")


def _compare(
    text: str,
    first: ast.expr,
    second: ast.expr,
    facts: Facts,
    limits: Mapping[str, float],
    meant: dict[str, Dimension],
) -> None:
    left, right = _measure(text, first, facts), _measure(text, second, facts)
    for limit, measure, other, of in ((first, left, right, second), (second, right, left, first)):
        # of two limits neither tells the unit of the other
        name = dotted(limit)
        if name is None or name not in limits or dotted(of) in limits:
            continue
        fits(f"the limit '{name}'", other, _source(text, of), limits[name], measure.dimension)
        if measure.dimension is None and other.dimension is not None:
            meant[name] = other.dimension
    # a bare number beside a quantity is of its unit
    if None not in (left.dimension, right.dimension) and left.dimension != right.dimension:
        raise ExpressionError(
            f"'{_source(text, first)}' is in {_named(left.dimension)} and '{_source(text, second)}' in "
            f"{_named(right.dimension)}; they cannot be compared"
        )


def _measure(text: str, node: ast.expr, facts: Facts) -> Measure:
    def of(part: ast.expr) -> Measure:
        return _measure(text, part, facts)

    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return Measure(None, value, value)
        case ast.Name() | ast.Attribute():
            return facts(dotted(node) or "")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = of(operand)
            return Measure(inner.dimension, -inner.high, -inner.low)
        # dimensions add up under x and are subtracted under /; all else needs equal ones
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            return _product(of(left), of(right), -1 if isinstance(op, ast.Div) else 1)
        case ast.BinOp(left=left, op=op, right=right):
            first, second = of(left), of(right)
            if isinstance(op, ast.Sub):
                second = Measure(second.dimension, -second.high, -second.low)
            both = _same(text, node, [first, second])
            return Measure(both, first.low + second.low, first.high + second.high)
        case ast.Call(func=ast.Name(id="abs"), args=[inside]):
            inner = of(inside)
            largest = max(abs(inner.low), abs(inner.high))
            return Measure(inner.dimension, 0.0 if inner.low <= 0 <= inner.high else -inner.high, largest)
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=arguments):
            parts = [of(part) for part in arguments]
            choose = min if name == "min" else max
            low, high = choose(part.low for part in parts), choose(part.high for part in parts)
            return Measure(_same(text, node, parts), low, high)
    return ANYTHING


def _product(left: Measure, right: Measure, power: int) -> Measure:
    dimension = None
    if left.dimension is not None and right.dimension is not None:
        pairs = zip(left.dimension, right.dimension, strict=True)
        dimension = tuple(first + power * second for first, second in pairs)
    # bounds of products are followed for numbers from 0 only: rules have no others
    low = 0.0 if left.low >= 0 and right.low >= 0 else -math.inf
    high = math.inf
    if power == 1 and low == 0 and math.isfinite(left.high) and math.isfinite(right.high):
        high = left.high * right.high
    return Measure(dimension, low, high)  # type: ignore[arg-type]


def _same(text: str, node: ast.expr, parts: list[Measure]) -> Dimension | None:
    dimensions = {part.dimension for part in parts if part.dimension is not None}
    if len(dimensions) > 1:
        raise ExpressionError(
            f"'{_source(text, node)}' combines {' and '.join(sorted(map(_named, dimensions)))}"
        )
    # a bare number beside it is of the same unit
    return next(iter(dimensions), None)


def _named(dimension: Dimension | None) -> str:
    return NAMES.get(dimension or NUMBER, "different units")


def _source(text: str, node: ast.expr) -> str:
    part = " ".join((ast.get_source_segment(text, node) or text).split())
    return part if len(part) <= 60 else f"{part[:59]}…"
