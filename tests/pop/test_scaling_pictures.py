"""Efficiencies of an application against its size, as pictures: every number, the limits, hostile names."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import esjobs
from esjobs.cli.main import main
from esjobs.core.errors import UsageError
from esjobs.pop.scaling import scaling_rows
from esjobs.publish.publication import rows_table
from esjobs.render.charts.scaling import specification, text_picture
from esjobs.schema.pop import SCALING
from tests.messages import compare_text, raised
from tests.pop.reports import put_job
from tests.pop.test_scaling import counted, reports_of_sizes, run

HOSTILE = "</script><script>alert(1)</script>\x1b[31m"


def pictured(*runs: Any) -> Any:
    return rows_table(SCALING, list(scaling_rows(runs)))


STRONG = pictured(
    counted(4, 100.0, 0.95, 1000.0, 2.0, 3.0),
    counted(16, 30.0, 0.8, 1250.0, 1.8, 2.7),
    counted(64, 12.0, 0.55, 1500.0, 1.5, 2.6),
)


def points(drawn: dict[str, Any]) -> list[tuple[str, int, float]]:
    return [(row["name"], row["cpus"], row["value"]) for row in drawn["layer"][-1]["data"]["values"]]


def test_every_known_efficiency_of_every_size_is_drawn_over_the_limits() -> None:
    (drawn,) = specification(STRONG)["vconcat"]
    rows = STRONG.to_pylist()
    expected = [
        (name, row["cpus"], row[column])
        for column, name in (
            ("parallel_efficiency", "parallel efficiency"),
            ("computation_scalability", "computation scalability"),
            ("global_efficiency", "global efficiency"),
        )
        for row in rows
    ]
    assert points(drawn) == expected
    assert [row["limit"] for row in drawn["layer"][0]["data"]["values"]] == [0.8, 0.9]
    assert drawn["title"] == "a, Global: strong scaling"


def test_without_counters_the_times_are_drawn_only_where_they_say_something() -> None:
    (drawn,) = specification(pictured(run(4, 100.0, 0.9), run(8, 60.0, 0.8)))["vconcat"]
    assert {name for name, _, _ in points(drawn)} == {"parallel efficiency"}
    assert drawn["title"] == "a, Global: without counters"


def test_more_than_1_has_room() -> None:
    rows = pictured(counted(4, 100.0, 0.9, 1000.0, 1.0, 3.0), counted(8, 40.0, 0.9, 1000.0, 1.6, 3.0))
    (drawn,) = specification(rows)["vconcat"]
    assert drawn["layer"][-1]["encoding"]["y"]["scale"]["domainMax"] == pytest.approx(1.05 * 1.6)
    assert text_picture(rows, 80)[1].startswith("1.60 ")


def test_letters_stand_where_their_values_are() -> None:
    lines = text_picture(STRONG, 60)
    chart = [line.ljust(60) for line in lines[1:22]]
    # of 64 CPUs: 0.55, 0.433, 0.238; the axis runs from 0.2 to 1
    place = 5 + 2 * 12 + 6
    column = "".join(line[place] for line in chart)
    assert [column.index(letter) for letter in "abc"] == [
        round((1 - row) / 0.8 * 20)
        for row in (
            STRONG.to_pylist()[2][name]
            for name in ("parallel_efficiency", "computation_scalability", "global_efficiency")
        )
    ]
    assert [line[:4] for line in chart if "- -" in line] == ["0.90", "0.80"]
    assert lines[-3].split() == ["a", "parallel", "efficiency", "0.95", "0.80", "0.55"]


def test_a_region_inside_is_not_drawn_and_too_many_applications_are_refused() -> None:
    inside = pictured(run(4, 9.0, 0.9), run(4, 1.0, 0.5, region="loop", main=False))
    assert [each["title"] for each in specification(inside)["vconcat"]] == ["a, Global: one size"]
    with raised(UsageError):
        specification(pictured(*(run(4, 9.0, 0.9, application=f"a{n}") for n in range(13))))
    with raised(UsageError):
        specification(STRONG.slice(0, 0))


@pytest.fixture
def address(tmp_path: Path) -> str:
    address = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    with esjobs.open(address, create=True) as session:
        for place, path in enumerate(reports_of_sizes(tmp_path)):
            put_job(session.store, path.name.split(".")[1], application=("solver", HOSTILE)[place % 2])
        session.ingest("talp", sorted(tmp_path.glob("talp.*.json")))
    return address


@pytest.mark.parametrize(
    ("form", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!doctype html>")]
)
def test_files_need_nothing_else(address: str, tmp_path: Path, form: str, start: bytes) -> None:
    out = tmp_path / f"picture.{form}"
    words = ["--store", address, "show", "pop_scaling", "--format", form, "--out", str(out)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert out.read_bytes().startswith(start)
    assert b"<script>alert" not in out.read_bytes()


def test_the_terminal(address: str) -> None:
    words = ["--store", address, "show", "pop_scaling", "--plot"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "solver, Global" in done.stdout
    assert "\x1b" not in done.stdout
    for more in (
        ["--format", "csv"],
        ["--application", "nobody's"],
    ):
        refused = CliRunner().invoke(main, [*words, *more])
        assert refused.exit_code == 2
        compare_text(refused.stderr)
    other = CliRunner().invoke(main, ["--store", address, "show", "pop", "--plot"])
    assert other.exit_code == 2
    compare_text(other.stderr)
