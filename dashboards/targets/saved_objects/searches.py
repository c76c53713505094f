"""Rows as they are: saved searches, in which people sort, open a row and go on asking."""

from dashboards.spec import Panel
from dashboards.targets.saved_objects.conditions import kuery
from dashboards.targets.saved_objects.objects import (
    PREFIX,
    Attributes,
    SavedObject,
    data_view_of,
    search_source,
)
from dashboards.targets.vegalite.index import index_of

# Pixels of columns that need more than their share
_WIDE = {"name": 190, "sentence": 480, "reason": 420, "unstable_under": 220}


def search(panel: Panel, method: str, prefix: str = PREFIX, *, plain: bool = True) -> SavedObject:
    """The saved search of a panel; ``plain``: without what OpenSearch Dashboards refuses."""
    data_view = data_view_of(index_of(panel.view, prefix), prefix=prefix)
    columns = [name for field in panel.fields for name in (field.column, field.error) if name]
    order = [[name.lstrip("-"), "desc" if name.startswith("-") else "asc"] for name in panel.view.sort]
    source = search_source(kuery(panel.view, method), data_view, highlightAll=False, version=True)
    attributes: Attributes = {
        "columns": list(dict.fromkeys(columns)),
        "description": panel.description,
        "kibanaSavedObjectMeta": source,
        "sort": order,
        "title": panel.title,
    }
    if not plain:
        wide = {name: {"width": _WIDE[name]} for name in attributes["columns"] if name in _WIDE}
        attributes |= {"grid": {"columns": wide} if wide else {}, "hideChart": True}
    return SavedObject("search", panel.id, attributes, (data_view,), prefix)
