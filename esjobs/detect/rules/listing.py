"""Rules as a table for people."""

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.detect.rules.rule import Graded, Rule, Rules

_COLUMNS = (
    *("name", "kind", "area", "meaning", "detector", "variant", "when", "value", "limits", "severity"),
    *("wasted_core_hours", "wasted_gpu_hours", "any_job", "hint"),
)


def rules_table(rules: Rules, name: str | None = None) -> pa.Table:
    """A row per rule, in their order; :class:`UsageError` for a name that no rule has."""
    chosen = [rule for rule in rules.rules if name in (None, rule.name)]
    if not chosen:
        raise UsageError(
            f"there is no rule '{name}'; there are {', '.join(rule.name for rule in rules.rules)}"
        )
    schema = pa.schema([(column, pa.bool_() if column == "any_job" else pa.string()) for column in _COLUMNS])
    return pa.Table.from_pylist([_row(rule) for rule in chosen], schema)


def changes(before: Rules, after: Rules) -> dict[str, list[str]]:
    """The names of rules that are new, changed, or left out, in their order."""
    old = {rule.name: _row(rule) for rule in before.rules}
    new = {rule.name: _row(rule) for rule in after.rules}
    return {
        "new": [name for name in new if name not in old],
        "changed": [name for name in new if name in old and new[name] != old[name]],
        "left out": [name for name in old if name not in new],
    }


def _row(rule: Rule) -> dict[str, object]:
    texts = {
        key: None if expression is None else expression.text
        for key, expression in (
            ("value", rule.value),
            ("wasted_core_hours", rule.wasted_core_hours),
            ("wasted_gpu_hours", rule.wasted_gpu_hours),
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
