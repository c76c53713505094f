"""The bundle for Kibana alone: Lens, filters to choose from, links, a tag, the way from a name on."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from dashboards.spec import JOBS, OWN, JobsIndex, Page, Panel, View, hinted
from dashboards.targets.kibana.lens import bars, datatable, references, tile
from dashboards.targets.portable.visualizations import offered
from dashboards.targets.saved_objects.boards import MONTH, Board, Opening
from dashboards.targets.saved_objects.charts import Clicks, drawn
from dashboards.targets.saved_objects.data_views import data_view, linked
from dashboards.targets.saved_objects.jobs_view import jobs_view
from dashboards.targets.saved_objects.objects import (
    PREFIX,
    Attributes,
    Reference,
    SavedObject,
    bundle,
    data_view_of,
    identity,
    text_of,
)
from dashboards.targets.saved_objects.texts import drawn_alike, shown_title
from dashboards.targets.vegalite.index import index_of

LINKS_ROWS, ABOVE_ROWS = 3, 3
"""Heights of the lines with the way to other pages, and with window, run and age."""
COLOUR = "#2a6f97"

LEADS = "page-of-name"
"""Id of the link from a name to its page."""


def kibana(
    pages: Sequence[Page], method: str, prefix: str = PREFIX, jobs: JobsIndex = OWN, opening: Opening = MONTH
) -> str:
    """The lines of the file."""
    objects = [*_objects(pages, method, prefix, jobs, opening), jobs_view(jobs, prefix)]
    return bundle(linked(each, opening.base_url) for each in objects)


def _objects(
    pages: Sequence[Page], method: str, prefix: str, jobs: JobsIndex, opening: Opening
) -> Iterator[SavedObject]:
    tag = SavedObject(
        "tag",
        "results",
        {"color": COLOUR, "description": "Speed factors and what follows from them", "name": prefix},
        prefix=prefix,
    )
    yield tag
    tagged = Reference(f"tag-ref-{tag.id}", "tag", tag.id)
    chosen = {page.id: {choice.column for choice in page.choices} for page in pages}
    # jobs find their queue under its name in results, too
    chosen |= {name: found | {"name"} for name, found in chosen.items() if "queue" in found}
    for page in pages:
        # on its own page a click narrows without a way to another
        leads = chosen[page.leads_to] if page.leads_to not in ("", page.id) else set()
        board = Board(page, prefix, opening)
        _links(board, pages)
        top = LINKS_ROWS
        if page.above is not None:
            line = drawn(page.above, method, prefix)
            board.add(page.above.id, "visualization", (0, top, 48, ABOVE_ROWS), line)
            top += ABOVE_ROWS
        clicks = Clicks("kibana", {choice.column for choice in page.choices})
        for placed in page.board:
            panel, place = hinted(placed.panel), (placed.x, placed.y + top, placed.w, placed.h)
            if panel.view.table not in ("", JOBS.name):
                yield data_view(panel.view, prefix)
            if (chart := drawn_alike(panel, method, prefix, jobs, clicks)) is not None:
                board.add(panel.id, "visualization", place, chart, shown_title(panel))
            else:
                _lens(board, panel, place, method, leads)
        board.references.append(tagged)
        tables = {choice.table for choice in page.choices} - {JOBS.name}
        yield from (data_view(View(name), prefix) for name in sorted(tables))
        yield board.saved(**_controls(board, jobs))


def _lens(
    board: Board, panel: Panel, place: tuple[int, int, int, int], method: str, leads: Collection[str]
) -> None:
    """A panel as one visualization, or a number of them side by side.

    ``leads``: columns whose names lead to another page, where they can be chosen.
    """
    if panel.kind != "tiles":
        make = bars if panel.kind == "bars" else datatable
        attributes = make(panel, method, board.prefix)
        config: dict[str, Any] = {"attributes": attributes, "enhancements": {}}
        leads_to = board.page.leads_to
        if panel.entry("label").column in leads:
            config["enhancements"] = _opening(leads_to)
            name = f"{panel.id}:drilldown:DASHBOARD_TO_DASHBOARD_DRILLDOWN:{LEADS}:dashboardId"
            board.references.append(
                Reference(name, "dashboard", identity("dashboard", leads_to, board.prefix))
            )
        _add(board, panel.id, place, config, attributes, panel.title)
        return
    x, y, width, height = place
    ends = [round(number * width / len(panel.tiles)) for number in range(len(panel.tiles) + 1)]
    for number, shown in enumerate(panel.tiles):
        attributes = tile(panel, shown, method, board.prefix)
        spot = (x + ends[number], y, ends[number + 1] - ends[number], height)
        config = {"attributes": attributes, "enhancements": {}}
        _add(board, f"{panel.id}-{number + 1}", spot, config, attributes, "")


def _add(
    board: Board,
    name: str,
    place: tuple[int, int, int, int],
    config: dict[str, Any],
    attributes: Attributes,
    title: str,
) -> None:
    board.add(name, "lens", place, config, title)
    board.references.extend(references(name, attributes))


def _opening(page: str) -> dict[str, Any]:
    """Return the drilldown of a name: its page, with the name as filter and the same time range.

    Other filters stay behind: not every panel there has their columns, and would be empty.
    """
    config = {"openInNewTab": False, "useCurrentDateRange": True, "useCurrentFilters": False}
    action = {"config": config, "factoryId": "DASHBOARD_TO_DASHBOARD_DRILLDOWN", "name": f"Open page: {page}"}
    event = {"action": action, "eventId": LEADS, "triggers": ["FILTER_TRIGGER"]}
    return {"dynamicActions": {"events": [event]}}


def _links(board: Board, pages: Sequence[Page]) -> None:
    """The way to every other page; filters and time range come along."""
    listed = []
    others = [page for page in pages if page.id != board.page.id]
    for number, page in enumerate(others):
        name = f"link_{page.id}_dashboard"
        listed.append(
            {
                "destinationRefName": name,
                "id": page.id,
                "label": page.title,
                "options": {"openInNewTab": False, "useCurrentDateRange": True, "useCurrentFilters": False},
                "order": number,
                "type": "dashboardLink",
            }
        )
        destination = identity("dashboard", page.id, board.prefix)
        board.references.append(Reference(f"way:{name}", "dashboard", destination))
    attributes = {"description": "", "layout": "horizontal", "links": listed, "title": ""}
    board.add("way", "links", (0, 0, 48, LINKS_ROWS), {"attributes": attributes, "enhancements": {}})


def _controls(board: Board, jobs: JobsIndex) -> dict[str, Any]:
    """The filters of a page, to choose from above it."""
    choices = list(offered(board.page, jobs))
    if not choices:
        return {}
    panels = {}
    for number, (choice, field) in enumerate(choices):
        name = f"choice-{choice.column}"
        reference = data_view_of(
            index_of(View(choice.table), board.prefix),
            f"controlGroup_{name}:optionsListDataView",
            board.prefix,
        )
        board.references.append(reference)
        panels[name] = {
            "explicitInput": {
                "dataViewId": reference.id,
                "enhancements": {},
                "fieldName": field,
                "id": name,
                "selectedOptions": [choice.chosen] if choice.chosen else [],
                "singleSelect": choice.single,
                "title": choice.title,
            },
            "grow": True,
            "order": number,
            "type": "optionsListControl",
            "width": "small",
        }
    ignored = dict.fromkeys(("ignoreFilters", "ignoreQuery", "ignoreTimerange", "ignoreValidations"), False)
    return {
        "controlGroupInput": {
            "chainingSystem": "HIERARCHICAL",
            "controlStyle": "oneLine",
            "ignoreParentSettingsJSON": text_of(ignored),
            "panelsJSON": text_of(panels),
        }
    }
