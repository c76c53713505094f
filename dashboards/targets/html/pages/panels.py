"""A panel as what the script of the pages draws: which columns, which rows, by its kind."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dashboards.spec import LOOKS, Entry, Kind, Page, Panel, table
from dashboards.targets.html.cells import numeric, value_of
from dashboards.targets.html.pages.columns import Columns
from dashboards.targets.html.pages.figures import DRAWN, Drawable, figures_of, places
from dashboards.targets.html.parts import stands, style_of
from dashboards.view.rows import keeps
from esjobs.core.numbers import exact_percent
from esjobs.core.words import STANDINGS

Made = dict[str, Any]

MOST_ROWS = 1000  # Rows that a table shows at most where nobody can choose some of them


def panel_of(
    drawable: Drawable,
    page: Page,
    leads_to: Page | None,
    of_jobs: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> Made:
    """A panel about rows of a page.

    ``leads_to``: the page that opens when one of its names is clicked. ``of_jobs``: addresses of pages of
    jobs by source and job_id, to which their ids lead.
    """
    panel = drawable.panel
    made = _made(drawable, page)
    if panel.kind == "rows" and panel.view.most and len(drawable.rows) + drawable.beyond == panel.view.most:
        made["first"] = panel.view.most
    for column in made.get("columns", ()):
        if column["column"] == "job_id" and of_jobs:
            column["page"] = drawable.columns.made(
                "page", lambda row: of_jobs.get((row["source"], row["job_id"]))
            )
    if leads_to is not None and panel.view.level != "cpu_model":
        _lead(made, panel, leads_to)
    return made


def _made(drawable: Drawable, page: Page) -> Made:
    make = _MAKERS[drawable.panel.kind]
    is_table = drawable.panel.kind in ("table", "rows")
    if is_table and not page.choices and len(drawable.rows) > MOST_ROWS:
        return make(replace(drawable, rows=drawable.rows[:MOST_ROWS])) | {"of": len(drawable.rows)}
    return make(drawable)


def words_of(panel: Panel, limit: float) -> Made:
    """A panel of words alone."""
    said = exact_percent(limit)
    return {"terms": [[term, text.replace("{limit}", said)] for term, text in panel.text]}


def _tiles(drawable: Drawable) -> Made:
    """Numbers: rows counted by condition, or the largest value of a column over rows."""
    tiles = []
    for tile in drawable.panel.tiles:
        met = [row for row in drawable.rows if keeps(row, tile.where)]
        tiles.append(
            {
                "label": tile.label,
                "one": tile.one or tile.label,
                "look": tile.verdict if tile.verdict in LOOKS else "",
                "note": tile.note,
                "rows": places(met),
                "column": drawable.columns.value(tile.column) if tile.column else None,
            }
        )
    return {"tiles": tiles, "rows": places(drawable.rows)}


def _caption(drawable: Drawable) -> Made:
    (tile,) = drawable.panel.tiles
    return {"label": tile.label, "one": tile.one or tile.label, "rows": places(drawable.rows)}


def _statement(drawable: Drawable) -> Made:
    """Texts of one row, a paragraph each, the first of them large."""
    texts = [drawable.columns.value(field.column) for field in drawable.panel.fields]
    return {"texts": texts, "rows": places(drawable.rows)}


def _table(drawable: Drawable) -> Made:
    """Rows in columns. Those without a value in any row are left out, unless they always stand."""
    panel, columns = drawable.panel, drawable.columns
    label = next((field for field in panel.fields if field.role == "label"), panel.fields[0])
    every = drawable.every or drawable.rows
    own = [field for field in panel.fields if not field.table]
    fields = [field for field in own if field is label or stands(field, every)]
    return {
        "columns": [_column(field, panel, columns) for field in fields],
        "rows": places(drawable.rows),
        "beyond": drawable.beyond,
        "most": panel.most[0] if panel.most else None,
    }


def _column(field: Entry, panel: Panel, columns: Columns) -> Made:
    """One column of a table: its heading, its texts, what it sorts by, how it looks."""
    made: Made = {
        "title": field.title,
        "note": field.note,
        "style": style_of(field),
        "text": columns.text(field),
        "column": field.column,
    }
    if field.show in ("sentence", "shared"):
        made["place"] = field.show
    if numeric(field):
        made["order"] = _ordered(field, columns)
    # a column of standings has the words that people see in place of verdicts
    elif field.show == "verdict" or table(panel.view.table).column(field.column).values == STANDINGS:
        made["look"] = columns.verdict(field.column)
    return made


def _ordered(field: Entry, columns: Columns) -> str:
    if not field.per:
        return columns.value(field.column)
    return columns.made(f"{field.column} per {field.per}", lambda row: value_of(row, field))


def _lead(made: Made, panel: Panel, leads_to: Page) -> None:
    """Names and sites lead to the page where they can be chosen, from tables and from marks of charts."""
    keys = {choice.column: slug(choice.title) for choice in leads_to.choices}
    for column in made.get("columns", ()):
        if column["column"] in keys and "look" not in column:
            column["leads_to"] = keys[column["column"]]
    label = next((field.column for field in panel.fields if field.role == "label"), "")
    if "figures" in made and label in keys:
        made["names_lead_to"] = {"column": label, "key": keys[label]}


def slug(title: str) -> str:
    """A title as a part of an address.

    >>> slug("Site"), slug("Cores: single or multi")
    ('site', 'cores-single-or-multi')
    """
    return "-".join("".join(character if character.isalnum() else " " for character in title.lower()).split())


def _figures(drawable: Drawable) -> Made:
    most = drawable.panel.most[0] if drawable.panel.most else None
    rows, figures = places(drawable.rows), figures_of(drawable)
    # those of a chart are told where they are others than those of its panel
    own = [{key: value for key, value in each.items() if (key, value) != ("rows", rows)} for each in figures]
    return {"figures": own, "rows": rows, "most": most, "beyond": drawable.beyond}


# Functions that draw panels with rows, by kind
_MAKERS: Mapping[Kind, Callable[[Drawable], Made]] = {
    **dict.fromkeys(DRAWN, _figures),
    "tiles": _tiles,
    "caption": _caption,
    "statement": _statement,
    "sentence": _statement,
    "table": _table,
    "rows": _table,
}
