"""Notices about users and projects whose jobs have issues."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from urllib.parse import quote

from esjobs.core.identity import content_id
from esjobs.core.numbers import core_h, many
from esjobs.core.text import visible
from esjobs.core.window import Window
from esjobs.issues.recurrence import Example, Recurrence
from scheduler.notifications.notices import Notice, Severity

MOST = 1000  # Notices of a night; one more counts the others
_SEVERITY: dict[str, Severity] = {"critical": "critical", "major": "warning"}
_RULES = 4


def job_issue(found: Recurrence, least: str, base_url: str | None = None) -> Notice:
    """Return the notice about a user or project; its id follows from the name and the day.

    ``base_url``: of the web pages, to whose page about the name it leads.
    """
    what, name, rules = found.what, found.name, found.rules
    shown = ", ".join(f"{rule} ({count:,})" for rule, count in rules[:_RULES])
    more = f" and {len(rules) - _RULES} other rules" if len(rules) > _RULES else ""
    idle = ((found.idle_core_h, "core-hours"), (found.idle_gpu_h, "GPU-hours"))
    # less would be shown as 0
    hours = [core_h(hours, unit) for hours, unit in idle if hours >= 0.5]
    saved = f" Up to {' and '.join(hours)} could be saved." if hours else ""
    command = f"esjobs show issues --{what} {shlex.quote(visible(name))} --min-severity {least}"
    recurs = "".join(
        f" {one.rule} recurs in {one.n_jobs:,} jobs named {visible(one.job_name)}, {one.first} to {one.last}."
        for one in found.repeated
    )
    page = f" Page: {base_url.rstrip('/')}/{what}/{quote(name, safe='')}" if base_url else ""
    text = f"{shown}{more}.{recurs}{saved}{_costliest(found.examples)}{page} Details: {command}"
    subject = f"{what.capitalize()} {name}: {many(found.n_jobs, 'job')} with {found.severity} issues"
    return Notice(
        *(identity_of(what, name, found.day), "job_issues", _SEVERITY.get(found.severity, "info")),
        *(subject, text, found.day),
        user=name if what == "user" else None,
    )


def _costliest(examples: Sequence[Example]) -> str:
    """Return a sentence about the costliest job with its advice, and the names of the next ones."""
    if not examples:
        return ""
    first, *others = examples
    named = f" ({visible(first.job_name)})" if first.job_name else ""
    hint = f": {visible(first.hint)}" if first.hint else "."
    also = f" Then jobs {', '.join(visible(one.job_id) for one in others)}." if others else ""
    return f" Costliest: job {visible(first.job_id)}{named}, {first.rule}{hint}{also}"


def identity_of(what: str, name: str, day: date) -> str:
    """Return the id of the notice about a user or project on a day."""
    return content_id({"kind": "job_issues", "what": what, "name": name, "day": day.isoformat()}, 20)


def running_job(row: Mapping[str, Any]) -> Notice:
    """Return the warning about a running job; one per job and rule."""
    source, job_id, rule = row["source"], row["job_id"], row["rule"]
    identity = content_id({"kind": "running", "source": source, "job": job_id, "rule": rule}, 20)
    of_user = f" of {visible(row['user'])}" if row["user"] else ""
    subject = f"Running job {visible(job_id)}{of_user}: {rule}"
    text = f"{visible(row['finding'])}. Details: esjobs show running_issues"
    return Notice(identity, "job_issues", "warning", subject, text, row["warned_at"].date(), user=row["user"])


def more_job_issues(n: int, day: date, least: str) -> Notice:
    """Return the notice about users and projects beyond the limit."""
    identity = content_id({"kind": "job_issues", "more": day.isoformat()}, 20)
    text = f"Details: esjobs show issues --window {Window.of_days(day, day)} --min-severity {least}"
    return Notice(
        identity, "job_issues", "info", f"{n:,} more users and projects have jobs with issues", text, day
    )
