"""The bundle for Kibana alone: Lens, filters to choose from, links, a tag, the way from a name on."""

from collections.abc import Iterator, Sequence, Set
from functools import partial
from typing import Any

from dashboards.spec import NEUTRAL, OWN, JobsIndex, Page, Panel, View
from dashboards.targets.kibana.lens import bars, counts, coverage, datatable, lines, named, references
from dashboards.targets.portable.visualizations import offered
from dashboards.targets.saved_objects.boards import MONTH, Board, Opening, click_config
from dashboards.targets.saved_objects.charts import drawn
from dashboards.targets.saved_objects.data_views import linked
from dashboards.targets.saved_objects.filling import Place, filled
from dashboards.targets.saved_objects.jobs_view import jobs_view
from dashboards.targets.saved_objects.objects import (
    PREFIX,
    Reference,
    SavedObject,
    bundle,
    data_view_of,
    identity,
    text_of,
)
from dashboards.targets.vegalite.index import index_of

# Heights of the lines with the way to other pages, and with window, run and age
LINKS_ROWS, ABOVE_ROWS = 3, 3

LEADS = "page-of-name"  # Id of the link from a name to its page


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
        {"color": NEUTRAL, "description": "Speed factors and what follows from them", "name": prefix},
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
        yield from filled(board, top, "kibana", method, jobs, partial(_lens, board, method, leads, jobs))
        board.references.append(tagged)
        yield board.saved(**_controls(board, jobs))


def _lens(
    board: Board, method: str, leads: Set[str], jobs: JobsIndex, panel: Panel, place: Place
) -> tuple[()]:
    """A panel as a visualization in its dashboard. ``leads``: columns whose names lead to another page."""
    names = named(panel)
    if panel.kind in _MAKERS:
        attributes = _MAKERS[panel.kind](panel, method, board.prefix)
    elif panel.kind == "coverage":
        attributes = coverage(panel, method, board.prefix, jobs)
    else:
        clicks = {name for name in names if name in leads or board.page.narrows(name)}
        attributes = datatable(panel, method, board.prefix, clicks)
    config: dict[str, Any] = {"attributes": attributes, "enhancements": {}, **click_config(board.page, panel)}
    leads_to = board.page.leads_to
    if names & leads:
        config["enhancements"] = _opening(leads_to)
        name = f"{panel.id}:drilldown:DASHBOARD_TO_DASHBOARD_DRILLDOWN:{LEADS}:dashboardId"
        board.references.append(Reference(name, "dashboard", identity("dashboard", leads_to, board.prefix)))
    board.add(panel.id, "lens", place, config, panel.title)
    board.references.extend(references(panel.id, attributes))
    return ()


_MAKERS = {"bars": bars, "tiles": counts, "trend": lines}


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
    # choices offer what the filters and the time range of the dashboard leave
    ignored = dict.fromkeys(("ignoreFilters", "ignoreQuery", "ignoreTimerange", "ignoreValidations"), False)
    return {
        "controlGroupInput": {
            "chainingSystem": "HIERARCHICAL",
            "controlStyle": "twoLine",
            "ignoreParentSettingsJSON": text_of(ignored),
            "panelsJSON": text_of(panels),
        }
    }
