"""The demo as a newcomer runs it: what it says last, what it leaves behind, the same for the same seed."""

import re
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import esjobs
from esjobs.cli.demo import NIGHTS, Demonstration, demonstrate
from esjobs.cli.main import main
from esjobs.records.demo import LAST_DAY, Grid


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("demo") / "out"
    done = CliRunner().invoke(main, ["demo", "--jobs", "60000", "--seed", "3", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    return done.stdout, folder


@pytest.mark.slow
def test_the_last_line_says_what_was_found(shown: tuple[str, Path]) -> None:
    """The numbers of the line are those of the stored verdicts, counted again against the truth."""
    out, folder = shown
    line = out.splitlines()[-1]
    said = re.match(
        r"ground truth: (\d+) of (\d+) injected misdeclared queues confirmed.*, (\d+) others confirmed", line
    )
    assert said
    found, planted, others = map(int, said.groups())
    truth = Grid.of_size(60_000, seed=3).truth()
    with esjobs.open(f"duckdb:{folder / 'demo.duckdb'}") as session:
        flags = session.tables.flags(level="queue", type="all", method="gamma").to_pandas()
    flagged = set(flags.loc[flags["confirmed"].eq(True), "name"])
    assert planted == len(truth.misdeclared) > 0
    assert found == len(flagged & set(truth.misdeclared))
    assert others == len(flagged - set(truth.misdeclared))
    assert found >= planted - 1
    assert others <= 1
    isle = flags[flags["name"].isin(truth.island)]
    assert set(isle["verdict"]) <= {"via CPU models", "not comparable", "too few"}
    defaults = flags[flags["name"].isin([queue.name for queue in truth.queues if queue.origin == "default"])]
    assert not set(defaults["verdict"]) & {"deviates", "ok", "undecided"}


@pytest.mark.slow
def test_it_leaves_what_it_says(shown: tuple[str, Path]) -> None:
    out, folder = shown
    assert f"report: {folder / 'report.html'}" in out
    assert {path.name for path in folder.iterdir()} == {
        "corepower.csv",
        "demo.duckdb",
        "jobs.parquet",
        "report.html",
    }
    jobs = pd.read_parquet(folder / "jobs.parquet")
    assert f"ingest: {len(jobs):,} rows" in out
    with esjobs.open(f"duckdb:{folder / 'demo.duckdb'}") as session:
        days = session.tables.day_books().to_pandas()
    assert days[days["kind"] != "note"]["n_jobs"].sum() == len(jobs)
    page = (folder / "report.html").read_text("utf-8")
    for name in Grid.of_size(60_000, seed=3).truth().misdeclared:
        assert name in page


@pytest.mark.slow
def test_the_nights_before_have_flags(shown: tuple[str, Path]) -> None:
    """Flags opened on an earlier night stay open; the run of all days is the latest one.

    The first six nights have no week of jobs; the last four are fitted by processing type, too.
    """
    with esjobs.open(f"duckdb:{shown[1] / 'demo.duckdb'}") as session:
        history = session.sql("select distinct night from flag_history order by night").to_pandas()
        states = session.sql("select min(since) first from flag_states where state = 'open'").to_pandas()
        flags = session.tables.flags(level="queue", type="all", method="gamma")
        fitted = session.sql(
            "select window_end, count(distinct processing_type) > 1 as by_type from fits group by all"
        ).to_pandas()
    assert fitted["by_type"].sum() == 4 + 1
    nights = [pd.Timestamp(night).date() for night in history["night"]]
    assert nights == [LAST_DAY - timedelta(days=back) for back in range(NIGHTS - 6, -1, -1)]
    assert pd.Timestamp(states["first"][0]).date() < LAST_DAY
    assert flags.run is not None
    assert flags.run.window.days == 30


@pytest.mark.slow
def test_the_planted_error_and_node_are_found_by_the_commands_of_their_lines(shown: tuple[str, Path]) -> None:
    out, folder = shown
    said = re.findall(
        r"^(new error|failing node) (\S+) at \S+: (not found|found): esjobs (.*)$", out, re.MULTILINE
    )
    assert [what for what, *_ in said] == ["new error", "failing node"]
    for _, name, found, command in said:
        asked = ["--store", f"duckdb:{folder / 'demo.duckdb'}", *command.split(), "--format", "csv"]
        done = CliRunner().invoke(main, asked)
        assert done.exit_code == 0, done.output
        assert (name in done.stdout) == (found == "found")
    assert said[0][2] == "found"


@pytest.mark.slow
def test_the_planted_incidents_are_shown_by_the_commands_of_their_lines(shown: tuple[str, Path]) -> None:
    out, folder = shown
    said = re.findall(r"^(incident at|slow task) (\S+).* from (\S+): (.*)$", out, re.MULTILINE)
    # so few jobs have no task that is large enough to be seen
    assert [what for what, *_ in said] == ["incident at"]
    assert "\nno slow task: none has 100 jobs a day" in out
    for _, name, first, rest in said:
        if found := re.match(r"found on (\S+): esjobs ([^;]*)", rest):
            assert first <= found[1]
            asked = ["--store", f"duckdb:{folder / 'demo.duckdb'}", *found[2].split(), "--format", "csv"]
            done = CliRunner().invoke(main, asked)
            assert done.exit_code == 0, done.output
            assert name in done.stdout
    assert any("found on" in rest for *_, rest in said)
    assert re.search(r"^\d+ other incidents? found in [\d,]+ site-nights$", out, re.MULTILINE)


def small(folder: Path, seed: int, store: str | None = None) -> Demonstration:
    return demonstrate(folder, jobs=6_000, seed=seed, store=store)


def test_the_same_seed_gives_the_same_verdicts(tmp_path: Path) -> None:
    """In another folder, over an older demo, in memory: to the last digit."""
    first = small(tmp_path / "a", 5)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "jobs.parquet").write_text("left by something else")
    again = small(tmp_path / "b", 5, "duckdb::memory:")
    assert first.verdicts.equals(again.verdicts)
    assert (first.lines[0], first.lines[2]) == (again.lines[0], again.lines[2])
    assert [(report.run, report.rows_in, report.dropped) for report in first.reports] == [
        (report.run, report.rows_in, report.dropped) for report in again.reports
    ]
    assert len(first.verdicts) > 50


@pytest.mark.parametrize("store", ["demo.duckdb", "duckdb:{}/nothing/of/duckdb"])
def test_no_job_is_made_up_for_a_store_that_cannot_be_opened(tmp_path: Path, store: str) -> None:
    (tmp_path / "nothing").write_text("a file")
    folder = tmp_path / "demo"
    done = CliRunner().invoke(main, ["--store", store.format(tmp_path), "demo", "--out", str(folder)])
    assert done.exit_code in (1, 2)
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (taken := tmp_path / "taken").write_text("a file")
    done = CliRunner().invoke(main, ["demo", "--jobs", "1000", "--out", str(taken)])
    assert done.exit_code == 1
    assert done.stdout == ""
    assert str(taken) in done.stderr
    assert done.stderr.count("\n") == 1
    assert taken.read_text() == "a file"
