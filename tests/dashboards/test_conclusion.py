"""What the report concludes, counts and calls things: in the same words as the verdicts themselves."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from dashboards.cells import declared, estimate, number, read
from dashboards.columns import COREPOWER, VERDICT
from dashboards.compose import Composer
from dashboards.conclusion import conclusion
from dashboards.panels import REPORT, panel
from dashboards.parts import Block, FigurePart, TablePart, TextPart, TilesPart, TypePart
from dashboards.report import ReportData, render
from dashboards.rows import Row
from dashboards.spec import LOOKS


def flag(name: str, deviation: float, **more: Any) -> Row:
    """A flag that deviates, is significant and stable."""
    row: Row = {"name": name, "deviation": deviation, "verdict": "deviates", "n_tasks": 9}
    return row | {"significant": True, "stable": True} | more


def block_of(data: ReportData, identity: str) -> Block:
    """A panel made concrete for all types together."""
    return Composer(data).block(panel(identity), "all")


def test_every_deviating_name_is_named_by_size() -> None:
    flags = [flag(f"S{n}", (-1) ** n * (0.3 + n / 100)) for n in range(8)]
    first, second = conclusion([*flags, flag("fine", 0.01, verdict="ok")], "sites", 0.2)
    assert first.startswith(
        "8 of 9 comparable sites deviate by more than 20\u202f%: S7 −37\u202f%, S6 +36\u202f%"
    )
    assert [f"S{n}" for n in range(7, -1, -1)] == [word for word in first.split() if word.startswith("S")]
    assert second.startswith("All 8 are significant over all tests of the run, all 8 stable")
    assert "all may be sent. The others: 1 ok, 0 undecided." in second


def test_what_may_be_sent_is_what_is_stable() -> None:
    flags = [flag("A", 0.5), flag("B", 0.4, significant=False), flag("C", 0.3, stable=False)]
    (_, second) = conclusion(flags, "sites", 0.2)
    assert "2 of 3 are significant over all tests of the run, 2 of 3 stable" in second
    assert "only A, B may be sent." in second
    assert "Not significant, so perhaps chance: B." in second
    (_, none) = conclusion([flag("A", 0.5, stable=None, significant=None)] * 2, "sites", 0.2)
    assert none.startswith("None is significant over all tests of the run, none stable")
    assert "none may be sent" in none
    (_, one) = conclusion([flag("A", 0.5, stable=False)], "sites", 0.2)
    assert one.startswith("It is significant over all tests of the run and not stable: it may not be sent.")


def test_single_tasks_are_pointed_out() -> None:
    (_, second) = conclusion([flag("A", 0.5, n_tasks=1)], "sites", 0.2)
    assert "1 of 1 rest on a single task" in second
    assert conclusion([flag("A", 0.0, verdict="ok")], "sites", 0.2) == ()


def test_the_report_concludes_in_these_words(data: ReportData) -> None:
    (text,) = block_of(data, "conclusion").parts
    assert isinstance(text, TextPart)
    rows = Composer(data).rows(panel("deviating"), "all")
    assert all(f" {row['name']} " in text.paragraphs[0] for row in rows if str(row["name"]).isalnum())
    assert data.flags is not None
    calm = data.flags.assign(verdict=data.flags.verdict.replace("deviates", "ok"))
    (stored,) = block_of(replace(data, flags=calm), "conclusion").parts
    assert isinstance(stored, TextPart)
    assert "cannot be decided with the jobs of this window" in stored.paragraphs[0]


def test_one_count_means_one_thing_everywhere(data: ReportData) -> None:
    (tiles,) = block_of(data, "counts").parts
    assert isinstance(tiles, TilesPart)
    counted = {tile.label: tile.n for tile in tiles.tiles}
    assert counted["sites"] == sum(tile.n for tile in tiles.tiles if tile.look)
    assert counted["with a speed factor"] == block_of(data, "factors-site").n
    assert "2 not comparable" in tiles.tiles[-1].label
    (kind, *_) = block_of(data, "types").parts
    assert isinstance(kind, TypePart)
    assert kind.summary.startswith(f"{counted['with a speed factor']} sites with a speed factor · ")


def test_verdicts_are_called_what_the_command_line_calls_them(data: ReportData) -> None:
    for verdict in ("deviates", "ok", "undecided", "undeclared", "too few", "mixed", "implausible"):
        assert read({"verdict": verdict, "origin": "default"}, VERDICT) == verdict
    page = render(data)
    for word in ("sites fitted", "set aside</", "default, not fitted", "Off by", "queues."):
        assert word not in page
    assert "set aside" not in " ".join(look.label for look in LOOKS.values())


def test_declared_values_keep_their_digits_and_proposals_those_of_their_error() -> None:
    assert read({"corepower": 16.35, "benchmark": "HS06"}, COREPOWER) == "16.35 HS06"
    assert declared(9.49972) == "9.50"
    assert estimate(8.871, 0.4436) == "8.9 ± 0.4"
    assert estimate(8.9, None) == "8.90"
    shown = [field for each in REPORT for field in each.fields if field.column.startswith("corepower")]
    assert {field.show for field in shown} == {"declared"}


def test_numbers_lose_digits_that_their_error_makes_idle() -> None:
    assert (number(1910.0, 1323.0), number(0.0, 13542.0)) == ("1900 ± 1300", "0 ± 14000")
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
    lines = data.lines.assign(level="cpu_model", n_entries=25, n_sites=25, tau=0.05)
    return replace(data, flags=flags, lines=lines)


def test_reference_scores_are_no_declarations_of_sites(data: ReportData) -> None:
    (figure,) = block_of(models_with_scores(data), "corepower-cpu-model").parts
    assert isinstance(figure, FigurePart)
    assert "from the reference scores of 25 CPU models." in figure.caption
    assert "5 %, the least that is assumed" in figure.caption
    (sites,) = block_of(data, "corepower-site").parts
    assert isinstance(sites, FigurePart)
    assert "declared values of" in sites.caption
    assert "WLCG sites" in sites.caption


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
    assert "No CPU model deviates from its reference score" in render(models_with_scores(data))
    bare = replace(
        data,
        flags=data.flags[data.flags.level == "site"],
        factors=data.factors[data.factors.level == "site"],
    )
    assert shown(bare) == {"factors-cpu-model"}


def test_other_components_are_not_drawn_beside_the_line(data: ReportData) -> None:
    rows = Composer(data).rows(panel("corepower-site"), "all")
    assert {row["component"] for row in rows} == {0}


def test_a_single_type_is_not_repeated(make_data: Callable[..., ReportData]) -> None:
    data = make_data(12, types=("all",))
    assert data.factors is not None
    twice = pd.concat([data.factors, data.factors.assign(processing_type="simul")])
    (text,) = block_of(replace(data, factors=twice), "types").parts
    assert text == TextPart(("All jobs of the fit are of one type, simul: its results are those above.",))


@pytest.mark.parametrize("identity", ["deviating", "corepower-site", "deviation-site", "pulls", "matrix"])
def test_readers_are_told_which_side_is_faster(identity: str) -> None:
    assert "faster" in panel(identity).description


def test_deviations_come_from_the_fastest_down(data: ReportData) -> None:
    found = [row["deviation"] for row in Composer(data).rows(panel("deviation-site"), "all")]
    assert found == sorted(found, reverse=True)
    tables = [part for part in block_of(data, "deviating").parts if isinstance(part, TablePart)]
    assert "Deviation ± 90 %" in [heading.text for heading in tables[0].headings]
