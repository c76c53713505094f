"""What people see of result tables: the headline, few columns, words; and that files keep everything."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import esjobs
from esjobs.core.errors import NoResultError, UsageError
from esjobs.render.columns import compared_for_people, for_people
from esjobs.speed.compare import verdict_changed
from tests.cli.running import job_file, run
from tests.messages import compare_text, raised

BY_METHOD = ("factors", "flags", "fits", "lines", "fit_summaries", "components")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("what", BY_METHOD)
def test_tables_show_the_headline_and_files_have_all(filled: Path, what: str) -> None:
    everything = rows_of(run("show", what, "--format", "csv", store=filled).stdout)
    assert {row["method"] for row in everything} == {"gamma", "paper"}
    title, heading, *lines = run("show", what, store=filled).stdout.splitlines()
    assert "method gamma" in title
    assert "method" not in heading.split()
    mine = [row for row in everything if (row["method"], row["processing_type"]) == ("gamma", "all")]
    assert len(lines) == len(mine)
    asked = run("show", what, "--method", "paper", store=filled).stdout.splitlines()
    assert "method paper" in asked[0]
    assert len(asked) == len(lines) + 2


def test_the_headline_is_that_of_the_run_not_of_the_settings(
    loaded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = loaded
    monkeypatch.setenv("ESJOBS_FIT__METHODS", '["paper", "gamma"]')
    assert run("run", store=store).exit_code == 0
    monkeypatch.delenv("ESJOBS_FIT__METHODS")
    assert "method paper" in run("show", "flags", store=store).stdout.splitlines()[0]
    with esjobs.open(f"duckdb:{store}") as session:
        assert session.runs.shown("flags").headline == "paper"  # type: ignore[union-attr]
        assert session.speed.line().plot().to_dict()["datasets"]["rows"]


def test_a_type_that_repeats_all_of_them_is_no_row(filled: Path) -> None:
    """Every job is of one type: its fit is that of all types, and stands in files."""
    title, _, *lines = run("show", "flags", "--level", "queue", store=filled).stdout.splitlines()
    assert "processing type all" in title
    assert title.endswith("all jobs of the fits are simul")
    assert len(lines) == 12
    asked = run("show", "flags", "--level", "queue", "--type", "simul", store=filled).stdout.splitlines()
    assert len(asked) == 14
    assert "processing type simul" in asked[0]


def flags(types: tuple[str, ...], deviation: float = 0.5) -> pa.Table:
    """One confirmed and one candidate queue per type; those of the second type deviate as told."""
    rows = [
        {
            "level": "queue",
            "name": name,
            "processing_type": kind,
            "method": "gamma",
            "verdict": "deviates",
            "confirmed": confirmed,
            "deviation": 0.5 if place == 0 else deviation,
            "deviation_err": 0.1,
            "corepower": 10.0,
            "benchmark": "HS06",
            "origin": "own",
            "proposed_corepower": 11.0,
            "grade": "A",
            "rank_low": 1,
            "rank_high": 2,
            "n_tasks": 3,
            "n_jobs": 100,
        }
        for place, kind in enumerate(types)
        for name, confirmed in (("A", True), ("B", False))
    ]
    return pa.Table.from_pylist(rows)


def test_a_type_of_its_own_numbers_is_shown() -> None:
    same, title, _ = for_people("flags", flags(("all", "simul")))
    assert len(same) == 2
    assert title == "level queue, processing type all, method gamma, all jobs of the fits are simul"
    other, title, _ = for_people("flags", flags(("all", "simul"), deviation=0.51))
    assert len(other) == 4
    assert title == "level queue, method gamma"
    many, _, _ = for_people("flags", flags(("all", "evgen", "simul")))
    assert len(many) == 6


def test_people_read_confirmed_or_candidate_with_the_interval() -> None:
    shown, _, _ = for_people("flags", flags(("all",)))
    assert shown["verdict"].to_pylist() == ["confirmed", "candidate"]
    assert shown["deviation (90 %)"].to_pylist() == ["+50 ± 16 %"] * 2
    judged = flags(("all",))
    unsure = judged.set_column(judged.column_names.index("confirmed"), "confirmed", pa.nulls(2, pa.bool_()))
    older, _, _ = for_people("flags", unsure)
    assert older["verdict"].to_pylist() == ["candidate", "candidate"]


def test_the_account_of_a_run_counts_what_is_confirmed(loaded: Path) -> None:
    store = loaded
    done = run("run", store=store)
    assert " 1  queues: confirmed" in done.stdout
    compare_text(done.stderr)
    restricted = run("run", "--task", "task1", store=store)
    assert " 0  queues: confirmed" in restricted.stdout
    compare_text(restricted.stderr)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two windows; in the second a queue takes twice the CPU time."""
    folder = tmp_path_factory.mktemp("compared")
    file = job_file(folder / "jobs.csv")
    rows = [line.split(",") for line in file.read_text().splitlines()]
    for row in rows[1:]:
        if row[2] == "SITE05" and row[6] >= "2018-08-12":
            row[9:11] = (str(2 * float(value)) for value in row[9:11])
    file.write_text("\n".join(map(",".join, rows)) + "\n")
    run("ingest", "jobs", str(file), store=folder / "jobs.duckdb")
    for window in ("2018-08-10/2018-08-12", "2018-08-12/2018-08-14"):
        assert run("run", "--window", window, store=folder / "jobs.duckdb").exit_code == 0
    return folder / "jobs.duckdb"


