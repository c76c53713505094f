"""A job's page as lines of text for a terminal, and the words that both pages share."""

import io
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from esjobs.core import fields
from esjobs.core.arrays import Floats
from esjobs.core.metrics import METRICS
from esjobs.core.text import visible
from esjobs.issues.earlier_runs import HEADINGS, cells
from esjobs.issues.one_job import JobStory, Row
from esjobs.issues.plots import Plot, sparkline, underline
from esjobs.issues.rules.hints import formatted
from esjobs.issues.rules.vocabulary import kind_of_fact
from esjobs.pop.text import tree_lines
from esjobs.records.series.energy import joules
from esjobs.render.text.roofline import roofline_headline, roofline_notes
from esjobs.render.text.table import write_text_table
from esjobs.schema.scores import SCORE_NAMES

_FORMS = {"B": "bytes", "B/s": "rate", "Hz": "clock", "W": "power"}
# Columns of a sparkline
_LEAST, _MOST = 20, 100
_AS_IS: dict[str, Any] = {"drop_whitespace": True, "break_long_words": False, "break_on_hyphens": False}


def record_lines(story: JobStory) -> Iterator[tuple[str, str]]:
    """Name and value of the known fields of the record, as people read them."""
    for name, value in story.record.items():
        if name in ("source", "job_id"):
            continue
        field = fields.field(name)
        if isinstance(value, datetime):
            yield name, f"{value:%Y-%m-%d %H:%M:%S} UTC"
        elif field.type == "map":
            yield from _counter_lines(name, value)
        else:
            yield name, _written(value, field)
    parts = joules(story.footprints, story.record.get("wall_s"))
    if "energy_j" not in story.record and parts:
        yield "energy", f"{formatted(sum(parts.values()), 'energy')} ({' + '.join(parts)})"


def _written(value: Any, field: fields.Field) -> str:
    if field.unit in ("B", "J"):
        return formatted(float(value), _FORMS.get(field.unit, "energy"))
    if field.unit == "s":
        long = f" ({formatted(float(value), 'time')})" if value >= 120 else ""
        return f"{formatted(float(value))} s{long}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field.type == "integer":
        return f"{value:,}"
    return " ".join(filter(None, [formatted(value), field.unit]))


def _counter_lines(name: str, counters: list[tuple[str, float]]) -> Iterator[tuple[str, str]]:
    """Names of events, and figures of metrics (``gpu_load.mean``) with their values."""
    figures = {key: number for key, number in counters if "." in key and kind_of_fact(key)}
    events = [visible(key) for key, _ in counters if key not in figures]
    if events:
        yield name, f"{len(events)} events: {', '.join(events[:5])}{', ...' if len(events) > 5 else ''}"
    for key, number in figures.items():
        yield key, formatted(number, form_of(key.partition(".")[0]))


def form_of(metric: str) -> str:
    """Return the form in which people write values of a metric of time series."""
    measure = next((each.unit for each in METRICS if each.name == metric), "")
    return _FORMS.get(measure, "flops" if metric.startswith("flops") else "number")


def figure(row: Row, name: str) -> str:
    """Return a figure of a footprint with its unit."""
    if name in ("imbalance", "gap_frac"):
        return formatted(row[name], "percent")
    form = form_of(row["metric"])
    if name == "total":
        # summed over time bytes per second become bytes, and watts joules
        form = {"rate": "bytes", "power": "energy"}.get(form, "number")
    return formatted(row[name], "number" if name == "n_units" else form)


def score_lines(story: JobStory) -> Iterator[tuple[str, str]]:
    """Name and value of the scores, or why there is none."""
    if story.scores is None:
        return
    for name in SCORE_NAMES:
        yield name, _score(story.scores, name, "number", "")
    from_load = "from the load of its cores" if story.scores.get("cpu_from") == "load" else ""
    yield "cpu_efficiency", _score(story.scores, "cpu_efficiency", "percent", from_load)
    if story.scores.get("gpus_used_frac") is not None:
        yield "gpu_efficiency", _score(story.scores, "gpus_used_frac", "percent", "")
    for row in sorted(story.predicted, key=lambda row: str(row["score_name"])):
        error = "" if row["error_68"] is None else f" ± {formatted(row['error_68'])} (68 %)"
        count = f"{row['n_neighbours']} similar job{'s' * (row['n_neighbours'] > 1)}"
        yield (
            f"{row['score_name']}, predicted",
            f"{formatted(row['value'])}{error}, from {count}, not measured",
        )
    for each in story.monitoring:
        yield "cost of monitoring", each


def _score(scores: Row, name: str, form: str, note: str) -> str:
    value = scores.get(name)
    shown = "none" if value is None else formatted(value, form)
    note = scores.get(f"{name}_reason") or note
    return f"{shown} ({visible(note)})" if note else shown


def when(row: Row) -> str:
    """The time of the evidence of an issue; empty where it is the job as a whole."""
    if row["begin"] is None or row["until"] is None:
        return ""
    same = row["begin"].date() == row["until"].date()
    return f"{row['begin']:%Y-%m-%d %H:%M} to {row['until']:{'%H:%M' if same else '%Y-%m-%d %H:%M'}} UTC"


