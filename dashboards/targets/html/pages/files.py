"""The pages as files: one of HTML each, a script and a style sheet for all, rows in files beside them.

Rows stand in scripts, because a browser that opens a page from disk lets it load nothing else. A page whose
panels all have a column of which one value is chosen has a file of rows for each value; the others have one.
The pages are as safe as the report: text is only ever set as text, Vega evaluates no code, and a content
security policy admits scripts beside the page alone.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from markupsafe import Markup

from dashboards.spec import EVERY_LOOK, LOOKS, OWN, Choice, JobsIndex, Page, Panel, lacking
from dashboards.targets.html.files import compact, environment, inside_page, read
from dashboards.targets.html.job import job_style
from dashboards.targets.html.pages.columns import Columns, numbered
from dashboards.targets.html.pages.figures import Drawable
from dashboards.targets.html.pages.opened import LARGE, Opened, opened
from dashboards.targets.html.pages.panels import panel_of, slug, words_of
from dashboards.targets.html.pages.pools import Pool, Reader, pools_of, shown_view
from dashboards.targets.html.report import library
from dashboards.targets.html.theme import SHAPES, age_macro, look_names, palette_css, series_css
from dashboards.view.rows import Row, select
from esjobs.core.freshness import Freshness
from esjobs.core.text import visible
from esjobs.core.words import ALL_TYPES, DEVIATION_LIMIT

_SCRIPTS = ("shared.js", *(f"pages/{name}.js" for name in ("rows", "choices", "tables", "charts", "page")))
LIBRARY = "vega.js"  # The script that draws charts
FIRST = "index.html"  # The page on which a reader starts
JOB_STYLE = "job.css"  # The style sheet of pages of jobs
OPENED = "opened"  # Key of the file of rows on which a page opens
MARK = '<meta name="generator" content="esjobs pages">'  # By which a file of ours is known among others


Facts = tuple[tuple[str, str], ...]  # Texts by term


@dataclass(frozen=True)
class Setting:
    """Settings of all pages.

    ``facts``: what their head says about the run that they show. ``notes``: what their foot says. ``limit``:
    the accepted deviation. ``jobs``: the index of jobs, which may lack fields that panels need. ``of_jobs``:
    addresses of pages of jobs, by source and job_id. ``age``: of the run; None without one. ``ways``: titles
    and addresses of pages beside these. ``library``: address of the script that draws; empty: a part of
    these.
    """

    facts: Facts = ()
    notes: Facts = ()
    limit: float = DEVIATION_LIMIT
    jobs: JobsIndex = OWN
    of_jobs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    age: Freshness | None = None
    ways: Facts = ()
    library: str = ""


@dataclass(frozen=True)
class Site:
    """All pages as files.

    ``pages``: by name, the files that a reader opens. ``parts``: by name, what they load, all below
    ``folder``, whose name tells these contents from any other.
    """

    folder: str
    pages: dict[str, str]
    parts: dict[str, str]


def site_of(pages: Sequence[Page], reader: Reader, setting: Setting = Setting()) -> Site:
    """All pages. The same rows give the same files, to the byte."""
    parts = {name: text for name, text in _shared() if not (setting.library and name == LIBRARY)}
    described: dict[str, dict[str, Any]] = {}
    for page in pages:
        described[page.id], rows = _page(page, pages, reader, setting)
        parts |= {f"{page.id}-{key}.js": text for key, text in rows.items()}
    digest = hashlib.sha256()
    for name, text in sorted(parts.items()):
        digest.update(f"{name}\0{text}\0".encode())
    digest.update(json.dumps(described, sort_keys=True).encode())
    folder = f"esjobs-pages-{digest.hexdigest()[:12]}"
    template = environment().from_string(age_macro() + read("pages/page.html.jinja"))
    written = {
        file_of(page, pages): template.render(
            page=page,
            pages=[(each.title, file_of(each, pages), each.id == page.id) for each in pages],
            facts=setting.facts,
            notes=setting.notes,
            age=setting.age,
            ways=setting.ways,
            folder=folder,
            library=setting.library or f"{folder}/{LIBRARY}",
            mark=Markup(MARK),  # noqa: S704 - our own text
            description=Markup(inside_page(described[page.id])),  # noqa: S704 - escaped there
        ).lstrip()
        for page in pages
    }
    return Site(folder, written, parts)


def file_of(page: Page, pages: Sequence[Page]) -> str:
    """The name of the file of a page; that of the first is found by a server that is asked for the folder."""
    return FIRST if page.id == pages[0].id else f"{page.id}.html"


def _page(
    page: Page, pages: Sequence[Page], reader: Reader, setting: Setting
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the data of a page for its script, and its files of rows, split by its main choice.

    Where the first of them is large, the page opens on one of its own (:data:`OPENED`).
    """
    pools, of_panel = pools_of(page, reader, setting.jobs)
    main = _main_choice(page)
    values = _values(main, pools)
    leads_to = {each.id: each for each in pages}.get(page.leads_to)
    choices = [_choice(choice, pools) for choice in page.choices]
    files: dict[str, str] = {}
    for number, value in enumerate(values):
        kept = [replace(pool, rows=pool.kept(_chosen(pool, main, value))) for pool in pools]
        files[str(number)] = _call(number, _part(page, kept, of_panel, reader, setting, leads_to))
        if number == 0 and choices and len(files["0"]) > LARGE:
            others = [each for each in choices if main is None or each["key"] != slug(main.title)]
            if (first := opened(page, kept, of_panel, others)) is not None:
                part = _part(page, first.pools, first.of_panel, reader, setting, leads_to, first)
                files[OPENED] = _call(OPENED, part | {"options": first.options})
    description = {
        "id": page.id,
        **_ways(pages, leads_to),
        "choices": choices,
        "main": None if main is None else slug(main.title),
        "values": [None if value is None else visible(str(value)) for value in values],
        "opened": OPENED if OPENED in files else "",
        "panels": [_described(placed.panel, placed.w, setting.limit) for placed in page.places],
    }
    return description, files


