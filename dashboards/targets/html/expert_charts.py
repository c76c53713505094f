"""The expert's charts as the page draws them: tasks one by one, queues against tasks, pulls."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dashboards.spec import Panel
from dashboards.targets.html.cells import short
from dashboards.targets.html.charts import distinct
from dashboards.targets.html.marks import Drawing, drawing, mark_of, scale_of
from dashboards.targets.html.scales import log_axis, log_ticks
from dashboards.targets.vegalite.marks import Paint, Spec
from dashboards.view.rows import Row, task_of
from esjobs.core.numbers import MISSING, number
from esjobs.core.text import visible

_CURVE_HEIGHT, _CELL_HEIGHT, _PULLS_HEIGHT = 230, 17, 200
_LETTERS = 26

Taken = Mapping[tuple[Any, ...], Row]  # Rows of ``tasks`` by what tells tasks apart


def by_jobs(rows: Sequence[Row], key: Callable[[Row], Any], most: int) -> list[Any]:
    """The keys of the rows with most jobs together, at most so many, most jobs first; ties by their text."""
    jobs: Counter[Any] = Counter()
    for row in rows:
        jobs[key(row)] += row["n_jobs"] or 0
    return sorted(jobs, key=lambda each: (-jobs[each], str(each)))[:most]


def task_label(task: Iterable[Any]) -> str:
    """A task in a line: its id, and what else tells it from others.

    >>> task_label(("15350577", "multi", None, "merge"))
    '15350577 · multi · merge'
    """
    return " · ".join(visible(str(part)) for part in task if part is not None) or MISSING


def task_curve(panel: Panel, rows: Sequence[Row], task: Row | None) -> Drawing:
    """One task: its queues on logarithmic axes, larger with more jobs, and the curve of its start-up time.

    ``rows``: with positive values of both quantities. ``task``: its row of ``tasks``; the curve is dashed
    unless the start-up time was taken out, and left out when none is known.
    """
    across, up = panel.entry("x"), panel.entry("y")
    axes = [log_axis([row[field.column] for row in rows]) for field in (across, up)]
    account = {column: None if task is None else task[column] for column in ("rho", "decision")}
    marks = [mark_of(panel, row, account) for row in sorted(rows, key=lambda row: -(row["n_jobs"] or 0))]
    x, y = (scale_of(axis, log_ticks(axis)) for axis in axes)
    paint = Paint(
        x=x,
        y=y,
        tooltips=True,
        legend=False,
        height=_CURVE_HEIGHT,
        description=f"{panel.title}: {len(marks)} queues of one task.",
    )
    return drawing(panel, marks, paint)


def task_words(task: Row | None) -> str:
    """Describe a task in one line.

    >>> task_words({"rho": 12.0, "rho_err": 3.0, "slope": -0.2, "slope_err": 0.04, "decision": "corrected"})
    'ρ 12.0 ± 3.0 events, slope −0.200 ± 0.040: corrected'
    """
    if task is None:
        return "not recorded"
    if task["rho"] is None and task["slope"] is None:
        return f"ρ not estimated: {visible(str(task['decision'] or 'no decision'))}"
    rho = f"{number(task['rho'], task['rho_err'])} events" if task["rho"] is not None else "unknown"
    slope = number(task["slope"], task["slope_err"]) if task["slope"] is not None else "unknown"
    return f"ρ {rho}, slope {slope}: {visible(str(task['decision'] or 'no decision'))}"


def matrix_rows(panel: Panel, rows: Sequence[Row]) -> tuple[list[Row], list[str], list[str]]:
    """The cells of a matrix with the labels of its rows and columns, in their order.

    Kept are the names, and then their tasks, with most jobs. Names with the largest ``y`` come first; those
    without stand last.
    """
    label, order = panel.entry("label").column, panel.entry("y").column
    most_names, most_tasks = panel.most
    names = set(by_jobs(rows, lambda row: row[label], most_names))
    kept = [row for row in rows if row[label] in names]
    tasks = by_jobs(kept, task_of, most_tasks)
    chosen = set(tasks)
    kept = [row for row in kept if task_of(row) in chosen]
    speed = {row[label]: row[order] for row in kept}
    ranked = sorted(speed, key=lambda name: (speed[name] is None, -(speed[name] or 0.0), str(name)))
    shown = distinct([_named(name, speed[name]) for name in ranked])
    heads = distinct([short(task_label(task), _LETTERS) for task in tasks])
    row_of, column_of = dict(zip(ranked, shown, strict=True)), dict(zip(tasks, heads, strict=True))
    cells = [{**row, "row": row_of[row[label]], "column": column_of[task_of(row)]} for row in kept]
    return cells, shown, heads


def _named(name: Any, speed: float | None) -> str:
    """The label of a name, with its factor where it has one."""
    text = short(MISSING if name is None else visible(str(name)), _LETTERS)
    return text if speed is None else f"{text}  {speed:.2f}"


def matrix(panel: Panel, rows: Sequence[Row]) -> Drawing:
    """Names x tasks: the value as colour and number, full at the 95th percentile of the magnitudes.

    Framed cells are drawn last, so that no neighbour covers their frame. A dataset ``order`` fixes the order
    of names and tasks.
    """
    value = panel.entry("x").column
    cells, names, tasks = matrix_rows(panel, rows)
    sizes = sorted(abs(row[value]) for row in cells if row[value] is not None)
    # one absurd cell must not pale all others
    full = max(sizes[int(0.95 * (len(sizes) - 1))], 0.1) if sizes else 0.1
    marks = [mark_of(panel, row, {key: row[key] for key in ("row", "column")}) for row in cells]
    marks.sort(key=lambda mark: mark["status"] == "rejected")
    order = [
        {"row": names[min(n, len(names) - 1)], "column": tasks[min(n, len(tasks) - 1)]}
        for n in range(max(len(names), len(tasks)))
    ]
    paint = Paint(
        tooltips=True,
        legend=False,
        full=full,
        height=_CELL_HEIGHT * max(len(names), 2),
        description=f"{panel.title}: {len(names)} names and {len(tasks)} tasks.",
    )
    made = drawing(panel, marks, paint, {"order": order})
    cell = made.spec["layer"][0]["encoding"]
    first: Spec = {
        "data": {"name": "order"},
        "mark": {"type": "point", "opacity": 0},
        "encoding": {channel: cell[channel] for channel in ("x", "y")},
    }
    made.spec["layer"].insert(0, first)
    return made


def pulls(panel: Panel, rows: Sequence[Row]) -> Drawing:
    """The histogram of one fit; ``rows``: its bars."""
    count = panel.entry("y").column
    n = sum(row[count] for row in rows)
    paint = Paint(
        tooltips=True,
        legend=False,
        height=_PULLS_HEIGHT,
        description=f"{panel.title}: histogram of {n:.0f} buckets.",
    )
    bars = [{column: row[column] for column in ("low", "high", count)} for row in rows]
    return drawing(panel, bars, paint)