def found(row: Row) -> str:
    """Return an issue in numbers: value, limit, waste, unit and time."""
    parts = []
    if row["value"] is not None:
        limit = "" if row["threshold"] is None else f" (limit {formatted(row['threshold'])})"
        parts.append(f"{formatted(row['value'])}{limit}")
    for name, what in (("idle_core_h", "core-hours"), ("idle_gpu_h", "GPU-hours")):
        if row[name]:
            parts.append(f"{formatted(row[name])} {what}")
    if row["unit"]:
        parts.append(visible(row["unit"]))
    return ", ".join(filter(None, [*parts, when(row)]))


def plot_title(plot: Plot) -> str:
    """Metric, what it is measured on, and how large it becomes."""
    units = f"{plot.n_units} x {plot.scope}" if plot.n_units > 1 else plot.scope
    form = form_of(plot.metric)
    measure = plot.measure if form == "number" and plot.measure != "1" else ""
    top = " ".join(filter(None, [formatted(plot.largest, form), measure]))
    return f"{visible(plot.metric)}, {units}, up to {top}"


def page_lines(story: JobStory, width: int, *, colour: bool = False) -> Iterator[str]:
    """The page of a job, lines of at most about ``width`` columns. ``colour``: a terminal that shows some."""
    yield f"job {visible(story.job_id)} of {visible(story.source)}"
    if not story.record:
        yield "  no record, only time series"
    yield from _pairs(list(record_lines(story)))
    if story.scores is not None:
        yield ""
        yield "scores (0 best, 100 worst)"
        yield from _pairs(list(score_lines(story)))
    yield ""
    if story.pop:
        for line in tree_lines(story.pop, colour=colour):
            # lines of the tree are short; a sentence goes on below itself
            yield from textwrap.wrap(line, max(60, width), subsequent_indent=" " * 6, **_AS_IS) or [""]
        yield ""
    yield from _issue_lines(story, width)
    if story.runs:
        yield ""
        yield f"earlier runs of {visible(story.record['job_name'])}"
        yield from _table(HEADINGS, [cells(run) for run in story.runs])
    yield from _roofline_lines(story, width)
    if story.plots:
        first = story.plots[0]
        yield ""
        yield f"time series, {first.start:%Y-%m-%d %H:%M} to {first.end:%Y-%m-%d %H:%M} UTC"
        for plot in story.plots:
            yield from _plot_lines(story, plot, min(_MOST, max(_LEAST, width - 4)))
        yield f"similar jobs: esjobs similar {shlex.quote(visible(story.job_id))}"


def issues_and_tags(story: JobStory) -> tuple[list[Row], list[Row]]:
    """Return the issues of a job, and its tags: conditions that only describe it."""
    tags = [row for row in story.issues if row["kind"] == "tag" and row["severity"] == "info"]
    return [row for row in story.issues if row not in tags], tags


def not_judged(story: JobStory) -> str:
    """Return the reasons for which detectors did not judge the job; empty: none."""
    return visible("; ".join(sorted({str(row["reason"]) for row in story.measures if row["reason"]})))


def _issue_lines(story: JobStory, width: int) -> Iterator[str]:
    issues, tags = issues_and_tags(story)
    yield f"tags: {', '.join(row['detector'] for row in tags) or 'none'}"
    yield f"issues: {len(issues) or 'none'}"
    for row in (*issues, *tags):
        yield f"  {row['severity']:<8}  {row['detector']}: {found(row)}".rstrip(": ")
        yield from textwrap.wrap(
            visible(row["hint"]), max(40, width - 12), initial_indent=" " * 12, subsequent_indent=" " * 12
        )
    if why := not_judged(story):
        yield f"not judged by some detectors: {why}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    text = io.StringIO()
    write_text_table(columns, rows, text)
    yield from (f"  {line}" for line in text.getvalue().splitlines())


def _roofline_lines(story: JobStory, width: int) -> Iterator[str]:
    if story.roofline is not None:
        yield f"roofline: {roofline_headline(story.roofline)}".rstrip(": ")
        notes = roofline_notes(story.roofline)
        yield from textwrap.wrap(notes, max(40, width), initial_indent="  ", subsequent_indent="  ")


def _pairs(pairs: list[tuple[str, str]]) -> Iterator[str]:
    widest = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        yield f"  {name:<{widest}}  {value}"


def _plot_lines(story: JobStory, plot: Plot, width: int) -> Iterator[str]:
    yield f"  {plot_title(plot)}"
    top = plot.largest
    line = sparkline(_fitted(plot.mean, width), top)
    yield f"    {line}"
    for unit, values in plot.shown:
        yield f"    {sparkline(_fitted(values, width), top)}  {visible(unit)}"
    for row in story.seen_in(plot.metric):
        mark = underline(plot.position(row["begin"]), plot.position(row["until"]), len(line))
        yield f"    {mark}  {row['detector']}"


def _fitted(values: Floats, width: int) -> Floats:
    """Values at most as many as there are columns."""
    if len(values) <= width:
        return values
    # of what falls on a column the value in its middle
    places = (np.arange(width) + 0.5) * len(values) / width
    fitted: Floats = values[places.astype(np.int64)]
    return fitted