def _main_choice(page: Page) -> Choice | None:
    """The choice by whose values the rows of a page are split into files."""
    return next((choice for choice in page.choices if choice.single and choice.chosen), None)


def _ways(pages: Sequence[Page], leads_to: Page | None) -> dict[str, Any]:
    """Files and titles of all pages, and what a click on a name opens."""
    return {
        "files": {each.id: file_of(each, pages) for each in pages},
        "titles": {each.id: each.title for each in pages},
        "leadsTo": file_of(leads_to, pages) if leads_to else "",
        "leadsToKeys": [slug(choice.title) for choice in leads_to.choices] if leads_to else [],
    }


def _chosen(pool: Pool, main: Choice | None, value: object) -> list[Row]:
    """The rows of a pool that have a value of the main choice; all on a page without one."""
    return pool.rows if main is None else [row for row in pool.rows if row[main.column] == value]


def _values(main: Choice | None, pools: Sequence[Pool]) -> list[Any]:
    """The values of the main choice, that which is chosen at first before the others; None without one."""
    if main is None:
        return [None]
    found = {row[main.column] for pool in _able(main, pools) for row in pool.rows}
    others = sorted(found - {main.chosen, None}, key=str)
    return [main.chosen, *others, *([None] if None in found else [])]


def _able(choice: Choice, pools: Sequence[Pool]) -> list[Pool]:
    """The pools that have the column of a choice."""
    return [pool for pool in pools if choice.column in dict(pool.choices)]


def _choice(choice: Choice, pools: Sequence[Pool]) -> dict[str, Any]:
    """A filter: its key in the address, and the pools whose values can be chosen."""
    able = _able(choice, pools)
    own = [pool for pool in able if pool.view.table == choice.table]
    # the history has values of long ago
    own = [pool for pool in own if pool.view.runs == "latest"] or own
    return {
        "key": slug(choice.title),
        "title": choice.title,
        "column": choice.column,
        "single": choice.single,
        "chosen": choice.chosen,
        "first": _first(choice, own),
        "pools": [pool.name for pool in own or able],
    }


