"""Panels of a page put on its board: those that all servers draw alike, others as a bundle makes them."""

from collections.abc import Callable, Iterable, Iterator

from dashboards.spec import JOBS, JobsIndex, Panel, View, hinted
from dashboards.targets.saved_objects.boards import Board
from dashboards.targets.saved_objects.charts import Clicks
from dashboards.targets.saved_objects.data_views import data_view
from dashboards.targets.saved_objects.objects import SavedObject
from dashboards.targets.saved_objects.texts import drawn_alike, shown_title

Place = tuple[int, int, int, int]  # Of a panel in the grid: x, y, width, height
Further = Callable[[Panel, Place], Iterable[SavedObject]]  # Adds a panel to the board; yields its objects


def filled(
    board: Board, top: int, product: str, method: str, jobs: JobsIndex, further: Further
) -> Iterator[SavedObject]:
    """Put the panels of a page on its board, from a row on; yield what they refer to.

    ``product``: begins the functions of its server. ``further``: for a panel that servers draw each in their
    own way.
    """
    page, prefix = board.page, board.prefix
    clicks = Clicks(product, {choice.column for choice in page.choices})
    for placed in page.board:
        panel, place = hinted(placed.panel), (placed.x, placed.y + top, placed.w, placed.h)
        if panel.view.table not in ("", JOBS.name):
            yield data_view(panel.view, prefix)
        chart = drawn_alike(panel, method, prefix, jobs, clicks)
        if chart is None:
            yield from further(panel, place)
        else:
            board.add(panel.id, "visualization", place, chart, shown_title(panel))
    tables = {choice.table for choice in page.choices} - {JOBS.name}
    yield from (data_view(View(name), prefix) for name in sorted(tables))
