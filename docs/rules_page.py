"""Page of the rules that judge jobs, and of the detectors that they build on."""

from esjobs.issues.catalogue import DETECTORS
from esjobs.issues.rules.reading import read_rules
from esjobs.issues.rules.rule import Rule

_HEAD = """# Rules and detectors

{note}
The built-in rules; `esjobs rules show` prints those in force at your site, with hints. How
rules are written and changed: [scores and issues](scores.md#rules). Limits are in base units.
"""
_DETECTORS = """
## Detectors

What a detector measures, its unit, the metrics that it needs, and the further numbers that rules may use.
"""


def rules_page(note: str) -> str:
    """Return the page: the rules by area, then the detectors."""
    rules = read_rules([]).rules
    lines = [_HEAD.format(note=note)]
    for area in dict.fromkeys(rule.area for rule in rules):
        lines.append(f"\n## {area}\n")
        lines += [_rule(rule) for rule in rules if rule.area == area]
    lines.append(_DETECTORS)
    for detector in DETECTORS:
        needs = ", ".join(f"`{each}`" for each in detector.metrics)
        if detector.any_metrics:
            needs += " and one of " + ", ".join(f"`{each}`" for each in detector.any_metrics)
        numbers = ", ".join(f"`{each}`" for each in detector.numbers)
        variants = f"; variants {', '.join(detector.variants)}" if len(detector.variants) > 1 else ""
        lines.append(
            f"- `{detector.name}` ({detector.unit}): {detector.meaning}. {needs}. {numbers}{variants}"
        )
    return "\n".join(lines) + "\n"


def _rule(rule: Rule) -> str:
    """Return name, severity, meaning and limits of a rule."""
    limits = ", ".join(f"{name} {value:g}" for name, value in rule.limits.items())
    bounds = "" if rule.severity.of is None else " and worse"
    text = f"{rule.meaning}; {limits}" if limits else rule.meaning
    return f"- `{rule.name}` ({rule.severity.otherwise}{bounds}): {text}"