def _first(choice: Choice, pools: Sequence[Pool]) -> str | None:
    """Return the value that a page opens on: that of the first row by rank."""
    ranked = [
        (row["rank"], str(row[choice.column]))
        for pool in pools
        for row in pool.rows
        if choice.single and row.get("rank") is not None and row.get(choice.column) is not None
    ]
    return visible(min(ranked)[1]) if ranked else None


def _described(panel: Panel, width: int, limit: float) -> dict[str, Any]:
    said = {
        "id": panel.id,
        "title": panel.title,
        "kind": panel.kind,
        "about": panel.description,
        "empty": panel.empty or "No rows for this selection.",
        "width": width,
    }
    return said | (words_of(panel, limit) if not panel.view.table else {})


def _part(
    page: Page,
    pools: Sequence[Pool],
    of_panel: Mapping[str, Pool],
    reader: Reader,
    setting: Setting,
    leads_to: Page | None,
    first: Opened | None = None,
) -> dict[str, Any]:
    """One file of rows: pools, and what each panel makes of them; ``first``: those of the first view."""
    columns = {
        pool.name: Columns(numbered(pool.rows), exact=first is not None and pool.summed) for pool in pools
    }
    made = {}
    for placed in page.places:
        panel = placed.panel
        if not panel.view.table:
            continue
        if panel.id not in of_panel:
            made[panel.id] = {"lacking": lacking(panel, setting.jobs), "rows": []}
            continue
        pool = of_panel[panel.id]
        rows = _selected(panel, pool, columns[pool.name].rows)
        drawable = Drawable(
            panel, placed.h, rows, pool, columns[pool.name], lambda view: reader.rows(view, ()), setting.limit
        )
        if first is not None and not pool.summed:
            every = _selected(panel, pool, first.every[panel.id])
            drawable = replace(drawable, every=every, beyond=first.beyond.get(panel.id, 0))
        made[panel.id] = panel_of(drawable, page, leads_to, setting.of_jobs) | {"pool": pool.name}
    return {
        "pools": {
            pool.name: {
                "n": len(pool.rows),
                "chosen": len(pool.rows) - pool.unchosen,
                "choices": {column: columns[pool.name].value(own) for column, own in pool.choices},
                "columns": columns[pool.name].packed,
            }
            for pool in pools
        },
        "panels": made,
    }


def _selected(panel: Panel, pool: Pool, rows: Sequence[Row]) -> list[Row]:
    """The rows of a pool that a panel is about, in its order; of groups all, for they are made later."""
    view = shown_view(panel)
    if pool.summed:
        return list(rows)
    return select(replace(view, by=(), metrics=(), sort=() if view.by else view.sort), list(rows))


def _call(key: int | str, content: dict[str, Any]) -> str:
    """A script that hands over rows."""
    return f"esjobs.rows({json.dumps(key)},{compact(content)});\n"


@cache
def _shared() -> tuple[tuple[str, str], ...]:
    """Return the data common to all pages."""
    looks = {
        look.label: {
            "name": look_names()[look.label],
            "glyph": look.glyph,
            "colour": look.light,
            "path": SHAPES[look.shape],
            "filled": look.filled,
        }
        for look in EVERY_LOOK
    }
    verdicts = {key: look.label for key, look in LOOKS.items()}
    constants = {"looks": looks, "verdicts": verdicts, "everything": ALL_TYPES}
    scripts = "\n".join(map(read, _SCRIPTS))
    return (
        (LIBRARY, library()),
        ("pages.js", f'"use strict";\nconst KNOWN = {json.dumps(constants)};\n{scripts}'),
        ("pages.css", palette_css() + series_css() + read("report.css") + read("pages/pages.css")),
        (JOB_STYLE, job_style()),
    )


def files_of(site: Site) -> Iterator[tuple[str, str]]:
    """Everything by its name below the folder of the pages: what is loaded first, then the pages."""
    yield from ((f"{site.folder}/{name}", text) for name, text in site.parts.items())
    yield from site.pages.items()
