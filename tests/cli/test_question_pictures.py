"""Answers as pictures: in the terminal and as files, whatever the names are."""

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import esjobs
from esjobs.cli.main import main
from esjobs.core.arrow import PUT_SCHEMA
from esjobs.records.demo.grid import Grid
from esjobs.render.text.chart import heat_map, line
from tests.messages import compare_text

HOSTILE = '</script><script>alert(1)</script>"\x1b[31m'


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with two days of the demo's jobs, and one queue with a hostile name."""
    address = f"duckdb:{tmp_path_factory.mktemp('pictures') / 'jobs.duckdb'}"
    grid = Grid(jobs_per_day=200, n_queues=20)
    batches = [batch for day in (29, 30) for batch in grid.jobs(date(2025, 6, day))]
    hostile = batches[0].slice(0, 5).to_pylist()
    odd = [{**row, "queue": HOSTILE, "job_id": f"odd {number}"} for number, row in enumerate(hostile)]
    with esjobs.open(address, create=True) as session:
        session.store.put_jobs([*batches, pa.RecordBatch.from_pylist(odd, schema=PUT_SCHEMA)], "demo")
    return address


def run(address: str, *words: str) -> str:
    result = CliRunner().invoke(main, ["--store", address, "query", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_bars_lines_and_heat_maps_are_drawn_in_the_terminal(address: str) -> None:
    bars = run(address, "--by", "queue", "--top", "3", "--plot").splitlines()
    assert bars[0] == "jobs [jobs] by queue"
    assert len(bars) == 5
    assert bars[-1].startswith("others")
    assert "█" in bars[1]
    assert "2025-06-29" in run(address, "--by", "day", "--metric", "efficiency", "--plot").splitlines()[-1]
    assert "no jobs" in run(address, "--by", "site,day", "--plot").splitlines()[-1]
    assert "\x1b" not in run(address, "--by", "queue", "--plot")
    few = run(address, "--by", "site,day", "--plot", "--top", "3").splitlines()
    assert few[-1].endswith("· no jobs, or part of the others")
    some = run(address, "--by", "site,day", "--plot", "--min-jobs", "5").splitlines()
    assert some[-1].endswith("· no jobs, or too few")


def test_people_read_bins_in_a_unit_of_their_size_and_scripts_in_base_units(address: str) -> None:
    asked = ("--bins", "mem_per_core_b=0.5GB,1GB,2GB")
    firsts = [line.split("  ")[0] for line in run(address, *asked).splitlines()]
    assert {"0.5 to 1 GB", "1 to 2 GB"} <= set(firsts)
    assert "0.5 to 1 GB" in run(address, *asked, "--plot")
    scripts = run(address, *asked, "--format", "csv").splitlines()
    assert [line.split(",")[0] for line in scripts[1:3]] == ["5e+08 to 1e+09", "1e+09 to 2e+09"]
    # the others and the total keep their names, and a number without a unit stays as it is
    several = run(address, "--by", "queue", "--bins", "cores=2,", "--total", "--top", "1")
    assert {"< 2", ">= 2"} & set(several.split("\n")[1].split("  "))
    assert "total" in several


@pytest.mark.parametrize("form", ["svg", "png", "html"])
@pytest.mark.parametrize("by", ["queue", "day", "queue,hour"])
def test_pictures_are_files_that_need_nothing_else(address: str, tmp_path: Path, form: str, by: str) -> None:
    out = tmp_path / f"picture.{form}"
    run(address, "--by", by, "--format", form, "--out", str(out))
    written = out.read_bytes()
    start = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!doctype html>"}[form]
    assert written.startswith(start)
    assert b"<script>alert" not in written


def test_what_cannot_be_drawn_is_said(address: str) -> None:
    for words in (
        ["--plot"],
        ["--by", "queue,day,cores", "--plot"],
        ["--by", "queue", "--plot", "--format", "csv"],
    ):
        result = CliRunner().invoke(main, ["--store", address, "query", *words])
        assert result.exit_code == 2
        compare_text(result.stderr)


def test_notebooks_get_a_frame_and_a_chart(address: str) -> None:
    with esjobs.open(address) as session:
        frame = session.query("queue", ["jobs", "efficiency"], top=3, total=True).to_pandas()
        assert list(frame["row"]) == ["group"] * 3 + ["others", "total"]
        assert frame["jobs"].iloc[-1] == frame["jobs"].iloc[:-1].sum() == 405
        chart = session.query("queue", ["jobs", "efficiency"], top=3).plot().to_dict()
    assert [view["mark"]["type"] for view in chart["vconcat"]] == ["bar", "bar"]


def test_text_charts_of_nothing_and_of_one_value() -> None:
    missing = np.array([np.nan, np.nan])
    assert all(set(row) <= set(" ⠀") for row in line(["a", "b"], missing, "", "", 20)[:-1])
    assert line(["a"], np.array([1.0]), "1", "1", 20)
    assert "··" in heat_map(["x"], ["a", "b"], missing.reshape(1, 2), "-", "-", 30)[1].replace(" ", "")
