"""Data needed for an undecided verdict: jobs, tasks, processing types, a declared value.

A verdict is decided when the deviation is 95 % sure to be beyond the limit, or within it: about when the
half-width of its 90 % interval is smaller than its distance from the limit. The variance of the deviation has
parts that shrink with jobs (their scatter inside buckets), with tasks (queue x task interaction), with kinds
of work (what a queue does to all tasks of a type or core class alike), and that of the line, which nothing of
this queue changes. What is said here holds if the deviation stays what it is and new tasks are like those
that are there.
"""

import math
from collections.abc import Mapping
from typing import Any

from esjobs.core.numbers import exact_percent, percent, sure
from esjobs.core.words import CHANGED_SPEED, HALF_WIDTH_90, SURE

# Factors above this are no advice any more
_MOST = 50


_WITH_OTHERS = "jobs of tasks that run at many other queues too, 50 or more of them"
_NEEDED = {
    "undeclared": "declare a value of its own, measured on its machines",
    "not comparable": _WITH_OTHERS,
    "via CPU models": _WITH_OTHERS,
    "too few": "more jobs of tasks that run at other queues",
    "mixed": "other tasks: its tasks mix two kinds of jobs that the records do not separate",
    "implausible": "correct records: its events, times or cores do not fit those of the same tasks elsewhere",
}


def needed(flag: Mapping[str, Any], factor: Mapping[str, Any] | None, limit: float) -> str:
    """Return sentences about the data needed for a row of ``flags``; empty for a decided verdict.

    ``factor``: the row of the same name, type and method in ``factors``; None: unknown. ``limit``: of a
    deviation, such as 0.2.
    """
    verdict = flag["verdict"]
    if verdict == "undecided":
        return _undecided(flag, factor, limit)
    if verdict == "deviates" and not flag["confirmed"]:
        return _unconfirmed(flag)
    if verdict == "implausible" and CHANGED_SPEED in (flag["sentence"] or ""):
        return "a window after its change: its speed is not one number over this one"
    return _NEEDED.get(verdict, "")


def _unconfirmed(flag: Mapping[str, Any]) -> str:
    lacking = []
    if not flag["significant"]:
        lacking.append("a line that tells who is wrong: right declarations at other sites")
    if flag["stable"] is False:
        lacking.append(f"stability: the verdict changes in a stability check ({flag['unstable_under']})")
    return "; ".join(lacking)


def _undecided(flag: Mapping[str, Any], factor: Mapping[str, Any] | None, limit: float) -> str:
    deviation = flag["deviation"]
    distance = abs(abs(deviation) - limit)
    wanted = (distance / HALF_WIDTH_90) ** 2
    if wanted == 0:
        return f"nothing: its deviation lies on the limit of {exact_percent(limit)} itself"
    if flag["deviation_err"] ** 2 <= wanted:
        likely = max(flag["p_off"], 1 - flag["p_off"])
        return f"it is {sure(likely)} sure, {exact_percent(SURE)} decide: more tasks shared with other queues"
    jobs = (flag["deviation_err_stat"] or 0.0) ** 2
    lasting = _lasting(flag, factor)
    tasks = max(0.0, (flag["deviation_err_int"] or 0.0) ** 2 - lasting)
    line = max(0.0, flag["deviation_err"] ** 2 - jobs - tasks - lasting)
    half_width = percent(HALF_WIDTH_90 * flag["deviation_err"])
    now = f"its interval is ± {half_width}, ± {percent(distance)} would decide"
    if line >= wanted:
        precision = percent(HALF_WIDTH_90 * math.sqrt(line))
        return f"{now}; more jobs of its own will not: the line of the others is known to ± {precision}"
    if line + lasting >= wanted:
        kinds = "tasks of other processing types or core classes"
        return f"{now}; more jobs of the same kind will not help: {kinds} that other queues run as well"
    if line + lasting + tasks < wanted and jobs:
        many = jobs / (wanted - line - lasting - tasks)
        return f"{now}: {_times(many, flag['n_jobs'], 'jobs of the same tasks')}"
    many = (jobs + tasks) / (wanted - line - lasting)
    return f"{now}: {_times(many, flag['n_tasks'], 'tasks shared with other queues')}"


def _times(many: float, present: int | None, what: str) -> str:
    if many > _MOST:
        return f"this requires more than {_MOST} times its {what}"
    if not present:
        return f"this requires {many:.2g} times its {what}"
    return f"about {math.ceil(many * present):,} {what} instead of {present:,}"


def _lasting(flag: Mapping[str, Any], factor: Mapping[str, Any] | None) -> float:
    """The variance of the deviation that more tasks of the same kinds leave, as the fit says it of k."""
    if factor is None or not factor["k"]:
        return 0.0
    parts = (factor["k_err_type"], factor["k_err_class"])
    relative = sum(((part or 0.0) / factor["k"]) ** 2 for part in parts)
    return float(min(relative * (1 + flag["deviation"]) ** 2, (flag["deviation_err_int"] or 0.0) ** 2))
