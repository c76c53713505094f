"""Checks of a bundle for anything a server rejects or breaks; servers often report success instead."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dashboards.spec import COLUMNS
from dashboards.targets.saved_objects.objects import CORE_STAMP, SHORT, STAMPS
from esjobs.core.tables import columns

MEMBERS = {"attributes", "coreMigrationVersion", "id", "references", "type", "typeMigrationVersion"}

# Attributes that the oldest server accepts, by type; an unknown one makes it refuse the object
KEYS: Mapping[str, frozenset[str]] = {
    "dashboard": frozenset(
        columns(
            "title description kibanaSavedObjectMeta timeRestore timeFrom timeTo refreshInterval "
            "controlGroupInput panelsJSON optionsJSON version hits"
        )
    ),
    "visualization": frozenset(
        columns("title description version kibanaSavedObjectMeta uiStateJSON visState savedSearchRefName")
    ),
    "index-pattern": frozenset(
        columns(
            "title timeFieldName name allowNoIndex fields fieldFormatMap fieldAttrs runtimeFieldMap "
            "sourceFilters"
        )
    ),
    "search": frozenset(columns("title description columns sort hideChart grid kibanaSavedObjectMeta")),
    "tag": frozenset(("name", "description", "color")),
}

FIELD_KEYS = frozenset(("customLabel", "count"))  # Keys of a data view field that the oldest server accepts

# Attributes that are JSON in a text
TEXTS = (
    *("panelsJSON", "optionsJSON", "visState", "uiStateJSON", "fields", "fieldFormatMap", "fieldAttrs"),
    *("runtimeFieldMap", "sourceFilters"),
)

# Of these, what OpenSearch Dashboards refuses; a file with a tag is for Kibana alone
KIBANA_KEYS: Mapping[str, frozenset[str]] = {
    "dashboard": frozenset(("controlGroupInput",)),
    "search": frozenset(("hideChart", "grid")),
}

# Keys of a filter to choose from that the oldest server accepts
CONTROL_KEYS = frozenset(
    columns("enhancements dataViewId fieldName id selectedOptions singleSelect title searchTechnique sort")
)


def complaints(text: str) -> list[str]:
    """Everything that is wrong with the lines of a bundle, a sentence each; none: it may be imported."""
    objects, found = _objects_in(text)
    if not objects and not found:
        found.append("it contains no object")
    present = [(str(each.get("type")), str(each.get("id"))) for each in objects]
    found += [f"{kind} '{name}' occurs {present.count((kind, name))} times" for kind, name in _twice(present)]
    # a tag is the mark of a bundle that is for Kibana alone
    alone = any(each.get("type") == "tag" for each in objects)
    for each in objects:
        try:
            said = [*_of_object(each, set(present)), *([] if alone else _of_kibana(each))]
        except (AttributeError, KeyError, TypeError, ValueError):
            # whatever is inside is not what a server exports or we write: which part does not matter
            said = ["its attributes, references or panels have an invalid shape"]
        found += [f"{each.get('type')} '{each.get('id')}': {complaint}" for complaint in said]
    return found


def _objects_in(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the objects of the lines, and what is wrong with the other lines."""
    objects: list[dict[str, Any]] = []
    found: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            value = json.loads(line)
        except ValueError as error:
            found.append(f"line {number} is not JSON: {error}")
            continue
        if not isinstance(value, dict):
            found.append(f"line {number} is not an object")
        elif "exportedCount" not in value:
            objects.append(value)
    return objects, found


def _of_kibana(each: dict[str, Any]) -> Iterator[str]:
    attributes = each.get("attributes")
    refused = KIBANA_KEYS.get(str(each.get("type")), frozenset())
    for key in sorted(refused & set(attributes if isinstance(attributes, dict) else ())):
        yield f"attribute '{key}', which OpenSearch Dashboards rejects"
    if each.get("type") == "dashboard" and isinstance(attributes, dict):
        for panel in _parsed(attributes.get("panelsJSON")) or ():
            if panel.get("type") not in ("visualization", "search"):
                yield f"panel '{panel.get('panelIndex')}' is a {panel.get('type')}, which it cannot draw"


