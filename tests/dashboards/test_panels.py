"""The panels are facts about the result tables: every column exists, every id is fixed and unique."""

import itertools
import re

import pytest

from dashboards.pages import PAGES
from dashboards.panels import REPORT, panel
from dashboards.panels.columns import NAME, K
from dashboards.spec import GROUPS, LOOKS, Entry, Panel, Role, Tile, Where
from esjobs.core.words import VERDICTS, Verdict
from esjobs.schema.catalogue import TABLES, table
from esjobs.speed.judging.conclusions import conclude
from esjobs.speed.judging.verdicts import is_confirmed


def named(fields: tuple[Entry, ...]) -> set[str]:
    """Every column that fields name in the table that holds them."""
    return {column for field in fields for column in (field.column, field.error, field.unit) if column}


def columns_of(each: Panel) -> set[str]:
    """Every column of the panel's own table that it names."""
    own = tuple(field for field in each.fields if not field.table)
    names = named(own) | {field.per for field in own if field.per}
    names |= {field.fixed[0] for field in own if field.fixed}
    names |= {condition.column for condition in (*each.view.where, *each.requires)}
    names |= {re.sub(r"[-|]", "", column) for column in each.view.sort}
    return names


@pytest.mark.parametrize("each", REPORT, ids=lambda each: each.id)
def test_every_column_exists_in_its_table(each: Panel) -> None:
    if each.kind == "markdown":
        assert not each.view.table
        return
    assert columns_of(each) <= set(table(each.view.table).column_names)
    for field in each.fields:
        if field.table:
            assert named((field,)) <= set(table(field.table).column_names)
            assert {"level", "name", "processing_type"} <= set(table(field.table).column_names)
    for tile in each.tiles:
        assert {tile.column, *(column for column, _ in tile.parts)} <= set(
            table(each.view.table).column_names
        )


@pytest.mark.parametrize("each", [each for each in REPORT if each.view.table], ids=lambda each: each.id)
def test_a_view_asks_by_columns_that_every_store_can_search(each: Panel) -> None:
    """Texts are stored, not indexed: a condition on one finds nothing in a cluster."""
    columns = {condition.column for condition in each.view.where}
    columns |= {re.sub(r"[-|]", "", column) for column in each.view.sort} | set(each.view.by)
    assert "text" not in {table(each.view.table).column(column).type for column in columns}


def test_ids_are_unique_and_fit_for_addresses() -> None:
    ids = [each.id for each in REPORT]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", each) for each in ids)


def test_panels_of_a_section_follow_each_other() -> None:
    sections = [each.section for each in REPORT]
    changes = [after for before, after in itertools.pairwise(sections) if before != after]
    assert len(changes) == len(set(sections)) - 1


def test_a_reader_is_told_what_each_panel_holds_and_why_it_may_be_empty() -> None:
    for each in REPORT:
        assert each.title
        if each.kind not in {"tiles", "markdown"}:
            assert each.empty.endswith("."), each.id


def test_charts_name_the_roles_they_need() -> None:
    roles: dict[str, tuple[Role, ...]] = {
        "scatter-line": ("label", "x", "y", "category"),
        "dots-with-errors": ("label", "x", "category"),
        "siblings": ("label", "x", "y", "group", "category"),
    }
    for each in REPORT:
        for role in roles.get(each.kind, ()):
            assert each.entry(role).role == role


def test_repeated_panels_exist() -> None:
    for each in REPORT:
        assert [panel(name).id for name in each.repeat] == list(each.repeat)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_verdict_tiles_count_every_flag_once(verdict: Verdict) -> None:
    """Of any verdict exactly one tile counts it; else the share bar would lie."""
    row: dict[str, object] = {
        "name": "Q",
        "verdict": verdict,
        "deviation": 0.5,
        "k": 1.0,
        "n_tasks": 2,
    }
    tiles: list[Tile] = [tile for tile in panel("counts").tiles if tile.verdict]
    for sure in (True, False):
        tested = {"significant": sure, "stable": True, "confirmed": is_confirmed(verdict, sure, True)}
        said = conclude([row | tested], "queue", limit=0.2)
        assert sum(int(str(said[tile.column])) for tile in tiles) == 1
        assert all(
            sum(int(str(said[part])) for part, _ in tile.parts) in (0, said[tile.column]) for tile in tiles
        )


def test_looks_differ_by_shape_or_fill_and_never_share_a_colour() -> None:
    looks = [*LOOKS.values(), *GROUPS.values()]
    assert len({look.light for look in looks}) == len(looks)
    assert len({look.dark for look in looks}) == len(looks)
    judged = [LOOKS[name] for name in ("confirmed", "candidate", "ok", "undecided", "default")]
    assert len({(look.shape, look.filled) for look in judged}) == len(judged)


def test_asking_for_what_is_not_there_names_it() -> None:
    with pytest.raises(LookupError, match="unknown panel 'nothing'"):
        panel("nothing")
    with pytest.raises(LookupError, match="no field of role 'x'"):
        Panel("empty", "", "table", "", fields=(NAME, K)).entry("x")


def test_panels_are_values() -> None:
    assert Entry("k", "k") == Entry("k", "k")
    assert hash(Where("k", ("a",))) == hash(Where("k", ("a",)))


def test_no_panel_reads_rows_that_a_cluster_keeps_packed_alone() -> None:
    alone = {table.name for table in TABLES if table.packed == "alone"}
    placed = [place.panel for page in PAGES for place in (*page.places, *page.served)]
    views = [view for each in (*REPORT, *placed) for view in (each.view, *(join.view for join in each.joins))]
    assert alone
    assert not alone & {view.table for view in views}
