"""Incidents in words."""

import json
import shlex
from datetime import date
from typing import TYPE_CHECKING, Any

from esjobs.core.numbers import core_h, many, percent
from esjobs.core.text import visible
from esjobs.core.window import Window
from esjobs.schema.today import EFFICIENCY, EVERYWHERE

if TYPE_CHECKING:
    from esjobs.today.findings import Finding, Literals
    from esjobs.today.states import Incident

_NOT_IN_RECORDS = 0.5  # Share of the loss below which a cause explains too little
_WORTH_SAYING = 0.02  # Failures beyond the expected that stand beside a loss of efficiency
PEOPLE = ("user", "project")
"""Parts of the jobs that a sentence does not name: ``cause_key`` does."""


def key_of(metric: str, literals: "Literals") -> str:
    """Return the identity of a part of the jobs."""
    return json.dumps([metric, *literals], ensure_ascii=False)


def literals_of(key: str) -> tuple[str, "Literals"]:
    """Return metric and part of the jobs of an identity; neither after a name in it was removed.

    >>> literals_of('["failed", ["user", "a"]]'), literals_of("id-d0f0a51d322e625f7927")
    (('failed', (('user', 'a'),)), ('', ()))
    """
    if not key.startswith("["):
        return "", ()
    metric, *literals = json.loads(key)
    return metric, tuple((str(dimension), str(name)) for dimension, name in literals)


def cause_of(found: "Finding") -> dict[str, Any]:
    """Return the columns about the cause of a finding."""
    return {
        "cause": None if found.what else _cause(found),
        "cause_share": found.share,
        "cause_key": key_of(found.metric, found.literals),
    }


def _cause(found: "Finding") -> str:
    words = ", ".join(_literal(*each) for each in found.literals)
    if found.share is None:
        return "cause not in the records"
    if not found.literals:
        return "all jobs" if found.site == EVERYWHERE else "all queues and kinds of work"
    if found.share < _NOT_IN_RECORDS:
        return f"cause not in the records; most: {words}"
    return words


def _literal(dimension: str, name: str) -> str:
    if dimension == "task":
        task, _, kind = name.partition("\x1f")
        return f"task {visible(task) or 'unnamed'}" + (f" ({visible(kind)})" if kind else "")
    if dimension == "category":
        kind, _, code = visible(name).partition(", ")
        error = code if code.startswith("exit code") else f"error {code}"
        return visible(name) if not code else error if kind == "failed" else f"{kind}, {error}"
    if dimension == "kind":
        return visible(name) or "no processing type"
    if dimension in PEOPLE:
        # pages without names of people show this, too
        return f"one {dimension}"
    return f"{dimension} {visible(name)}"


def hours(value: float) -> str:
    """Format a cost in core-hours, with two digits.

    >>> hours(31_400.0), hours(0.0)
    ('31,000 core-hours', '0.0 core-hours')
    """
    return core_h(float(f"{value:.2g}"))


def day(value: date) -> str:
    """Format a day without its year.

    >>> day(date(2026, 6, 7))
    '7 Jun'
    """
    return f"{value.day} {value:%b}"


def sentence(one: "Incident") -> str:
    """Return what an incident is, since when, at what cost, and its cause."""
    place = "Everywhere" if one.site == EVERYWHERE else visible(one.site)
    if one.until is not None:
        lasted = many((one.until - one.since).days + 1, "day")
        first, last = day(one.since), day(one.until)
        days = first if first == last else f"{first} to {last} ({lasted})"
        cost = "" if one.what else f"; {hours(one.total_core_h)}"
        return f"{place}: {what_is_wrong(one)}, {days}{cost}"
    parts = [f"{what_is_wrong(one)} since {_since(one)}", _why(one)]
    if not one.what:
        parts.append(f"{hours(one.cost_core_h or 0.0)} a day, {hours(one.total_core_h)} so far")
    parts.append(usual_again(one))
    return f"{place}: {'; '.join(filter(None, parts))}"


def task_of(one: "Incident") -> str | None:
    """Return the task that is the cause of an incident; None for another cause."""
    task, _, _ = dict(literals_of(one.cause_key or "")[1]).get("task", "").partition("\x1f")
    return task or None


def usual_again(one: "Incident") -> str:
    """Return that the last night was a usual one, after which it may be over; empty if it was not."""
    return f"as usual on {day(one.night)}" if one.quiet_nights and one.until is None else ""


def command(one: "Incident") -> str | None:
    """Return the command that shows the cost of an incident in parts; None for one without a cost."""
    window = window_of(one)
    return None if window is None else f"esjobs incident {shlex.quote(one.site)} --window {window}"


def window_of(one: "Incident") -> Window | None:
    """Return the days of an incident of a site; None for one everywhere, and for one that costs nothing."""
    costs = one.site != EVERYWHERE and not one.what
    return Window.of_days(one.since, one.until or one.seen_on or one.night) if costs else None


def _since(one: "Incident") -> str:
    times = [
        f"{day(each.date())} {each:%H:%M}" for each in (one.onset, one.onset_low, one.onset_high) if each
    ]
    if one.onset is None or len(times) < 3:
        return day(one.since)
    low, high = (each.removeprefix(f"{day(one.onset.date())} ") for each in times[1:])
    return times[0] if low == high else f"{times[0]} ({low} to {high})"


def what_is_wrong(one: "Incident") -> str:
    """Return the metrics of an incident that are outside of what was expected, the costlier one first."""
    if one.what:
        return one.what
    efficiency, failures = _efficiency(one), _failures(one)
    ordered = (efficiency, failures) if one.metric == EFFICIENCY else (failures, efficiency)
    return ", ".join(filter(None, ordered)) or "no numbers"


def _efficiency(one: "Incident") -> str:
    if one.efficiency is None or one.efficiency_expected is None or one.efficiency_low is None:
        return ""
    if one.efficiency >= one.efficiency_low and one.metric != EFFICIENCY:
        return ""
    was, now = percent(one.efficiency_expected), percent(one.efficiency)
    return f"efficiency {now} instead of {was} ({_between(one.efficiency_low, one.efficiency_high)})"


def _failures(one: "Incident") -> str:
    if one.failed is None or one.failed_expected is None:
        return ""
    few = one.failed < max(2 * one.failed_expected, one.failed_expected + _WORTH_SAYING)
    if few and one.metric == EFFICIENCY:
        return ""
    return f"{percent(one.failed)} failed instead of {percent(one.failed_expected)}"


def _between(low: float, high: float | None) -> str:
    upper = percent(high)
    return f"expected {percent(low).removesuffix(' %')} to {upper}"


def _why(one: "Incident") -> str:
    if one.cause is None:
        return ""
    if one.site == EVERYWHERE:
        return f"{one.cause}, {many(one.n_sites, 'site')}; sites are not to blame"
    share = "" if one.cause_share is None else f", {percent(one.cause_share)} of the loss"
    return f"{one.cause}{share if not one.cause.startswith('all ') else ''}"