def _twice(names: list[Any]) -> list[Any]:
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def _of_object(each: dict[str, Any], present: set[tuple[Any, Any]]) -> Iterator[str]:
    kind, name, attributes = str(each.get("type")), each.get("id"), each.get("attributes")
    if kind not in KEYS:
        yield f"unknown type; use one of: {', '.join(sorted(KEYS))}"
        return
    if not isinstance(name, str) or f"-{SHORT[kind]}-" not in name:
        yield f"its id does not contain its type: PREFIX-{SHORT[kind]}-NAME"
    if not isinstance(attributes, dict) or not isinstance(each.get("references"), list):
        yield "attributes or references are missing"
        return
    yield from _of_stamps(each, kind)
    yield from _of_attributes(attributes, kind)
    yield from _of_references(each, present)
    if kind == "dashboard":
        yield from _of_panels(attributes)
        yield from _of_controls(attributes)


def _of_attributes(attributes: dict[str, Any], kind: str) -> Iterator[str]:
    for key in sorted(set(attributes) - KEYS[kind]):
        yield f"attribute '{key}', which the oldest server rejects"
    for key in TEXTS:
        if key in attributes and _parsed(attributes[key]) is None:
            yield f"{key} is not JSON text"
    source = attributes.get("kibanaSavedObjectMeta", {}).get("searchSourceJSON", "{}")
    if _parsed(source) is None:
        yield "searchSourceJSON is not JSON text"
    for field, attributes_of in (_parsed(attributes.get("fieldAttrs")) or {}).items():
        for key in sorted(set(attributes_of) - FIELD_KEYS):
            yield f"field '{field}': key '{key}', which the oldest server rejects"


def _of_stamps(each: dict[str, Any], kind: str) -> Iterator[str]:
    wanted = {"typeMigrationVersion": STAMPS[kind], "coreMigrationVersion": CORE_STAMP}
    for key, stamp in wanted.items():
        if each.get(key) != stamp:
            yield f"{key} is {each.get(key)}, expected {stamp}: an older server rejects the file"
    for key in sorted(set(each) - MEMBERS):
        yield f"'{key}' is not allowed"


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _of_references(each: dict[str, Any], present: set[tuple[Any, Any]]) -> Iterator[str]:
    """Each is in the file, is named once and is used; whatever is used has one."""
    references = each["references"]
    names = [reference.get("name") for reference in references]
    for name in _twice(names):
        yield f"reference '{name}' occurs {names.count(name)} times"
    for reference in references:
        if (reference.get("type"), reference.get("id")) not in present:
            yield f"{reference.get('type')} '{reference.get('id')}' is not in the file"
    used = set(used_references(each))
    for name in sorted(used - set(names)):
        yield f"reference '{name}' is missing"
    for name in sorted(set(names) - used):
        yield f"reference '{name}' is not used"


def used_references(each: dict[str, Any]) -> Iterator[str]:
    """The names of references by which an object speaks of others."""
    yield from _used_by_attributes(each["attributes"])
    for reference in each["references"]:
        if reference.get("type") == "tag" and reference.get("name") == f"tag-ref-{reference.get('id')}":
            yield reference["name"]


def _used_by_attributes(attributes: dict[str, Any]) -> Iterator[str]:
    source = _parsed(attributes.get("kibanaSavedObjectMeta", {}).get("searchSourceJSON")) or {}
    if "indexRefName" in source:
        yield source["indexRefName"]
    for pill in source.get("filter", ()):
        yield pill["meta"]["indexRefName"]
    for panel in _parsed(attributes.get("panelsJSON")) or ():
        yield from _used_by_panel(panel)
    for control in (_parsed(attributes.get("visState")) or {}).get("params", {}).get("controls", ()):
        yield control["indexPatternRefName"]
    controls = _parsed(attributes.get("controlGroupInput", {}).get("panelsJSON")) or {}
    for name in controls:
        yield f"controlGroup_{name}:optionsListDataView"


