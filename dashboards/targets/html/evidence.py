"""The expert's panels made concrete: rows in, parts of a page out."""

from collections.abc import Sequence
from statistics import median

from dashboards.spec import Panel
from dashboards.targets.html.cells import level_name, read, short
from dashboards.targets.html.charts import scatter
from dashboards.targets.html.expert_charts import (
    Taken,
    by_jobs,
    matrix,
    pulls,
    task_curve,
    task_label,
    task_words,
)
from dashboards.targets.html.marks import looks_of
from dashboards.targets.html.parts import Charts, FigurePart, Part, TermsPart, TextPart, Title, table_part
from dashboards.view.rows import Row, apart, positive, task_of
from esjobs.core.numbers import count, number
from esjobs.core.text import visible

_TITLE_LETTERS = 44
# Pixels of a matrix beside its cells, and of each column; columns for which there is always room
_MATRIX_NAMES, _MATRIX_CELL, _MATRIX_LEAST = 270, 38, 9

NOISE = 1e-6  # A residual, pull or shift of no more than this is a zero that was rounded


def curve_parts(panel: Panel, rows: Sequence[Row], tasks: Sequence[Row], charts: Charts) -> list[Part]:
    """One chart for each of the tasks with most jobs; ``tasks``: the rows of the table of that name."""
    usable = positive(rows, panel.entry("x").column, panel.entry("y").column)
    by_task = apart(usable, task_of)
    label = panel.entry("label").column
    # a task of one queue compares it with nobody
    shared = {task: group for task, group in by_task.items() if len({row[label] for row in group}) > 1}
    alone = len(by_task) - len(shared)
    if not shared:
        text = f"No comparison: each of {count(alone)} tasks ran at one queue only."
        return [TextPart((text,))] if alone else []
    taken = {task_of(row): row for row in tasks}
    numbers, titles, drawn = [], [], []
    for task in by_jobs([row for row in usable if task_of(row) in shared], task_of, *panel.most):
        found = _account(taken, task)
        numbers.append(charts.add(task_curve(panel, shared[task], found)))
        titles.append(Title(short(task_label(task), _TITLE_LETTERS), task_words(found)))
        drawn += shared[task]
    looks, caption = looks_of(panel, drawn), _curve_caption(alone)
    return [FigurePart(tuple(numbers), len(drawn), panel.title, caption, looks, tuple(titles))]


def _curve_caption(alone: int) -> str:
    caption = "Dashed curves: the start-up time was estimated, but not corrected. Both axes are logarithmic."
    if alone:
        who = "task that" if alone == 1 else "tasks that"
        caption += f" Omitted: {count(alone)} {who} ran at one queue only."
    return caption


def _account(taken: Taken, task: tuple[object, ...]) -> Row | None:
    """Return the row of a task; a kind of work without a row uses that of the complete task."""
    return taken.get(task) or taken.get((*task[:-1], None))


def matrix_parts(panel: Panel, rows: Sequence[Row], charts: Charts) -> list[Part]:
    """The matrix, when there is a cell to show."""
    drawing = matrix(panel, rows)
    value = panel.entry("x").column
    values = [row[value] for row in drawing.datasets["rows"] if row[value] is not None]
    order = drawing.datasets["order"]
    if not any(abs(each) > NOISE for each in values):
        return []
    shown = len({row["row"] for row in order})
    names = len({row[panel.entry("label").column] for row in rows})
    width = _MATRIX_NAMES + _MATRIX_CELL * max(len({row["column"] for row in order}), _MATRIX_LEAST)
    caption = (
        f"Shown are the {count(shown)} queues with most jobs, of {count(names)} that ran one of the run's "
        "largest tasks."
        if shown < names
        else ""
    )
    cells = len(drawing.datasets["rows"])
    return [FigurePart((charts.add(drawing),), cells, panel.title, caption, width=width)]


def pull_parts(panel: Panel, rows: Sequence[Row], fits: Sequence[Row], charts: Charts) -> list[Part]:
    """A histogram for each fit that has one; ``fits``: the rows of that table, which know its width."""
    column = panel.entry("y").column
    numbers, titles, bars = [], [], 0
    for fit in fits:
        mine = [row for row in rows if row["level"] == fit["level"]]
        width = fit["pull_width"]
        if not mine or (width is not None and width <= NOISE):
            continue
        numbers.append(charts.add(pulls(panel, mine)))
        bars += len(mine)
        words = _pull_words(sum(row[column] for row in mine), width, fit["n_rejected"])
        titles.append(Title(level_name(fit["level"]).capitalize().replace("Cpu", "CPU"), words))
    return [FigurePart(tuple(numbers), bars, panel.title, titles=tuple(titles))] if numbers else []


def _pull_words(buckets: int, width: float | None, rejected: int | None) -> str:
    words = [f"{count(buckets)} buckets"]
    words += [] if width is None else [f"width {number(width)}"]
    words += [] if rejected is None else [f"{count(rejected)} rejected"]
    return ", ".join(words)


def scatter_parts(panel: Panel, rows: Sequence[Row], charts: Charts) -> list[Part]:
    """One chart of two quantities."""
    if not rows:
        return []
    drawing = scatter(panel, rows)
    return [FigurePart((charts.add(drawing),), len(rows), panel.title, looks=looks_of(panel, rows))]


def extreme_parts(panel: Panel, rows: Sequence[Row]) -> list[Part]:
    """A sentence about the magnitude of a quantity over all rows, and those where it is largest."""
    field = panel.entry("x")
    sizes = [abs(row[field.column]) for row in rows]
    if not sizes:
        return []
    if max(sizes) <= NOISE:
        same = f"No effect: it gives each of {count(len(sizes))} names the same k"
        return [TextPart((f"{same}, as expected without redundancy.",))]
    text = (
        f"Over {count(len(sizes))} names the shift has a median magnitude of {number(median(sizes))} σ "
        f"and is at most {number(max(sizes))} σ ({short(visible(str(rows[0]['name'])), 80)})."
    )
    return [TextPart((text,)), table_part(panel, list(rows[: panel.most[0]]))]


def name_parts(panel: Panel, rows: Sequence[Row]) -> list[Part]:
    """Return the number of qualifying names by level, and their names."""
    levels = dict.fromkeys(str(row["level"]) for row in rows)
    if not levels:
        return []
    label = panel.entry("label")
    named = {level: [read(row, label) for row in rows if str(row["level"]) == level] for level in levels}
    counted = " and ".join(_counted(len(names), level) for level, names in named.items())
    text = (
        f"{counted} {'has' if len(rows) == 1 else 'have'} one unit of work in the fit (task × core class × "
        "type). The residual is zero by construction, so it tests nothing."
    )
    return [
        TextPart((text,)),
        TermsPart(
            tuple((level_name(level), ", ".join(names)) for level, names in named.items()), foreign=True
        ),
    ]


def _counted(names: int, level: str) -> str:
    return f"{count(names)} {level_name(level).removesuffix('s') if names == 1 else level_name(level)}"
