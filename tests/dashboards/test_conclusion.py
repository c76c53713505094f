"""What the report concludes, counts and calls things: in the same words as the verdicts themselves."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from dashboards.panels import REPORT, panel
from dashboards.panels.columns import COREPOWER, VERDICT
from dashboards.spec import LOOKS
from dashboards.targets.html.cells import read
from dashboards.targets.html.compose import Composer
from dashboards.targets.html.parts import Block, FigurePart, TablePart, TextPart, TilesPart, TypePart
from dashboards.targets.html.report import ReportData, render
from esjobs.core.numbers import declared, estimate, number
from esjobs.core.verdict_order import verdict_order


def block_of(data: ReportData, identity: str) -> Block:
    """A panel made concrete for all types together."""
    return Composer(data).block(panel(identity), "all")


def row_of(data: ReportData, kind: str = "all") -> pd.Series:
    """The stored conclusion about the queues of a type, headline method."""
    assert data.fit_summaries is not None
    chosen = data.fit_summaries.query("level == 'queue' and method == 'gamma' and processing_type == @kind")
    row: pd.Series
    (row,) = (row for _, row in chosen.iterrows())
    return row


def test_the_report_says_what_is_stored_and_counts_nothing_itself(data: ReportData) -> None:
    """Other numbers and words in the row are shown as they are, whatever the flags say."""
    assert data.fit_summaries is not None
    told = data.fit_summaries.assign(
        sentence="Nothing is wrong.", evidence="Asked everybody.", n_confirmed=77
    )
    other = replace(data, fit_summaries=told)
    assert block_of(other, "conclusion").parts == (
        TextPart(("Nothing is wrong.", "Asked everybody."), loud=True),
    )
    (tiles,) = block_of(other, "counts").parts
    assert isinstance(tiles, TilesPart)
    assert {tile.label: tile.n for tile in tiles.tiles}["confirmed"] == 77
    (lone,) = block_of(replace(data, fit_summaries=data.fit_summaries.assign(n_candidates=1)), "counts").parts
    assert isinstance(lone, TilesPart)
    assert {tile.label: tile.n for tile in lone.tiles}["candidate"] == 1
    (kind, *_) = block_of(other, "types").parts
    assert isinstance(kind, TypePart)
    assert " · 77 confirmed · " in kind.summary


def test_a_conclusion_without_evidence_is_one_paragraph(data: ReportData) -> None:
    assert data.fit_summaries is not None
    bare = replace(data, fit_summaries=data.fit_summaries.assign(evidence=None))
    assert block_of(bare, "conclusion").parts == (TextPart((row_of(data)["sentence"],), loud=True),)


def test_a_run_before_these_counts_shows_that_they_are_not_known(data: ReportData) -> None:
    assert data.fit_summaries is not None
    older = data.fit_summaries.drop(columns=["n_confirmed", "n_candidates", "n_with_factor", "evidence"])
    (tiles,) = block_of(replace(data, fit_summaries=older), "counts").parts
    assert isinstance(tiles, TilesPart)
    assert {tile.label: tile.n for tile in tiles.tiles}["confirmed"] is None
    assert "<b>–</b>" in render(replace(data, fit_summaries=older))


def test_candidates_are_kept_apart_from_what_is_confirmed(data: ReportData) -> None:
    """Every deviating queue stands in one of the two tables; only the confirmed have colour and name."""
    assert data.flags is not None
    composer = Composer(data)
    shown = {
        name: {row["name"] for row in composer.rows(panel(name), "all")}
        for name in ("deviating", "candidates")
    }
    flags = data.flags.query("level == 'queue' and processing_type == 'all' and method == 'gamma'")
    deviating = flags[flags.verdict == "deviates"]
    assert shown["deviating"] == set(deviating[deviating.confirmed == True].name)  # noqa: E712
    assert shown["candidates"] == set(deviating.name) - shown["deviating"]
    assert shown["deviating"]
    assert shown["candidates"]
    assert panel("candidates").folded
    row = {"verdict": "deviates", "confirmed": False}
    assert read(row, VERDICT) == "candidate"
    assert read(row | {"confirmed": True}, VERDICT) == "confirmed"
    assert not LOOKS["candidate"].filled
    assert LOOKS["candidate"].shape == LOOKS["confirmed"].shape


def test_only_the_headline_method_is_in_the_tables(data: ReportData) -> None:
    for identity in ("fits", "fit-quality", "correlation", "deviating", "candidates"):
        rows = Composer(data).rows(panel(identity), "all")
        assert {row["method"] for row in rows} == {"gamma"}, identity
    paper = replace(data, method="paper")
    assert {row["method"] for row in Composer(paper).rows(panel("fits"), "all")} == {"paper"}


def test_one_count_means_one_thing_everywhere(data: ReportData) -> None:
    (tiles,) = block_of(data, "counts").parts
    assert isinstance(tiles, TilesPart)
    counted = {tile.label: tile.n for tile in tiles.tiles}
    assert counted["queues"] == sum(tile.n or 0 for tile in tiles.tiles if tile.look)
    assert counted["with a speed factor"] == block_of(data, "factors-site").n
    assert "2 not comparable" in tiles.tiles[-1].label
    (kind, *_) = block_of(data, "types").parts
    assert isinstance(kind, TypePart)
    assert kind.summary.startswith(f"{counted['with a speed factor']} queues with a speed factor · ")


def test_verdicts_are_called_what_the_command_line_calls_them(data: ReportData) -> None:
    for verdict in ("ok", "undecided", "undeclared", "too few", "mixed", "implausible"):
        assert read({"verdict": verdict, "origin": "default"}, VERDICT) == verdict
    page = render(data)
    for word in ("sites fitted", "excluded</", "default, not fitted", "Off by"):
        assert word not in page
    assert "excluded" not in " ".join(look.label for look in LOOKS.values())


def test_declared_values_keep_their_digits_and_proposals_those_of_their_error() -> None:
    assert read({"corepower": 16.35, "benchmark": "HS06"}, COREPOWER) == "16.35 HS06"
    assert declared(9.49972) == "9.50"
    assert estimate(8.871, 0.4436) == "8.9 ± 0.4"
    assert estimate(8.9, None) == "8.90"
    shown = [field for each in REPORT for field in each.fields if field.column.startswith("corepower")]
    assert {field.show for field in shown} == {"declared"}


def test_numbers_lose_digits_that_their_error_makes_idle() -> None:
    assert (number(1910.0, 1323.0), number(0.0, 13542.0)) == ("1,900 ± 1,300", "0 ± 14,000")
    assert (number(-1e-15), number(-0.0), number(0.99999)) == ("0.00", "0.00", "1.00")


def test_the_error_of_k_is_told_as_it_is_computed() -> None:
    (text,) = (text for term, text in panel("method").text if term == "Errors")
    assert "k_err² = k_err_stat² + k_err_int²" in text
    assert "propagated through the fit" in text


def models_with_scores(data: ReportData) -> ReportData:
    """The same run after a table of reference scores was imported."""
    assert data.flags is not None
    assert data.lines is not None
    flags = data.flags.copy()
    mine = flags.level == "cpu_model"
    flags.loc[mine, "corepower"] = 12.5
    flags.loc[mine, "benchmark"] = "HS06"
    flags.loc[mine, "deviation"] = 0.05
    flags.loc[mine, "verdict"] = "ok"
    lines = data.lines.assign(level="cpu_model", n_entries=25, n_groups=25, tau=0.02)
    return replace(data, flags=flags, lines=lines)


def test_reference_scores_are_no_declarations_of_sites(data: ReportData) -> None:
    (figure,) = block_of(models_with_scores(data), "corepower-cpu-model").parts
    assert isinstance(figure, FigurePart)
    assert "from the reference scores of 25 CPU models." in figure.caption
    assert "2.0 %, the assumed minimum" in figure.caption
    (sites,) = block_of(data, "corepower-site").parts
    assert isinstance(sites, FigurePart)
    assert "declared values of" in sites.caption
    assert "sites" in sites.caption


def test_empty_sections_of_cpu_models_are_left_out_or_say_why(data: ReportData) -> None:
    def shown(run: ReportData) -> set[str]:
        blocks = (block for section in Composer(run).sections() for block in section.blocks)
        return {block.panel.id for block in blocks} & {
            "deviating-cpu-model",
            "factors-cpu-model",
            "corepower-cpu-model",
        }

    assert data.flags is not None
    assert data.factors is not None
    assert shown(data) == {"factors-cpu-model", "corepower-cpu-model"}
    assert "No CPU model has a confirmed deviation from its reference score." in render(
        models_with_scores(data)
    )
    bare = replace(
        data,
        flags=data.flags[data.flags.level == "queue"],
        factors=data.factors[data.factors.level == "queue"],
    )
    assert shown(bare) == {"factors-cpu-model"}


def test_other_components_are_not_drawn_beside_the_line(data: ReportData) -> None:
    rows = Composer(data).rows(panel("corepower-site"), "all")
    assert {row["component"] for row in rows} == {0}


def test_a_single_type_is_not_repeated(make_data: Callable[..., ReportData]) -> None:
    data = make_data(12, types=("all",))
    assert data.factors is not None
    twice: pd.DataFrame = pd.concat([data.factors, data.factors.assign(processing_type="simul")])
    (text,) = block_of(replace(data, factors=twice), "types").parts
    assert text == TextPart(
        ("All jobs of the fit have one processing type, simul; its results are those above.",)
    )


@pytest.mark.parametrize("identity", ["deviating", "corepower-site", "deviation-site", "pulls", "matrix"])
def test_readers_are_told_which_side_is_faster(identity: str) -> None:
    assert "faster" in panel(identity).description


@pytest.mark.parametrize("identity", ["deviation-site", "flags-site-table", "deviating", "undecided"])
def test_verdicts_come_in_one_order(data: ReportData, identity: str) -> None:
    rows = Composer(data).rows(panel(identity), "all")
    assert rows == sorted(rows, key=verdict_order)


def test_a_deviation_is_told_with_its_interval(data: ReportData) -> None:
    tables = [part for part in block_of(data, "deviating").parts if isinstance(part, TablePart)]
    assert "Deviation ± 90 %" in [heading.text for heading in tables[0].headings]