def _used_by_panel(panel: dict[str, Any]) -> Iterator[str]:
    name = panel.get("panelIndex")
    if "panelRefName" in panel:
        yield panel["panelRefName"]
        yield f"{name}:{panel['panelRefName']}"
    config = panel.get("embeddableConfig", {})
    content = config.get("attributes", {})
    for reference in content.get("references", ()):
        yield f"{name}:{reference['name']}"
    for link in content.get("links", ()):
        yield f"{name}:{link['destinationRefName']}"
    for event in config.get("enhancements", {}).get("dynamicActions", {}).get("events", ()):
        yield f"{name}:drilldown:{event['action']['factoryId']}:{event['eventId']}:dashboardId"


def _of_panels(attributes: dict[str, Any]) -> Iterator[str]:
    panels = _parsed(attributes.get("panelsJSON")) or []
    for name in _twice([panel.get("panelIndex") for panel in panels]):
        yield f"two panels '{name}'"
    taken: dict[tuple[int, int], str] = {}
    for panel in panels:
        name, grid = str(panel.get("panelIndex")), panel.get("gridData", {})
        if grid.get("i") != name:
            yield f"panel '{name}' is called '{grid.get('i')}' in the grid"
        cells = _cells(grid)
        if not cells:
            yield f"panel '{name}' exceeds the {COLUMNS} columns of the grid"
            continue
        for other in dict.fromkeys(taken[cell] for cell in cells if cell in taken):
            yield f"panels '{other}' and '{name}' overlap"
        # servers move panels that overlap, each version in its own way
        taken |= dict.fromkeys(cells, name)
        yield from _of_content(name, panel)


def _cells(grid: dict[str, Any]) -> list[tuple[int, int]]:
    """The cells of the grid that a panel covers; none for one that does not fit."""
    x, y, w, h = (int(grid.get(side, -1)) for side in "xywh")
    if min(x, y) < 0 or x + w > COLUMNS:
        return []
    return [(column, row) for column in range(x, x + w) for row in range(y, y + h)]


def _of_content(name: str, panel: dict[str, Any]) -> Iterator[str]:
    by_value = panel.get("embeddableConfig", {})
    if "panelRefName" not in panel and not {"savedVis", "attributes"} & set(by_value):
        yield f"panel '{name}' has neither content nor a reference"
    params = by_value.get("savedVis", {}).get("params", {})
    if "spec" in params:
        yield from _of_chart(name, params["spec"])


def _of_chart(name: str, text: Any) -> Iterator[str]:
    spec = _parsed(text)
    if spec is None:
        yield f"panel '{name}': its chart is not JSON text"
        return
    if "/vega-lite/v5" not in str(spec.get("$schema")):
        yield f"panel '{name}': its chart is not of Vega-Lite 5"
    searches = list(searches_of(spec))
    for url in (data["url"] for data in searches):
        if "%type%" in url:
            yield f"panel '{name}': %type%, which OpenSearch Dashboards does not support"
        if url.get("%context%") and "query" in url.get("body", {}):
            yield f"panel '{name}': %context% beside a query, which a server rejects"
    if _twice([data.get("name") for data in searches]):
        yield f"panel '{name}': two searches with the same name or no name, whose answers Kibana mixes up"


def searches_of(found: Any) -> Iterator[dict[str, Any]]:
    """The data of a chart that a search (``url``) gives, at any depth."""
    if isinstance(found, dict):
        if isinstance(found.get("url"), dict):
            yield found
        for value in found.values():
            yield from searches_of(value)
    elif isinstance(found, list):
        for value in found:
            yield from searches_of(value)


def _of_controls(attributes: dict[str, Any]) -> Iterator[str]:
    group = attributes.get("controlGroupInput")
    if group is None:
        return
    panels = _parsed(group.get("panelsJSON"))
    if panels is None:
        yield "the filters are not JSON text"
        return
    for name, panel in panels.items():
        for key in sorted(set(panel.get("explicitInput", {})) - CONTROL_KEYS):
            yield f"filter '{name}': key '{key}', which the oldest server rejects"
