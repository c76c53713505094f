"""Tables of rules and their differences."""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.issues.rules.hints import formatted, prefixed
from esjobs.issues.rules.rule import Graded, Rule, Rules

_COLUMNS = (
    *("name", "kind", "area", "meaning", "detector", "variant", "when", "value", "limits", "severity"),
    *("idle_core_h", "idle_gpu_h", "any_job", "hint"),
)
# Keys too long to be told twice
_PROSE = ("hint", "meaning")


def rules_table(rules: Rules, name: str | None = None) -> pa.Table:
    """Return one row per rule; raises :class:`UsageError` for an unknown name."""
    chosen = [rule for rule in rules.rules if name in (None, rule.name)]
    if not chosen:
        raise UsageError(f"unknown rule '{name}'; use one of: {', '.join(rule.name for rule in rules.rules)}")
    schema = pa.schema([(column, pa.bool_() if column == "any_job" else pa.string()) for column in _COLUMNS])
    return pa.Table.from_pylist([_row(rule) for rule in chosen], schema)


def changes(before: Rules, after: Rules) -> dict[str, list[str]]:
    """Return the names of new, changed and omitted rules."""
    old = {rule.name: _keys(rule) for rule in before.rules}
    new = {rule.name: _keys(rule) for rule in after.rules}
    return {
        "new": [name for name in new if name not in old],
        "changed": [name for name in new if name in old and new[name] != old[name]],
        "removed": [name for name in old if name not in new],
    }


def change_lines(before: Rules, after: Rules) -> Iterator[str]:
    """Yield one line per changed rule or condition, with old and new keys."""
    for rule in after.rules:
        earlier = before.rule(rule.name)
        if earlier is not None and (parts := list(_changed_keys(_keys(earlier), _keys(rule)))):
            yield f"{rule.name}: {'; '.join(parts)}"
    keys = [_keys_of_eligible(rules) for rules in (before, after)]
    if parts := list(_changed_keys(*keys)):
        yield f"jobs that count: {'; '.join(parts)}"


def _changed_keys(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old is None:
            yield f"{key} is new ({new})"
        elif new is None:
            yield f"{key} is removed"
        elif old != new:
            yield f"{key} changed" if key in _PROSE else f"{key} {old} -> {new}"


def _keys(rule: Rule) -> dict[str, str]:
    """Return the keys of a rule; limits individually, with units."""
    row = {key: "none" if value is None else str(value) for key, value in _row(rule).items()}
    del row["limits"]
    shown = {"threshold": rule.threshold or "none", "metric": rule.metric or "none"}
    return {**row, **shown, **_limits(rule)}


def _keys_of_eligible(rules: Rules) -> dict[str, str]:
    return {**_limits(rules), **{f"'{each.reason}'": each.expression.text for each in rules.eligible}}


def _limits(of: Rule | Rules) -> dict[str, str]:
    return {f"limits.{name}": _with_unit(value, of.units.get(name, "")) for name, value in of.limits.items()}


def _with_unit(value: float, unit: str) -> str:
    """Return a limit with a readable unit; bytes in that of the rule, as far as it shows.

    >>> _with_unit(64e9, "B"), _with_unit(2.0**36, "B"), _with_unit(3600, "s"), _with_unit(0.25, "")
    ('64 GB', '64 GiB', '60 min', '0.25')
    """
    first, _, second = unit.partition("/")
    if first == "B":
        text = prefixed("B", value) if value % 2**20 else formatted(value, "bytes")
        return text + (f"/{second}" if second else "")
    if unit == "s":
        return formatted(value, "time")
    # hours are of cores, GPUs or nodes: the first stands for all
    return f"{value:g}" + (f" {unit.partition(',')[0]}" if unit else "")


def _row(rule: Rule) -> dict[str, object]:
    texts = {
        key: None if expression is None else expression.text
        for key, expression in (
            ("value", rule.value),
            ("idle_core_h", rule.idle_core_h),
            ("idle_gpu_h", rule.idle_gpu_h),
        )
    }
    return {
        "name": rule.name,
        "kind": rule.kind,
        "area": rule.area,
        "meaning": rule.meaning,
        "detector": rule.detector or None,
        "variant": rule.variant or None,
        "when": rule.when.text,
        **texts,
        "limits": ", ".join(f"{limit} = {value:g}" for limit, value in rule.limits.items()),
        "severity": _graded(rule.severity),
        "any_job": rule.any_job,
        "hint": rule.hint.text,
    }


def _graded(severity: Graded) -> str:
    if severity.of is None:
        return severity.otherwise
    bounds = ", ".join(f"{name} {bound:g}" for name, bound in severity.bounds)
    return f"by {severity.of.text}: {bounds}; else {severity.otherwise}"
