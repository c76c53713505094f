"""A page as a dashboard: its grid, its references under both names, its time range."""

from dataclasses import dataclass, field
from typing import Any

from dashboards.spec import Page, Panel, View, Where
from dashboards.targets.saved_objects.charts import NAMES
from dashboards.targets.saved_objects.objects import PREFIX, Reference, SavedObject, data_view_of, text_of
from dashboards.targets.vegalite.index import index_of


@dataclass(frozen=True)
class Opening:
    """Opening of dashboards: last ``days``, loaded again every ``refresh_s`` seconds (0: never).

    ``base_url``: of the pages over HTTP to which names in tables lead; empty: to none.
    """

    days: int = 30
    refresh_s: int = 300
    base_url: str = ""


MONTH = Opening()  # Without settings

# Of every dashboard; keys that the oldest server knows
OPTIONS = {
    "hidePanelTitles": False,
    "syncColors": False,
    "syncCursor": True,
    "syncTooltips": False,
    "useMargins": True,
}


# Of a panel that must not filter its page: other panels know nothing of what a click on it would choose
NO_CLICKS: dict[str, Any] = {"disableTriggers": True}


def click_config(page: Page, panel: Panel) -> dict[str, Any]:
    """Return ``NO_CLICKS`` for tiles, and for what has no name by which its page can be filtered."""
    silent = panel.kind in ("tiles", "coverage")
    if panel.kind in ("bars", "trend"):
        silent = not page.narrows(panel.entry("label").column)
    elif panel.kind in ("rows", "table"):
        silent = not any(field.column in NAMES or page.narrows(field.column) for field in panel.fields)
    return NO_CLICKS if silent else {}


@dataclass
class Board:
    """A dashboard that is being put together: panels from the top, and what they refer to."""

    page: Page
    prefix: str = PREFIX
    opening: Opening = MONTH
    panels: list[dict[str, Any]] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)

    def add(
        self, name: str, kind: str, place: tuple[int, int, int, int], config: dict[str, Any], title: str = ""
    ) -> dict[str, Any]:
        """A panel with its content in it; ``place``: x, y, width, height.

        ``config``: with ``NO_CLICKS``, a click on the panel chooses nothing.
        """
        x, y, w, h = place
        panel: dict[str, Any] = {
            "embeddableConfig": config,
            "gridData": {"h": h, "i": name, "w": w, "x": x, "y": y},
            "panelIndex": name,
            "type": kind,
        }
        if title:
            panel["title"] = title
        else:
            # a missing title shows that of the object
            panel["embeddableConfig"] = {**config, "hidePanelTitles": True}
        self.panels.append(panel)
        return panel

    def add_object(
        self,
        name: str,
        shown: SavedObject,
        place: tuple[int, int, int, int],
        config: dict[str, Any] | None = None,
        *,
        title: str = "",
    ) -> None:
        """A panel that shows an object of its own.

        The reference stands under two names: OpenSearch Dashboards looks for the bare one alone, Kibana for
        that which begins with the panel.
        """
        panel = self.add(name, shown.type, place, config or {}, title)
        panel["panelRefName"] = f"panel_{name}"
        for reference in (f"panel_{name}", f"{name}:panel_{name}"):
            self.references.append(Reference(reference, shown.type, shown.id))

    def saved(self, filters: tuple[tuple[Where, View], ...] = (), **more: Any) -> SavedObject:
        """The dashboard; ``filters``: what is chosen when it is opened, and the view that it is chosen of."""
        pills = []
        for number, (where, view) in enumerate(filters):
            name = f"kibanaSavedObjectMeta.searchSourceJSON.filter[{number}].meta.index"
            self.references.append(data_view_of(index_of(view, self.prefix), name, self.prefix))
            pills.append(_pill(where, name))
        source = {"filter": pills, "query": {"language": "kuery", "query": ""}}
        attributes = {
            "description": self.page.question,
            "kibanaSavedObjectMeta": {"searchSourceJSON": text_of(source)},
            "optionsJSON": text_of(OPTIONS),
            "panelsJSON": text_of(self.panels),
            "refreshInterval": {
                "pause": self.opening.refresh_s == 0,
                "value": 1000 * self.opening.refresh_s,
            },
            # from midnight on: days that are cut would look like days of few jobs
            "timeFrom": f"now-{self.opening.days}d/d",
            "timeRestore": True,
            "timeTo": "now",
            "title": f"{self.prefix}: {self.page.title}",
            "version": 1,
            **more,
        }
        return SavedObject("dashboard", self.page.id, attributes, tuple(self.references), self.prefix)


def _pill(where: Where, reference: str) -> dict[str, Any]:
    (value,) = where.accepted
    return {
        "$state": {"store": "appState"},
        "meta": {
            "alias": None,
            "disabled": False,
            "field": where.column,
            "indexRefName": reference,
            "key": where.column,
            "negate": False,
            "params": {"query": value},
            "type": "phrase",
        },
        "query": {"match_phrase": {where.column: value}},
    }
