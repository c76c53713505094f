"""The bundle that Kibana and OpenSearch Dashboards both take."""

from collections.abc import Iterator, Sequence
from functools import partial

from dashboards.spec import OWN, JobsIndex, Page, Panel, View
from dashboards.targets.portable.visualizations import choices, visualization
from dashboards.targets.saved_objects.boards import MONTH, Board, Opening, click_config
from dashboards.targets.saved_objects.charts import drawn
from dashboards.targets.saved_objects.data_views import linked
from dashboards.targets.saved_objects.filling import Place, filled
from dashboards.targets.saved_objects.jobs_view import jobs_view
from dashboards.targets.saved_objects.objects import PREFIX, SavedObject, bundle
from dashboards.targets.saved_objects.texts import way

# Heights of the lines with the way to other pages, and with window, run, age and choices
WAY_ROWS, ABOVE_ROWS = 4, 4


def portable(
    pages: Sequence[Page], method: str, prefix: str = PREFIX, jobs: JobsIndex = OWN, opening: Opening = MONTH
) -> str:
    """The lines of the file."""
    objects = [*_objects(pages, method, prefix, jobs, opening), jobs_view(jobs, prefix, computed=False)]
    return bundle(linked(each, opening.base_url) for each in objects)


def _objects(
    pages: Sequence[Page], method: str, prefix: str, jobs: JobsIndex, opening: Opening
) -> Iterator[SavedObject]:
    for page in pages:
        board = Board(page, prefix, opening)
        board.add("way", "visualization", (0, 0, 48, WAY_ROWS), way(pages, page, prefix))
        top = WAY_ROWS
        if page.above is not None:
            line = drawn(page.above, method, prefix)
            width = 24 if page.choices else 48
            board.add(page.above.id, "visualization", (0, top, width, ABOVE_ROWS), line)
            if page.choices:
                shown = choices(page, jobs, prefix)
                board.add_object("choices", shown, (width, top, 48 - width, ABOVE_ROWS))
                yield shown
            top += ABOVE_ROWS
        further = partial(_aggregated, board, method, jobs)
        yield from filled(board, top, "opensearchDashboards", method, jobs, further)
        chosen = [View(choice.table) for choice in page.choices if choice.chosen]
        yield board.saved(tuple(zip(page.preset, chosen, strict=True)))


def _aggregated(
    board: Board, method: str, jobs: JobsIndex, panel: Panel, place: Place
) -> Iterator[SavedObject]:
    """A panel as a visualization of aggregations."""
    shown = visualization(panel, method, board.prefix, jobs)
    board.add_object(panel.id, shown, place, click_config(board.page, panel), title=panel.title)
    yield shown
