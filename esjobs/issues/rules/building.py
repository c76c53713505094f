"""Rules from their TOML tables, with the key and reason of each error."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from esjobs.core.errors import UsageError
from esjobs.issues.catalogue import detector_named, detector_names
from esjobs.issues.detectors.detector import Detector
from esjobs.issues.rules.expressions import Expression, ExpressionError, Kind, read_expression
from esjobs.issues.rules.hints import Hint, read_hint
from esjobs.issues.rules.measures import HOURS, NAMES, NUMBER, Dimension, Measure, checked, dimension_of, fits
from esjobs.issues.rules.quantities import quantity, quantity_and_unit
from esjobs.issues.rules.rule import Condition, Graded, Rule
from esjobs.issues.rules.vocabulary import close_names, kind_of_fact, measure_of_fact
from esjobs.schema.issues import AREAS, SEVERITIES

BUILT = (
    *("detector", "variant", "area", "meaning", "when", "limits", "value", "threshold", "severity", "hint"),
    *("idle_core_h", "idle_gpu_h", "metric", "any_job", "alone", "enabled"),
)
"""Keys of a rule."""
_WASTED = ("idle_core_h", "idle_gpu_h")
_REQUIRED = ("area", "when", "severity", "hint")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_LIMIT = re.compile(r"[a-z][a-z0-9_]{0,63}")
# Names that every detector gives, beside its own numbers
_OF_MEASURE = ("value", "share", "n_samples")
_OF_HINT = ("threshold", "job_id", "source", "unit", "metric", "begin", "until", "wasted", "scope")
_WORDS = (
    *("and", "or", "not", "in", "is", "if", "else", "value", "share", "threshold", "known"),
    *("min", "max", "abs"),
)


class RuleError(Exception):
    """Error in a rule; ``path``: the key that it is about."""

    def __init__(self, path: tuple[str, ...], reason: str) -> None:
        super().__init__(reason)
        self.path = path


@contextmanager
def _at(*path: str) -> Iterator[None]:
    """Raise errors of expressions, hints and quantities as errors of a key."""
    try:
        yield
    except ValueError as error:
        raise RuleError(path, str(error)) from None


def tag_name(name: str) -> str:
    """Return the name of a rule in conditions, after ``tag.``.

    >>> tag_name("memory-bound")
    'memory_bound'
    """
    return name.replace("-", "_")


Units = dict[str, Dimension]
"""Dimensions of limits that have a unit, by name."""


def limits_of(table: object) -> tuple[dict[str, float], Units]:
    """Return limits in base units and their dimensions; raises :class:`RuleError` for invalid ones."""
    if not isinstance(table, dict):
        raise RuleError(("limits",), "limits must be a table of names and numbers")
    limits: dict[str, float] = {}
    units: Units = {}
    for name, value in table.items():
        if not _LIMIT.fullmatch(name) or name in _WORDS:
            raise RuleError(("limits", name), f"'{name:.40}' is not a valid name of a limit")
        if kind_of_fact(name) is not None:
            raise RuleError(
                ("limits", name), f"'{name}' is a field of jobs; use a different name for the limit"
            )
        with _at("limits", name):
            limits[name], unit = quantity_and_unit(value)
        if unit is not None:
            units[name] = unit
    return limits, units


def unit_names(units: Units) -> dict[str, str]:
    """Return the units of limits for people; counts have none."""
    return {limit: NAMES.get(unit, "") for limit, unit in units.items() if unit != NUMBER}


def built_condition(reason: str, text: object, limits: Mapping[str, float], units: Units) -> Condition:
    """Return a condition of eligible jobs; adds dimensions of its limits to ``units``."""

    def kind(name: str) -> Kind | None:
        return "number" if name in limits else kind_of_fact(name)

    def measure(name: str) -> Measure:
        return Measure(units.get(name)) if name in limits else measure_of_fact(name)

    path = ("require", reason)
    condition = Condition(reason, _expression(path, text, kind, "truth"))
    units.update(_checked(path, condition.expression, measure, limits)[1])
    return condition


def built_rule(
    name: str,
    content: Mapping[str, Any],
    tags: frozenset[str],
    others: tuple[str, ...],
    older: frozenset[str] = frozenset(),
) -> Rule:
    """Build a rule from its table. ``tags``: earlier rules; ``others``: names of all rules.

    ``older``: limits from a file before that of the condition, which may be unused.
    """
    if not _NAME.fullmatch(name):
        raise RuleError((), f"'{name:.70}' is not a valid name of a rule; use small letters, digits and -")
    for key in _REQUIRED:
        if key not in content:
            raise RuleError((), f"rule '{name}' has no {key}{_meant(name, others)}")
    detector = _detector(content)
    limits, units = limits_of(content.get("limits", {}))
    numbers = set(limits) | (set() if detector is None else {*_OF_MEASURE, *detector.numbers})

    def kind(wanted: str) -> Kind | None:
        if wanted in numbers:
            return "number"
        first, dot, second = wanted.partition(".")
        if dot and first == "tag":
            return "truth" if second in tags else None
        return kind_of_fact(wanted)

    def number(key: str, kinds: Callable[[str], Kind | None]) -> Expression | None:
        return _expression((key,), content[key], kinds, "number") if key in content else None

    # a formula of the value cannot use the value
    value = number("value", lambda name: None if name == "value" else kind(name))
    # a tag has a value only if it names a formula
    numbers |= {"value"} & set(content)
    when = _expression(("when",), content["when"], kind, "truth")
    wasted = {key: number(key, kind) for key in _WASTED}
    severity = _severity(content["severity"], lambda name: "number" if name in wasted else kind(name))
    _check_units(_Measures(detector, limits, units, wasted), value, when, severity, content["severity"])
    # shown beside the value: the first limit, if none is named
    threshold = _threshold(content, limits)
    rule = Rule(
        name,
        _one_of(content, "area", AREAS),
        _text(content, "meaning"),
        when,
        severity,
        _hint(content["hint"], lambda name: name in (*_OF_HINT, *wasted) or kind(name) is not None),
        limits,
        "" if detector is None else detector.name,
        _variant(content, detector),
        value,
        threshold,
        wasted["idle_core_h"],
        wasted["idle_gpu_h"],
        _text(content, "metric"),
        _flag(content, "any_job", default=detector is None),
        _flag(content, "alone", default=False),
        unit_names(units),
    )
    # only checked here: the reader of files looks at it
    _flag(content, "enabled", default=True)
    # a limit that nothing uses is a misspelt one
    unused = set(limits) - rule.names - {threshold} - older
    if unused:
        raise RuleError(("limits", min(unused)), f"limit '{min(unused)}' is not used in '{name}'")
    return rule


class _Measures:
    """Units and ranges of the names of a rule; limits without a unit get that of their counterpart."""

    def __init__(
        self,
        detector: Detector | None,
        limits: Mapping[str, float],
        units: Units,
        wasted: Mapping[str, Expression | None],
    ) -> None:
        self._detector = detector
        self._limits = limits
        self._units = units
        self.wasted = wasted
        self.of_value: Measure | None = None

    def checked(self, path: tuple[str, ...], expression: Expression) -> Measure:
        """Return unit and range of an expression; raises :class:`RuleError` if its units do not fit."""
        measure, meant = _checked(path, expression, self._of, self._limits)
        for limit, unit in meant.items():
            self._units.setdefault(limit, unit)
        return measure

    def _of(self, name: str) -> Measure:
        if name in self._limits:
            value = self._limits[name]
            return Measure(self._units.get(name), value, value)
        if name in self.wasted:
            return Measure(HOURS, 0.0)
        detector = self._detector
        if name == "value" and self.of_value is not None:
            return self.of_value
        if detector is not None and (name in _OF_MEASURE or name in detector.numbers):
            number = detector.range_of(name)
            unit = None if number.unit is None else dimension_of(number.unit)
            return Measure(unit, number.low, number.high)
        return measure_of_fact(name)


def _check_units(
    measures: _Measures, value: Expression | None, when: Expression, severity: Graded, bounds: Any
) -> None:
    if value is not None:
        measures.of_value = measures.checked(("value",), value)
    measures.checked(("when",), when)
    for key, expression in measures.wasted.items():
        if expression is not None:
            measures.checked((key,), expression)
    if severity.of is None:
        return
    measure = measures.checked(("severity", "of"), severity.of)
    for name, bound in severity.bounds:
        with _at("severity", name):
            fits(f"the bound '{name}'", measure, severity.of.text, bound, quantity_and_unit(bounds[name])[1])


def _checked(
    path: tuple[str, ...],
    expression: Expression,
    facts: Callable[[str], Measure],
    limits: Mapping[str, float],
) -> tuple[Measure, Units]:
    try:
        return checked(expression.text, facts, limits)
    except ExpressionError as error:
        # an error about a limit names the line of the limit, not that of the condition
        limit = re.match(r"the limit '([^']+)'", str(error))
        raise RuleError(("limits", limit[1]) if limit else path, str(error)) from None


def _meant(name: str, others: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [other for other in others if other != name], n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def _expression(path: tuple[str, ...], text: object, kinds: Any, kind: Kind) -> Expression:
    try:
        expression = read_expression(text, kinds)
    except ExpressionError as error:
        raise RuleError(path, f"{error}{_close(str(error))}") from None
    if expression.kind != kind:
        what = "a condition" if kind == "truth" else "a number"
        raise RuleError(path, f"'{expression.text:.60}' is a {expression.kind}; {path[0]} must be {what}")
    return expression


def _close(reason: str) -> str:
    named = re.fullmatch(r"unknown name '([^']+)'", reason)
    close = close_names(named[1]) if named else []
    return f"; similar: {', '.join(close)}" if close else ""


def _detector(content: Mapping[str, Any]) -> Any:
    if "detector" not in content:
        return None
    try:
        return detector_named(content["detector"])
    except UsageError as error:
        raise RuleError(("detector",), str(error)) from None
    except KeyError:
        names = ", ".join(detector_names())
        raise RuleError(
            ("detector",), f"unknown detector {content['detector']!r:.60}; use one of: {names}"
        ) from None


def _variant(content: Mapping[str, Any], detector: Any) -> str:
    if detector is None:
        if "variant" in content:
            raise RuleError(("variant",), "a tag has no variant; only detectors have variants")
        return ""
    value = content.get("variant", detector.variants[0])
    if value not in detector.variants:
        raise RuleError(
            ("variant",),
            f"{detector.name} has no variant {value!r:.60}; use one of: {', '.join(detector.variants)}",
        )
    return str(value)


def _severity(table: object, kinds: Any) -> Graded:
    if isinstance(table, str):
        return Graded(_severity_name(table))
    if not isinstance(table, dict) or "of" not in table:
        raise RuleError(
            ("severity",), f"severity must be one of {', '.join(SEVERITIES)}, or a table with of and bounds"
        )
    for key in table:
        if key not in ("of", "otherwise", *SEVERITIES[1:]):
            raise RuleError(
                ("severity", key),
                f"unknown key '{key}' in severity; use of, otherwise, {', '.join(SEVERITIES[1:])}",
            )
    of = _expression(("severity", "of"), table["of"], kinds, "number")
    return Graded(_severity_name(table.get("otherwise", "info")), of, _bounds(table))


def _bounds(table: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    bounds: dict[str, float] = {}
    for severity in filter(table.__contains__, SEVERITIES[1:]):
        with _at("severity", severity):
            bounds[severity] = quantity(table[severity])
    values = list(bounds.values())
    if not values:
        raise RuleError(("severity",), f"severity has no bound; use {', '.join(SEVERITIES[1:])}")
    # equal or zigzag bounds would make a severity that nothing reaches
    if len(set(values)) < len(values) or values not in (sorted(values), sorted(values, reverse=True)):
        raise RuleError(("severity",), "the bounds of severity must rise or fall from minor to critical")
    return tuple(bounds.items())


def _severity_name(name: object) -> str:
    if name not in SEVERITIES:
        raise RuleError(("severity",), f"unknown severity {name!r:.40}; use one of: {', '.join(SEVERITIES)}")
    return str(name)


def _threshold(content: Mapping[str, Any], limits: Mapping[str, float]) -> str:
    limit = content.get("threshold", next(iter(limits), ""))
    if not isinstance(limit, str) or (limit and limit not in limits):
        raise RuleError(("threshold",), f"threshold must be one of the limits; {limit!r:.40} is not")
    return limit


def _hint(text: object, kinds: Any) -> Hint:
    with _at("hint"):
        return read_hint(text, kinds)


def _one_of(content: Mapping[str, Any], key: str, values: tuple[str, ...]) -> str:
    if content[key] not in values:
        raise RuleError((key,), f"unknown {key} {content[key]!r:.40}; use one of: {', '.join(values)}")
    return str(content[key])


def _text(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key, "")
    if not isinstance(value, str) or len(value) > 500:
        raise RuleError((key,), f"{key} must be a text of up to 500 characters")
    return value


def _flag(content: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = content.get(key, default)
    if not isinstance(value, bool):
        raise RuleError((key,), f"{key} must be true or false")
    return value
