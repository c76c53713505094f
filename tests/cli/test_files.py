"""fit-file and line-file: a table in, factors and verdicts out, without a store."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import fitters
from esjobs.cli.main import main
from tests.messages import compare_text

SPEEDS = {f"s{number:02}": speed for number, speed in enumerate(np.linspace(0.7, 1.4, 14))}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], catch_exceptions=False)


def toy(groups: int = 1, seed: int = 1) -> pd.DataFrame:
    """Tasks at most of the sites, with 5 % of scatter and 50 jobs a bucket."""
    random = np.random.default_rng(seed)
    rows = [
        (f"t{task}", site, (task + 1) / speed * random.normal(1, 0.05), 50, group)
        for group in range(groups)
        for task in range(30)
        for site, speed in SPEEDS.items()
        if random.random() < 0.7
    ]
    frame = pd.DataFrame(rows, columns=["task", "queue", "value", "jobs", "era"])
    frame["events"] = 1000.0
    frame["cpu"] = frame["value"] * 1000
    return frame


def rows_of(result: Result) -> list[dict[str, str]]:
    assert result.exit_code == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_factors_are_those_of_the_library(tmp_path: Path, suffix: str) -> None:
    frame, path = toy(), tmp_path / f"toy.{suffix}"
    frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)
    rows = rows_of(
        run(
            "fit-file",
            path,
            "--task-column",
            "task",
            "--unit-column",
            "queue",
            "--value-column",
            "value",
            "--format",
            "csv",
        )
    )
    assert list(rows[0]) == (
        ["name", "k", "k_err", "k_err_sandwich", "component", "n_tasks", "n_buckets", "status", "reason"]
    )
    buckets = fitters.Buckets.from_columns(frame["task"], frame["queue"], frame["value"])
    expected = fitters.fit_speed_factors(buckets, search="minuit")
    assert [row["name"] for row in rows] == list(expected.units.name)
    np.testing.assert_allclose([float(row["k"]) for row in rows], expected.units.k, rtol=1e-12)
    np.testing.assert_allclose([float(row["k_err"]) for row in rows], expected.units.k_err, rtol=1e-12)
    truth = np.array(list(SPEEDS.values()))
    found = np.array([float(row["k"]) for row in rows])
    assert np.abs(found / found.sum() - truth / truth.sum()).max() * len(truth) < 0.05


def test_sums_and_options_reach_the_fit(tmp_path: Path) -> None:
    path = tmp_path / "toy.csv"
    toy().to_csv(path, index=False)
    common = ("fit-file", path, "--task-column", "task", "--unit-column", "queue", "--format", "csv")
    by_value = rows_of(run(*common, "--value-column", "value"))
    by_sums = rows_of(run(*common, "--cpu-column", "cpu", "--events-column", "events"))
    assert [float(row["k"]) for row in by_sums] == pytest.approx([float(row["k"]) for row in by_value])
    options = ("--jobs-column", "jobs", "--objective", "gamma", "--weights", "floor", "--robust", "reject")
    other = rows_of(run(*common, "--value-column", "value", *options))
    assert [row["k"] for row in other] != [row["k"] for row in by_value]
    assert [float(row["k"]) for row in other] == pytest.approx(
        [float(row["k"]) for row in by_value], rel=0.02
    )


def test_groups_are_fitted_on_their_own(tmp_path: Path) -> None:
    path, out, summary = tmp_path / "toy.csv", tmp_path / "k.csv", tmp_path / "summary.json"
    frame = toy(groups=3)
    frame.loc[0, "value"] = -1.0
    frame.to_csv(path, index=False)
    done = run(
        *(
            "fit-file",
            path,
            "--task-column",
            "task",
            "--unit-column",
            "queue",
            "--value-column",
            "value",
            "--group-column",
            "era",
        ),
        *("--out", out, "--summary", summary),
    )
    assert (done.exit_code, done.stdout) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert list(rows[0])[:2] == ["era", "name"]
    assert [row["era"] for row in rows] == ["0"] * 14 + ["1"] * 14 + ["2"] * 14
    told = json.loads(summary.read_text())
    assert [each["era"] for each in told] == [0, 1, 2]
    assert told[0]["dropped"] == {"value not positive": 1}
    assert told[0]["rows_in"] == told[0]["rows_used"] + 1
    for each in told:
        assert each["components"][0]["minuit"]["valid"] is True
        assert each["components"][0]["dof"] == each["dof"] > 0
        assert 0.03 < each["S"] < 0.07
        assert each["f"] == pytest.approx(each["S"] ** 2 * each["dof"], rel=0.1)
        assert sum(each["seconds"].values()) > 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--value-column", "value", "--cpu-column", "cpu", "--events-column", "events"], 2),
        (["--cpu-column", "cpu"], 2),
        (["--value-column", "nothing"], 1),
        (["--value-column", "queue"], 1),
        (["--value-column", "value", "--weights", "jobs"], 1),
        (["--value-column", "value", "--robust", "tukey"], 2),
        (["--value-column", "value", "--objective", "best"], 2),
    ],
)
def test_mistakes(tmp_path: Path, arguments: list[str], code: int) -> None:
    path = tmp_path / "toy.csv"
    toy().to_csv(path, index=False)
    result = run("fit-file", path, "--task-column", "task", "--unit-column", "queue", *arguments)
    assert result.exit_code == code
    compare_text(result.stderr)


@pytest.mark.parametrize("content", [b"", b"task,site,value\n", b"\x00\x01\x02", b"PAR1 not really"])
def test_files_that_hold_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "toy.csv"
    path.write_bytes(content)
    for command in (
        ("fit-file", path, "--task-column", "task", "--unit-column", "queue", "--value-column", "value"),
        (
            "line-file",
            path,
            "--name-column",
            "queue",
            "--k-column",
            "value",
            "--k-err-column",
            "value",
            "--corepower-column",
            "value",
        ),
    ):
        result = run(*command)
        assert result.exit_code == 1
        assert str(path) in result.stderr
        assert result.stderr.count("\n") == 1


def test_the_line_finds_who_deviates(tmp_path: Path) -> None:
    path = tmp_path / "factors.csv"
    names = list(SPEEDS)
    declared = {name: 10 * speed for name, speed in SPEEDS.items()} | {"s03": 10 * SPEEDS["s03"] * 1.6}
    pd.DataFrame(
        {
            "queue": [*names, "nothing"],
            "k": [*SPEEDS.values(), 1.0],
            "err": 0.01,
            "hs06": [*declared.values(), None],
        }
    ).to_csv(path, index=False)
    arguments = (
        "--name-column",
        "queue",
        "--k-column",
        "k",
        "--k-err-column",
        "err",
        "--corepower-column",
        "hs06",
        "--format",
        "csv",
    )
    rows = {row["name"]: row for row in rows_of(run("line-file", path, *arguments))}
    assert list(rows["s00"]) == (
        [
            "name",
            "expected_k",
            "deviation",
            "deviation_err",
            "verdict",
            "significant",
            "proposed_corepower",
            "proposed_corepower_err",
            "p_off",
        ]
    )
    found = rows.pop("s03")
    assert (found["verdict"], found["significant"]) == ("deviates", "true")
    assert float(found["deviation"]) == pytest.approx(1 / 1.6 - 1, abs=0.01)
    assert float(found["proposed_corepower"]) == pytest.approx(10 * SPEEDS["s03"], rel=0.02)
    assert rows.pop("nothing")["verdict"] == ""
    assert {row["verdict"] for row in rows.values()} == {"ok"}


def test_no_error_is_borrowed_from_another_component(tmp_path: Path) -> None:
    """Two sites that meet in one bucket each, of one job: k_err of the others' scatter would be no error."""
    lone = pd.DataFrame({"task": ["x", "x"], "queue": ["p", "q"], "value": [1.0, 1.3], "jobs": [50, 1]})
    pd.concat([toy(), lone]).to_csv(path := tmp_path / "toy.csv", index=False)
    summary = tmp_path / "summary.json"
    columns = (
        "--task-column",
        "task",
        "--unit-column",
        "queue",
        "--value-column",
        "value",
        "--jobs-column",
        "jobs",
    )
    rows = {
        row["name"]: row
        for row in rows_of(run("fit-file", path, *columns, "--summary", summary, "--format", "csv"))
    }
    assert float(rows["s01"]["k_err"]) > 0
    for name in ("p", "q"):
        assert (rows[name]["component"], rows[name]["status"], rows[name]["k_err"]) == ("1", "no dof", "")
        assert "no redundancy" in rows[name]["reason"]
    assert "the factors of a component sum to their number" in json.loads(summary.read_text())["scale"]