def test_a_comparison_shows_the_headline_and_files_have_all(two_runs: Path) -> None:
    title, heading, *lines = run("compare", "--top", "100", store=two_runs).stdout.splitlines()
    assert "method gamma, all jobs of the fits are simul" in title
    assert heading.split()[:4] == ["level", "name", "verdict_a", "verdict_b"]
    everything = json.loads(run("compare", "--format", "json", store=two_runs).stdout)
    mine = [row for row in everything if (row["method"], row["processing_type"]) == ("gamma", "all")]
    assert len(lines) == len(mine)
    assert {row["method"] for row in everything} == {"gamma", "paper"}
    assert {row["confirmed_a"] for row in everything} <= {True, False, None}
    paper = json.loads(run("compare", "--method", "paper", "--format", "json", store=two_runs).stdout)
    assert paper == [row for row in everything if row["method"] == "paper"]
    assert "method paper" in run("compare", "--method", "paper", store=two_runs).stdout.splitlines()[0]


def test_a_comparison_is_narrowed_and_limited(two_runs: Path) -> None:
    title, _, *lines = run("compare", "--top", "3", store=two_runs).stdout.splitlines()
    assert len(lines) == 3
    assert re.search(r"; 3 of \d+ rows, show all with --top 0$", title)
    everything = json.loads(run("compare", "--format", "json", store=two_runs).stdout)
    asked = ("compare", "--level", "queue", "--type", "all", "--name", "site03", "--format", "json")
    narrowed = json.loads(run(*asked, store=two_runs).stdout)
    assert narrowed == [
        row
        for row in everything
        if (row["level"], row["processing_type"], row["name"]) == ("queue", "all", "SITE03")
    ]
    missing = run("compare", "--name", "SITE33", store=two_runs)
    assert missing.exit_code == 2
    assert "table factors has no name 'SITE33'; similar: SITE03" in missing.output


def test_changed_verdicts_come_first_then_the_largest_shifts(two_runs: Path) -> None:
    with esjobs.open(f"duckdb:{two_runs}") as session:
        changes = session.speed.compare(level="queue", method="gamma").rows.to_pylist()
    changed = [verdict_changed(row) for row in changes]
    assert changed == sorted(changed, reverse=True)
    weights = [_weight(row) for row in changes]
    assert weights == sorted(weights, reverse=True)
    for weight in set(weights):
        shifts = [abs(row["sigma"] or 0) for row in changes if _weight(row) == weight]
        assert shifts == sorted(shifts, reverse=True)


def _weight(row: dict[str, Any]) -> int:
    if not verdict_changed(row):
        return 0
    words = {"deviates", "ok", "undecided"}
    return (
        3 if row["confirmed_a"] or row["confirmed_b"] else 1 + ({row["verdict_a"], row["verdict_b"]} <= words)
    )


def test_one_line_where_nothing_changed(two_runs: Path, tmp_path: Path) -> None:
    store = tmp_path / "alike.duckdb"
    file = tmp_path / "jobs.csv"
    first = job_file(file).read_text()
    later = first.replace("2018-08-", "2018-09-").replace("\n0-", "\nl0-").replace("\n1-", "\nl1-")
    file.write_text(first)
    run("ingest", "jobs", str(file), store=store)
    file.write_text(later.replace("\n2-", "\nl2-"))
    run("ingest", "jobs", str(file), store=store)
    for window in ("2018-08-10/2018-08-15", "2018-09-10/2018-09-15"):
        assert run("run", "--window", window, store=store).exit_code == 0
    said = run("compare", store=store)
    assert said.exit_code == 0
    assert said.stdout.count("\n") == 1
    assert "; no verdict changed; none of 54 " in said.stdout
    assert len(json.loads(run("compare", "--format", "json", store=store).stdout)) > 12
    assert run("compare", "--top", "0", store=store).stdout.count("\n") > 12


