"""A bundle as text that people compare: pages, their panels, what each asks of which index.

A bundle is one long line per object; what changed between two of them is seen here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]


def digest(name: str, bundle: str) -> str:
    """The digest of a bundle, in Markdown; the same for the same bundle."""
    objects = {each["id"]: each for each in map(json.loads, bundle.splitlines())}
    of_type: dict[str, list[Object]] = {}
    for each in objects.values():
        of_type.setdefault(each["type"], []).append(each)
    counts = ", ".join(f"{len(found)} {kind}" for kind, found in sorted(of_type.items()))
    lines = [
        f"# {name}.ndjson",
        "",
        f"Written by `python -m docs.generate` beside the bundle, for comparison. Objects: {counts}.",
    ]
    for page in of_type.get("dashboard", ()):
        lines += ["", *_page(page, objects)]
    lines += ["", "## Data views", ""]
    for view in of_type.get("index-pattern", ()):
        lines += _data_view(view["attributes"])
    return "\n".join(lines) + "\n"


def _page(page: Object, objects: Mapping[str, Object]) -> Iterator[str]:
    attributes = page["attributes"]
    yield f"## {attributes['title']}"
    yield ""
    yield attributes["description"]
    chosen = json.loads(attributes["kibanaSavedObjectMeta"]["searchSourceJSON"])["filter"]
    if chosen:
        yield "Opens with: " + ", ".join(json.dumps(each["query"]["match_phrase"]) for each in chosen) + "."
    controls = json.loads(attributes.get("controlGroupInput", {}).get("panelsJSON", "{}"))
    if controls:
        inputs = (each["explicitInput"] for each in controls.values())
        yield "Choices: " + ", ".join(f"{each['title']} ({each['fieldName']})" for each in inputs) + "."
    shown = {each["name"]: each["id"] for each in page["references"]}
    for panel in json.loads(attributes["panelsJSON"]):
        place = panel["gridData"]
        yield ""
        title = panel.get("title") or panel["panelIndex"]
        yield f"### {title} ({place['w']} x {place['h']})"
        yield ""
        yield from _panel(panel, shown, objects)


def _panel(panel: Object, shown: Mapping[str, str], objects: Mapping[str, Object]) -> Iterator[str]:
    """Return the content of a panel, or the object that it refers to."""
    config = panel["embeddableConfig"]
    if "savedVis" in config:
        yield from _visualization(config["savedVis"])
    elif panel["type"] == "lens":
        yield from _lens(config["attributes"])
    elif "panelRefName" in panel:
        yield from _object(objects[shown[panel["panelRefName"]]])
    else:
        links = config["attributes"]["links"]
        yield f"- {panel['type']}: " + ", ".join(each["label"] for each in links)


def _object(found: Object) -> Iterator[str]:
    attributes = found["attributes"]
    query = json.loads(attributes["kibanaSavedObjectMeta"]["searchSourceJSON"])["query"]["query"]
    index = next(each["id"] for each in found["references"] if each["type"] == "index-pattern")
    if found["type"] == "search":
        yield f"- rows of {index}: {_code(query)}"
        yield f"- columns: {', '.join(attributes['columns'])}"
        yield "- order: " + ", ".join(" ".join(each) for each in attributes["sort"])
        return
    state = json.loads(attributes["visState"])
    yield f"- {state['type']} of {index}: {_code(query)}"
    for each in state["aggs"]:
        params = {name: value for name, value in each["params"].items() if not name.startswith("missing")}
        yield f"- {each['schema']} {each['type']}: {_code(params)}"


def _lens(attributes: Object) -> Iterator[str]:
    state = attributes["state"]
    index = attributes["references"][0]["id"]
    yield f"- {attributes['visualizationType']} of {index}: {_code(state['query']['query'])}"
    for layer in state["datasourceStates"]["formBased"]["layers"].values():
        for name in layer["columnOrder"]:
            column = layer["columns"][name]
            params = column.get("params", {})
            more = {
                key: params[key] for key in ("size", "orderBy", "orderDirection", "format") if key in params
            }
            more |= {"filter": column["filter"]["query"]} if "filter" in column else {}
            more |= {"filters": [each["label"] for each in params["filters"]]} if "filters" in params else {}
            made = f"{column['operationType']}({column.get('sourceField', '')})"
            yield f"- {column['label']}: {made}{' ' + _code(more) if more else ''}"


def _visualization(found: Object) -> Iterator[str]:
    if found["type"] == "markdown":
        yield from ("> " + line if line else ">" for line in found["params"]["markdown"].split("\n"))
        return
    spec = json.loads(found["params"]["spec"])
    yield from _requests(spec)
    layers = [each.get("name", "") for each in spec["layer"]]
    yield f"- draws: {', '.join(filter(None, layers))}; a server lacks {spec['usermeta']['lacking']}"
    titles = (title for title in _within(spec, "title") if isinstance(title, str))
    yield from _listed("says", "; ", filter(None, titles))
    yield from _listed("keeps", ", then ", _kept(spec["transform"]))
    written = [name for name in _within(spec["layer"], "as") if " as " in str(name)]
    labels = [f"axis {_code(each)}" for each in _within(spec["layer"], "labelExpr")]
    yield from _listed("numbers", ", ", [*written, *labels])


def _listed(what: str, between: str, texts: Iterable[str]) -> Iterator[str]:
    """A line of texts, each once; none without any."""
    if text := between.join(dict.fromkeys(texts)):
        yield f"- {what}: {text}"


def _kept(transform: Sequence[Object]) -> list[str]:
    """The steps that leave rows out."""
    chosen = [each for each in transform if "window" in each or isinstance(each.get("filter"), str)]
    return [_code(each.get("filter", each)) for each in chosen]


def _requests(spec: Object) -> Iterator[str]:
    for url in _within(spec, "url"):
        body = dict(url["body"])
        query = body.pop("query", {}).get("bool", {})
        yield f"- asks {url['index']}: {_code(body)}"
        for clause, conditions in sorted(query.items()):
            # texts are placeholders of the server, the same everywhere
            kept = [each for each in conditions if not isinstance(each, str)]
            if kept:
                yield f"  - {clause}: {_code(kept)}"


def _within(found: Any, key: str) -> Iterator[Any]:
    """Every value of a key, wherever it stands."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name == key:
                yield value
            else:
                yield from _within(value, key)
    elif isinstance(found, list):
        for value in found:
            yield from _within(value, key)


def _data_view(attributes: Object) -> Iterator[str]:
    forms = json.loads(attributes["fieldFormatMap"])
    names = [each["name"] for each in json.loads(attributes["fields"]) if not each["name"].startswith("_")]
    written = [
        f"{name} `{forms[name]['params']['pattern']}`" if name in forms else name for name in sorted(names)
    ]
    time = attributes.get("timeFieldName", "none")
    yield f"- {attributes['title']} (time: {time}): {', '.join(written)}"


def _code(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return f"`{text}`"
