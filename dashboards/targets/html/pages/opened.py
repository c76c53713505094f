"""A page as it opens: without the rows that only a choice, an order or a search needs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dashboards.spec import Page, Panel, View
from dashboards.targets.html.pages.pools import Pool, in_order, shown_view
from dashboards.view.rows import Row, select
from esjobs.core.query import Maximum, Minimum
from esjobs.core.text import visible

LARGE = 150_000
"""Characters of a file of rows from which a page opens on fewer of them."""
PORTION = 100
"""Rows of a table before a reader asks for more, as in ``tables.js``."""


@dataclass
class Opened:
    """Rows of the first view.

    ``pools``: those that panels share, and those of single panels. ``of_panel``: the pool of a panel, by its
    id. ``every``: all rows of that pool, whatever is chosen. ``beyond``: the number of rows of a table, or of
    the worst jobs, that are left out. ``options``: values by choice.
    """

    pools: list[Pool] = field(default_factory=list)
    of_panel: dict[str, Pool] = field(default_factory=dict)
    every: dict[str, list[Row]] = field(default_factory=dict)
    beyond: dict[str, int] = field(default_factory=dict)
    options: dict[str, list[str]] = field(default_factory=dict)


def opened(
    page: Page, pools: Sequence[Pool], of_panel: Mapping[str, Pool], choices: Sequence[Mapping[str, Any]]
) -> Opened | None:
    """Return the rows that a page needs before anything is chosen; None if no value of a choice comes first.

    ``choices``: those of the page besides the main one, as described for the script.
    """
    single = [each for each in choices if each["single"]]
    if len(single) > 1 or any(each["first"] is None for each in single):
        return None
    by_name = {pool.name: pool for pool in pools}
    kept, unchosen = by_name, {name: list[Row]() for name in by_name}
    for choice in single:
        accepted = {name: _met(pool, choice, choices, by_name) for name, pool in by_name.items()}
        kept = {
            name: replace(pool, rows=[row for row in pool.rows if accepted[name](row)])
            for name, pool in by_name.items()
        }
        unchosen = {
            name: [row for row in pool.rows if not accepted[name](row)] for name, pool in by_name.items()
        }
    found = Opened()
    shared: dict[str, Pool] = {}
    for placed in page.places:
        panel = placed.panel
        if panel.id not in of_panel:
            continue
        pool = kept[of_panel[panel.id].name]
        own, beyond = _own(panel, pool, unchosen[pool.name])
        if own is None:
            own = shared.setdefault(pool.name, replace(pool, choices=()))
        else:
            found.pools.append(own)
        found.of_panel[panel.id] = own
        found.every[panel.id] = of_panel[panel.id].rows
        if beyond:
            found.beyond[panel.id] = beyond
    found.pools += shared.values()
    for choice in choices:
        found.options[choice["key"]] = sorted(_values(choice, by_name if choice["single"] else kept))
    return found


def _own(panel: Panel, pool: Pool, unchosen: Sequence[Row]) -> tuple[Pool | None, int]:
    """Return the pool of a panel that needs less than its pool has, and the number of rows left out.

    ``unchosen``: rows that are no part of its pool, and of the sums of all jobs.
    """
    view, rows = shown_view(panel), pool.rows
    if pool.summed:
        rest = in_order(_added_up(view, pool, unchosen)) if panel.joins else []
        summed = [*in_order(_added_up(view, pool, rows)), *rest]
        return replace(pool, name=panel.id, rows=summed, choices=(), unchosen=len(rest)), 0
    most = panel.most[0] if panel.kind == "worst" else PORTION if panel.kind in ("rows", "table") else 0
    # what rows share is counted over all of them
    if not most or any(each.show == "shared" for each in panel.fields):
        return None, 0
    selected = select(replace(view, by=(), metrics=()), rows)
    if len(selected) <= most:
        return None, 0
    return replace(pool, name=panel.id, rows=selected[:most], choices=()), len(selected) - most


def _added_up(view: View, pool: Pool, rows: Sequence[Row]) -> list[Row]:
    """Return the groups of a view out of smaller ones: sums, or extremes, of what is known."""
    keys = [*view.by, *([view.over] if view.over else [])]
    apart = {*pool.view.by, pool.view.over}
    extreme = {each.name: max for each in pool.view.metrics if isinstance(each, Maximum)}
    extreme |= {each.name: min for each in pool.view.metrics if isinstance(each, Minimum)}
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    made = []
    for values, members in groups.items():
        row = dict(zip(keys, values, strict=True))
        for name in (each for each in members[0] if each not in apart):
            present = [each[name] for each in members if each[name] is not None]
            row[name] = extreme.get(name, sum)(present) if present else None
        made.append(row)
    return made


def _met(
    pool: Pool, choice: Mapping[str, Any], choices: Sequence[Mapping[str, Any]], pools: Mapping[str, Pool]
) -> Callable[[Row], bool]:
    """Return a test of rows of a pool for the first value of a choice, as the script of the page makes it."""
    own = _column(pool, choice)
    if own:
        return lambda row: _text(row[own]) == choice["first"]
    for other in choices:
        name = _column(pool, other)
        if other is choice or not name:
            continue
        accepted = set()
        for each in (pools[key] for key in choice["pools"]):
            said, named = _column(each, choice), _column(each, other)
            if said and named:
                accepted |= {row[named] for row in each.rows if _text(row[said]) == choice["first"]}
        return _in(name, accepted)
    return lambda _: False


def _in(column: str, accepted: Collection[Any]) -> Callable[[Row], bool]:
    return lambda row: row[column] in accepted


def _column(pool: Pool, choice: Mapping[str, Any]) -> str:
    """Return the column of a pool that a choice is about; empty if no row has a value in it."""
    own = dict(pool.choices).get(choice["column"], "")
    return own if own and any(row[own] is not None for row in pool.rows) else ""


def _values(choice: Mapping[str, Any], pools: Mapping[str, Pool]) -> set[str]:
    found = set()
    for pool in (pools[name] for name in choice["pools"]):
        if own := _column(pool, choice):
            found |= {_text(row[own]) for row in pool.rows if row[own] is not None}
    return found


def _text(value: object) -> str:
    return "" if value is None else visible(str(value))
