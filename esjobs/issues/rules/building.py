"""Makes rules of what stands in their tables; says which key is wrong, and why."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from esjobs.core.errors import UsageError
from esjobs.issues.catalogue import Detector, detector_named, detector_names, unit_and_range
from esjobs.issues.rules.expressions import Expression, ExpressionError, Kind, read_expression
from esjobs.issues.rules.hints import Hint, HintError, read_hint
from esjobs.issues.rules.measures import HOURS, NAMES, NUMBER, Dimension, Measure, checked, dimension_of, fits
from esjobs.issues.rules.quantities import quantity, quantity_and_unit
from esjobs.issues.rules.rule import Condition, Graded, Rule
from esjobs.issues.rules.vocabulary import close_names, kind_of_fact, measure_of_fact
from esjobs.schema.issues import AREAS, SEVERITIES

BUILT = (
    *("detector", "variant", "area", "meaning", "when", "limits", "value", "threshold", "severity", "hint"),
    *("idle_core_h", "wasted_gpu_hours", "metric", "any_job", "enabled"),
)
"""The keys of a rule."""
_REQUIRED = ("area", "when", "severity", "hint")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_LIMIT = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OF_MEASURE = ("value", "share", "n_samples")
"""Names that every detector gives, beside its own numbers."""
_OF_HINT = ("threshold", "job_id", "source", "unit", "metric", "begin", "until", "wasted", "scope")
_WORDS = (
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "value",
    "share",
    "threshold",
    "known",
    "min",
    "max",
    "abs",
)


class RuleError(Exception):
    """What is wrong with a rule; ``path``: the key that it is about."""

    def __init__(self, path: tuple[str, ...], reason: str) -> None:
        super().__init__(reason)
        self.path = path


def tag_name(name: str) -> str:
    """How conditions name a rule after ``tag.``.

    >>> tag_name("memory-bound")
    'memory_bound'
    """
    return name.replace("-", "_")


Units = dict[str, Dimension]
"""What limits that have a unit count, by name."""


def limits_of(given: object) -> tuple[dict[str, float], Units]:
    """Limits in base units, and what they count, by name; :class:`RuleError` for what is none."""
    if not isinstance(given, dict):
        raise RuleError(("limits",), "limits are a table of names and numbers")
    limits: dict[str, float] = {}
    units: Units = {}
    for name, value in given.items():
        if not _LIMIT.fullmatch(name) or name in _WORDS:
            raise RuleError(("limits", name), f"'{name:.40}' is no name of a limit")
        if kind_of_fact(name) is not None:
            raise RuleError(("limits", name), f"'{name}' is a field of jobs; name the limit otherwise")
        try:
            limits[name], unit = quantity_and_unit(value)
        except ValueError as error:
            raise RuleError(("limits", name), str(error)) from None
        if unit is not None:
            units[name] = unit
    return limits, units


def unit_names(units: Units) -> dict[str, str]:
    """The units of limits as people write them; those that count things have none."""
    return {limit: NAMES.get(unit, "") for limit, unit in units.items() if unit != NUMBER}


def built_condition(reason: str, text: object, limits: Mapping[str, float], units: Units) -> Condition:
    """A condition that jobs must meet."""

    def known(name: str) -> Kind | None:
        return "number" if name in limits else kind_of_fact(name)

    def measure(name: str) -> Measure:
        return Measure(units.get(name)) if name in limits else measure_of_fact(name)

    path = ("require", reason)
    condition = Condition(reason, _expression(path, text, known, "truth"))
    units.update(_checked(path, condition.expression, measure, limits)[1])
    return condition


def built_rule(
    name: str,
    content: Mapping[str, Any],
    tags: frozenset[str],
    others: tuple[str, ...],
    older: frozenset[str] = frozenset(),
) -> Rule:
    """A rule from its table; ``tags``: the rules before it, ``others``: the names of all.

    ``older``: limits of a file before the one that says when it fires, which may leave them unused.
    """
    if not _NAME.fullmatch(name):
        raise RuleError((), f"'{name:.70}' is no name of a rule: small letters, digits and -")
    for key in _REQUIRED:
        if key not in content:
            raise RuleError((), f"the rule '{name}' lacks {key}{_meant(name, others)}")
    detector = _detector(content)
    limits, units = limits_of(content.get("limits", {}))
    numbers = {} if detector is None else dict.fromkeys((*_OF_MEASURE, *detector.numbers), "number")
    own = {**dict.fromkeys(limits, "number"), **numbers}

    def known(wanted: str) -> Kind | None:
        if wanted in own:
            return "number"
        if wanted == "value" and "value" in content:
            return "number"
        first, dot, second = wanted.partition(".")
        if dot and first == "tag":
            return "truth" if second in tags else None
        return kind_of_fact(wanted)

    value = None
    if "value" in content:
        value = _expression(
            ("value",), content["value"], lambda n: None if n == "value" else known(n), "number"
        )
    when = _expression(("when",), content["when"], known, "truth")
    wasted = {
        key: _expression((key,), content[key], known, "number") if key in content else None
        for key in ("idle_core_h", "wasted_gpu_hours")
    }
    severity = _severity(content["severity"], lambda n: "number" if n in wasted else known(n))
    measured = _Measures(detector, limits, units, wasted)
    if value is not None:
        measured.of_value = measured.checked(("value",), value)
    for key, expression in (("when", when), *wasted.items(), ("of", severity.of)):
        if expression is not None:
            given = measured.checked(("severity", key) if key == "of" else (key,), expression)
            if key == "of":
                _fitting_bounds(severity, given, content["severity"])
    threshold = _threshold(content, limits)
    rule = Rule(
        name,
        _one_of(content, "area", AREAS),
        _text(content, "meaning"),
        when,
        severity,
        _hint(content["hint"], lambda n: n in _OF_HINT or n in wasted or known(n) is not None),
        limits,
        "" if detector is None else detector.name,
        _variant(content, detector),
        value,
        threshold,
        wasted["idle_core_h"],
        wasted["wasted_gpu_hours"],
        _text(content, "metric"),
        _flag(content, "any_job", default=detector is None),
        unit_names(units),
    )
    _flag(content, "enabled", default=True)
    unused = set(limits) - rule.names - {threshold} - older
    if unused:
        raise RuleError(("limits", min(unused)), f"the limit '{min(unused)}' is used nowhere in '{name}'")
    return rule


class _Measures:
    """What the names of a rule count; ``units``: of its limits, completed by what they are compared with."""

    def __init__(
        self, detector: Detector | None, limits: Mapping[str, float], units: Units, wasted: Collection[str]
    ) -> None:
        self._detector = detector
        self._limits = limits
        self._units = units
        self._wasted = wasted
        self.of_value: Measure | None = None

    def checked(self, path: tuple[str, ...], expression: Expression) -> Measure:
        """What an expression gives; :class:`RuleError` where its units do not fit."""
        measure, meant = _checked(path, expression, self._of, self._limits)
        for limit, unit in meant.items():
            self._units.setdefault(limit, unit)
        return measure

    def _of(self, name: str) -> Measure:
        if name in self._limits:
            value = self._limits[name]
            return Measure(self._units.get(name), value, value)
        if name in self._wasted:
            return Measure(HOURS, 0.0)
        detector = self._detector
        if name == "value" and self.of_value is not None:
            return self.of_value
        if detector is not None and (name in _OF_MEASURE or name in detector.numbers):
            unit, low, high = unit_and_range(detector, name)
            return Measure(None if unit is None else dimension_of(unit), low, high)
        return measure_of_fact(name)


def _checked(
    path: tuple[str, ...],
    expression: Expression,
    facts: Callable[[str], Measure],
    limits: Mapping[str, float],
) -> tuple[Measure, Units]:
    try:
        return checked(expression.text, facts, limits)
    except ExpressionError as error:
        limit = re.match(r"the limit '([^']+)'", str(error))
        raise RuleError(("limits", limit[1]) if limit else path, str(error)) from None


def _fitting_bounds(severity: Graded, of: Measure, given: Mapping[str, Any]) -> None:
    """Refuse bounds of another unit than that of the number they are about."""
    text = "" if severity.of is None else severity.of.text
    for name, bound in severity.bounds:
        try:
            fits(f"the bound '{name}'", of, text, bound, quantity_and_unit(given[name])[1])
        except ExpressionError as error:
            raise RuleError(("severity", name), str(error)) from None


def _meant(name: str, others: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [other for other in others if other != name], n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def _expression(path: tuple[str, ...], text: object, known: Any, kind: Kind) -> Expression:
    try:
        expression = read_expression(text, known)
    except ExpressionError as error:
        raise RuleError(path, f"{error}{_close(str(error))}") from None
    if expression.kind != kind:
        what = "a condition" if kind == "truth" else "a number"
        raise RuleError(path, f"'{expression.text:.60}' is a {expression.kind}; {path[0]} is {what}")
    return expression


def _close(reason: str) -> str:
    named = re.fullmatch(r"there is no '([^']+)'", reason)
    close = close_names(named[1]) if named else []
    return f"; close are {', '.join(close)}" if close else ""


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
            ("detector",), f"there is no detector {content['detector']!r:.60}; there are {names}"
        ) from None


def _variant(content: Mapping[str, Any], detector: Any) -> str:
    if detector is None:
        if "variant" in content:
            raise RuleError(("variant",), "a tag has no variant; only detectors have")
        return ""
    given = content.get("variant", detector.variants[0])
    if given not in detector.variants:
        raise RuleError(
            ("variant",),
            f"{detector.name} has no variant {given!r:.60}; there are {', '.join(detector.variants)}",
        )
    return str(given)


def _severity(given: object, known: Any) -> Graded:
    if isinstance(given, str):
        _severity_name(given)
        return Graded(given)
    if not isinstance(given, dict) or "of" not in given:
        raise RuleError(
            ("severity",), f"severity is one of {', '.join(SEVERITIES)}, or a table with of and bounds"
        )
    for key in given:
        if key not in ("of", "otherwise", *SEVERITIES[1:]):
            raise RuleError(
                ("severity", key),
                f"severity has no '{key}'; there are of, otherwise, {', '.join(SEVERITIES[1:])}",
            )
    of = _expression(("severity", "of"), given["of"], known, "number")
    otherwise = given.get("otherwise", "info")
    _severity_name(otherwise)
    bounds = []
    for severity in SEVERITIES[1:]:
        if severity in given:
            try:
                bounds.append((severity, quantity(given[severity])))
            except ValueError as error:
                raise RuleError(("severity", severity), str(error)) from None
    values = [bound for _, bound in bounds]
    if not values:
        raise RuleError(("severity",), f"severity names no bound; there are {', '.join(SEVERITIES[1:])}")
    if len(set(values)) < len(values) or values not in (sorted(values), sorted(values, reverse=True)):
        raise RuleError(("severity",), "the bounds of severity are to rise or to fall from minor to critical")
    return Graded(otherwise, of, tuple(bounds))


def _severity_name(given: object) -> None:
    if given not in SEVERITIES:
        raise RuleError(
            ("severity",), f"there is no severity {given!r:.40}; there are {', '.join(SEVERITIES)}"
        )


def _threshold(content: Mapping[str, Any], limits: Mapping[str, float]) -> str:
    given = content.get("threshold", next(iter(limits), ""))
    if not isinstance(given, str) or (given and given not in limits):
        raise RuleError(("threshold",), f"threshold names one of the limits; {given!r:.40} is none")
    return given


def _hint(given: object, known: Any) -> Hint:
    try:
        return read_hint(given, known)
    except HintError as error:
        raise RuleError(("hint",), str(error)) from None


def _one_of(content: Mapping[str, Any], key: str, values: tuple[str, ...]) -> str:
    if content[key] not in values:
        raise RuleError((key,), f"there is no {key} {content[key]!r:.40}; there are {', '.join(values)}")
    return str(content[key])


def _text(content: Mapping[str, Any], key: str) -> str:
    given = content.get(key, "")
    if not isinstance(given, str) or len(given) > 500:
        raise RuleError((key,), f"{key} is a text of up to 500 characters")
    return given


def _flag(content: Mapping[str, Any], key: str, *, default: bool) -> bool:
    given = content.get(key, default)
    if not isinstance(given, bool):
        raise RuleError((key,), f"{key} is true or false")
    return given