def test_compare_since_a_day(loaded: Path) -> None:
    store = loaded
    windows = [
        "2018-08-10/2018-08-12",
        "2018-08-11/2018-08-13",
        "2018-08-12/2018-08-14",
        "2018-08-13/2018-08-15",
    ]
    for window in windows:
        assert run("run", "--window", window, store=store).exit_code == 0
    with esjobs.open(f"duckdb:{store}") as session:
        for since, window in (
            (None, windows[2]),
            ("2018-08-12/2018-08-13", windows[1]),
            ("2018-08-01/2018-08-13", windows[1]),
            ("2018-08-12/2018-08-30", windows[0]),
        ):
            before, latest = session.speed.compare(since=since).details
            assert (str(before.window), str(latest.window)) == (window, windows[3])
        with raised(NoResultError):
            session.speed.compare(since="2018-08-01/2018-08-11").to_pandas()
        with raised(UsageError):
            session.speed.compare(before.run, since="2018-08-12/2018-08-13").to_pandas()
        names = {"SITE03", "SITE04"}
        assert set(session.speed.compare(site=sorted(names)).to_pandas()["name"]) == names


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (("ok", False), ("deviates", False), True),
        (("deviates", False), ("deviates", True), True),
        (("deviates", None), ("deviates", False), False),
        (("ok", False), ("ok", False), False),
        ((None, None), ("ok", False), False),
        (("not comparable", False), ("too few", False), False),
        (("undeclared", False), ("too few", None), False),
        (("too few", False), ("ok", False), True),
        (("deviates", True), ("undeclared", False), True),
    ],
)
def test_a_changed_verdict(
    before: tuple[str | None, bool | None], after: tuple[str | None, bool | None], changed: bool
) -> None:
    row = dict(zip(("verdict_a", "confirmed_a", "verdict_b", "confirmed_b"), (*before, *after), strict=True))
    assert verdict_changed(row) is changed


def test_a_method_that_no_run_has_is_not_compared(two_runs: Path) -> None:
    with esjobs.open(f"duckdb:{two_runs}") as session, raised(NoResultError):
        session.speed.compare(method="least squares").to_pandas()


def test_a_change_that_is_its_own_scale_is_none(loaded: Path) -> None:
    """One name in common: its ratio would be the scale of the two runs, and its change 0 by construction."""
    store = f"duckdb:{loaded}"
    sets = ("SITE00", "SITE01", "SITE02"), ("SITE02", "SITE03", "SITE04"), ("SITE01", "SITE02", "SITE05")
    with esjobs.open(store) as session:
        ids = [session.run(where=[f"queue={name}" for name in names])[-1].run for names in sets]
        lone = session.speed.compare(ids[0], ids[1], method="gamma").to_pandas().query("level == 'queue'")
        assert lone.dropna(subset=["k_a", "k_b"])["name"].unique().tolist() == ["SITE02"]
        assert lone[["change", "change_err", "sigma"]].isna().all(axis=None)
        two = session.speed.compare(ids[0], ids[2], method="gamma").to_pandas().query("level == 'queue'")
        assert set(two.dropna(subset=["sigma"])["name"]) == {"SITE01", "SITE02"}


def test_verdicts_of_a_comparison_are_words() -> None:
    compared = pa.table(
        {
            **{key: ["x", "x"] for key in ("level", "processing_type", "method", "name")},
            "verdict_a": ["deviates", None],
            "verdict_b": ["deviates", "ok"],
            "confirmed_a": [False, None],
            "confirmed_b": [True, False],
            "change": [0.031, None],
            "change_err": [0.01, None],
            "sigma": [1.0, 0.5],
            **{key: [1.0, 2.0] for key in ("k_a", "k_b", "n_jobs_a", "n_jobs_b")},
        }
    )
    shown, _, summary = compared_for_people(compared)
    assert summary == (
        "1 verdict changed: 1 from candidate to confirmed; "
        "none of 2 factors changed by 3 standard errors, largest change: x (+1.0)"
    )
    assert shown["verdict_a"].to_pylist() == ["candidate", None]
    assert shown["verdict_b"].to_pylist() == ["confirmed", "ok"]
    assert shown["change (90 %)"].to_pylist() == ["+3 ± 2 %", None]


def test_an_unknown_table_lists_the_tables_once() -> None:
    result = run("show", "nosuch")
    assert (result.exit_code, result.stderr.count("fit_summaries")) == (2, 1)
