"""Usage of a centre or grid as one HTML page: hours, people, failures, waiting, scores, issues, energy.

It rests on job records alone and needs no speed factors.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dashboards.targets.html.profile import Part, ProfilePage, render_profile
from esjobs.core.errors import NoResultError
from esjobs.core.numbers import core_h, count, day_range, duration, many, percent
from esjobs.core.text import visible
from esjobs.core.window import Window, format_time
from esjobs.delivered.energy import energy
from esjobs.delivered.work import delivered
from esjobs.issues.worklist import counted_only, work_list
from esjobs.publish.publication import finite
from esjobs.records.answer import Answer
from esjobs.records.jobs.query import query_jobs
from esjobs.render.person import (
    GROUP_COLUMNS,
    ISSUE_COLUMNS,
    efficiency_sentence,
    group_cells,
    used_hours,
)
from esjobs.render.profile.sections import renamed, table_of
from esjobs.render.profile_page import columns_of, curve, points
from esjobs.schema.scores import SCORE_NAMES
from esjobs.scores.rank import rank
from esjobs.store.base import JobStore

TOP = 20  # Queues, projects and users that are listed, those of most core-hours
_METRICS = (
    *("jobs", "core_h", "efficiency", "idle_core_h", "failure_rate", "lost_core_h"),
    *("cancelled_core_h", "waiting_median_s", "waiting_p95_s", "gpu_h", "gpu_efficiency", "energy_kwh"),
)
# Metric, heading and factor of the columns of queues, projects and users
_COLUMNS = (
    *GROUP_COLUMNS,
    ("lost_core_h", "lost core-hours", 1.0),
    ("waiting_median_s", "median waiting, h", 1 / 3600),
)
_DELIVERED = (
    ("benchmark", "benchmark", None),
    ("core_h", "core-hours", None),
    ("declared_h", "score-hours as declared", None),
    ("measured_h", "score-hours as measured", None),
    ("pledge_h", "pledged score-hours", None),
    ("of_pledge_percent", "declared of the pledge, %", None),
)
_ENERGY = (
    ("energy_kwh", "kWh", None),
    ("energy_kwh_err", "standard error, kWh", None),
    ("gco2e", "g CO2e", None),
    ("assumed_frac", "of assumed power, %", 100.0),
)
_CURVES = (
    ("core_h", "Core-hours"),
    ("efficiency", "CPU efficiency"),
    ("failure_rate", "Share of failed jobs"),
)
_LEAST_POINTS = 3
_LONGEST_BY_DAY = 62  # Days up to which a window is drawn by day; longer ones by week

Row = dict[str, Any]


def usage_html(store: JobStore, window: Window, *, people: bool = True) -> str:
    """Return the page of a window as self-contained HTML, for screen and print.

    All jobs that ended in the window count, whatever their state. *Lost* and *idle* are those of ``query``.
    ``people`` False: without names of users: others keep a page that is sent. Cost: some ten grouped queries
    to the jobs, and one to each of scores and issues. Raises :class:`NoJobsError` without jobs.
    """
    total = query_jobs(store, [], _METRICS, window=window).to_pylist()[0]
    parts = [
        Part("Summary", "", _summary(store, window, total), [], None),
        _over_time(store, window),
        _outcomes(store, window, total["core_h"]),
        _names(store, window, "queue", "Queues"),
        _names(store, window, "project", "Projects"),
        _names(store, window, "user", "Users") if people else None,
        _scores(store, window),
        _issues(store, window),
        _delivered(store, window),
        _energy(store, window),
    ]
    title = f"Usage, {day_range(window.start, window.end)}"
    source = f"{many(total['jobs'], 'job')} of {visible(store.capabilities().location)}"
    newest = store.span().last
    if newest is not None:
        source += f"; newest job: {format_time(newest)}"
    return render_profile(ProfilePage(title, source, [part for part in parts if part is not None]))


def _summary(store: JobStore, window: Window, total: Row) -> list[str]:
    counts = {field: _n_names(store, window, field) for field in ("user", "project")}
    people = [many(number, field) for field, number in counts.items() if number]
    whose = f" for {' and '.join(people)}" if people else ""
    sentences = [f"{many(total['jobs'], 'job')}{whose} used {used_hours(total)}.", efficiency_sentence(total)]
    if total["failure_rate"] is not None:
        sentences.append(
            f"{percent(total['failure_rate'])} of the jobs failed; they used {core_h(total['lost_core_h'])}. "
            f"Cancelled jobs used {core_h(total['cancelled_core_h'] or 0.0)}."
        )
    if total["waiting_median_s"] is not None:
        sentences.append(
            f"Half of the jobs started within {duration(total['waiting_median_s'])} of submission, "
            f"95 % within {duration(total['waiting_p95_s'])}."
        )
    return sentences


def _grouped(store: JobStore, window: Window, by: Sequence[str], metrics: Sequence[str]) -> pa.Table:
    """Return groups of jobs, those of most core-hours first."""
    table = query_jobs(store, by, metrics, window=window)
    return table.take(pc.sort_indices(table, sort_keys=[("core_h", "descending")]))


def _n_names(store: JobStore, window: Window, field: str) -> int:
    names = query_jobs(store, [field], ["jobs"], window=window).column(field)
    return int(len(names) - names.null_count)


def _over_time(store: JobStore, window: Window) -> Part | None:
    by, word = ("day", "day") if window.days <= _LONGEST_BY_DAY else ("week", "ISO week")
    table = query_jobs(store, [by], [name for name, _ in _CURVES], window=window)
    rows = sorted((row for row in table.to_pylist() if row[by] is not None), key=itemgetter(by))
    if len(rows) < _LEAST_POINTS:
        return None
    drawn = ((title, points(rows, by, name)) for name, title in _CURVES)
    figures = [curve(title, values, word) for title, values in drawn if values]
    return Part("Over time", "", [], figures, None)


def _outcomes(store: JobStore, window: Window, all_core_h: float | None) -> Part:
    groups = _grouped(store, window, ["state"], ["jobs", "core_h"])
    rows = []
    for row in groups.to_pylist():
        share = row["core_h"] / all_core_h if row["core_h"] is not None and all_core_h else None
        rows.append(
            {
                "state": row["state"] or "not recorded",
                "jobs": row["jobs"],
                "core-hours": finite(row["core_h"]),
                "share of core-hours, %": None if share is None else round(100 * share, 2),
            }
        )
    return _table("How jobs ended", rows)


def _names(store: JobStore, window: Window, field: str, title: str) -> Part | None:
    groups = _grouped(store, window, [field], [metric for metric, _, _ in _COLUMNS])
    if groups.column(field).null_count == len(groups):
        return None
    about = f"The {TOP} of {count(len(groups))} with most core-hours." if len(groups) > TOP else ""
    return _table(
        title, [group_cells(row, field, _COLUMNS) for row in groups.slice(0, TOP).to_pylist()], about
    )


def _table(title: str, rows: Sequence[Row], about: str = "") -> Part:
    """Return a section with a table; columns without any value are omitted."""
    return Part(title, about, [], [], columns_of(table_of(rows)))


def _scores(store: JobStore, window: Window) -> Part | None:
    """Return mean scores of the queues of most node-hours; None where no job is scored."""
    of_queue: dict[str, Row] = {}
    for score in SCORE_NAMES:
        try:
            ranked = rank(store, "queue", score, window=window, top=None).rows.to_pylist()
        except NoResultError:
            return None
        for row in ranked:
            if row["score"] is not None:
                cells = of_queue.setdefault(row["name"], {"queue": row["name"], "node-hours": row["node_h"]})
                cells[score.removeprefix("score_")] = row["score"]
    if not of_queue:
        return None
    largest = sorted(of_queue.values(), key=lambda cells: -cells["node-hours"])[:TOP]
    columns = ["queue", "node-hours", *(name.removeprefix("score_") for name in SCORE_NAMES)]
    rows = [{name: cells.get(name) for name in columns} for cells in largest]
    return _table("Scores", rows, "Means by queue, weighted by node-hours; 0 is best, 100 worst.")


def _issues(store: JobStore, window: Window) -> Part | None:
    title, counted = "Issues of jobs", counted_only(store, window)
    sentences = [f"{counted}."] if counted else []
    try:
        found = work_list(store, ("detector",), window=window, least="info").to_pylist()
    except NoResultError:
        return Part(title, "", sentences, [], None) if sentences else None
    rows = renamed(found, ISSUE_COLUMNS)
    part = _table(title, rows, "Most lost node-hours first. Hours of issues of one job overlap.")
    return replace(part, sentences=sentences)


def _delivered(store: JobStore, window: Window) -> Part | None:
    """Return delivered work by federation, without any by site; None without declared values."""
    answer = delivered(store, ("federation",), window)
    if not any(row["federation"] for row in answer):
        answer = delivered(store, ("site",), window)
    if not any(row["declared_h"] for row in answer):
        return None
    return _of_answer("Delivered work", answer, _DELIVERED)


def _energy(store: JobStore, window: Window) -> Part | None:
    """Return energy and carbon by site; None if no watts are measured."""
    answer = energy(store, ("site",), window)
    if all(row["assumed_frac"] in (None, 1.0) for row in answer):
        return None
    return _of_answer("Energy", answer, _ENERGY)


def _of_answer(title: str, answer: Answer, columns: Sequence[tuple[str, str, float | None]]) -> Part:
    group = answer.rows.column_names[0]
    rows = [group_cells(row, group, columns) for row in answer.rows.slice(0, TOP).to_pylist()]
    about = "; ".join(answer.notes)
    for name, heading, _ in columns:
        about = re.sub(rf"\b{name}\b", heading, about)
    return _table(title, rows, about)
