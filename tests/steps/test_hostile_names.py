"""Names come from job fields: whatever they are, the whole chain carries them and nothing of them runs."""

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from esjobs.cli.main import main
from esjobs.core.conditions import quoted
from tests.steps.grids import grid_jobs, site_names, write_jobs

SCRIPT = "<script>alert(1)</script>"
HOSTILE = [
    SCRIPT,
    "' OR 1=1 --",
    "'; DROP TABLE jobs; --",
    "x" * 3000,
    "two\nlines",
    "two\r\nlines\tand a tab",
    "👩‍💻 Ω",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(2)</script>",
    "<!--",
    "{{ 7 * 7 }}",
    "%s %n $1 \\",
    "a|b",
    "=cmd()",
    "[bold red]markup[/]",
    "all",
    "\u202edesrever",
    "[/]",
    "NaN",
]
DECLARED = 9.3 + 0.5 * np.arange(len(HOSTILE) + 4, dtype=np.float64)
NAMES = [*HOSTILE, *site_names(4)]


def run(store: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--store", f"duckdb:{store}", *arguments], catch_exceptions=False)


def rows(store: Path, *arguments: str, form: str = "json") -> list[dict[str, object]]:
    result = run(store, *arguments, "--format", form)
    assert result.exit_code == 0, result.output
    text = result.stdout_bytes.decode()  # stdout itself would turn the line ends inside names
    if form == "json":
        return list(json.loads(text))
    return list(csv.DictReader(io.StringIO(text, newline="")))


def hostile_jobs() -> pd.DataFrame:
    """Honest sites but the first, which is 1.8 times as slow as it declares, so that it stands everywhere."""
    speed = DECLARED / np.where(np.arange(len(NAMES)) == 0, 1.8, 1.0)
    jobs = grid_jobs(np.random.default_rng(1), speed, DECLARED, names=NAMES, models=[*NAMES[:3], None])
    jobs["task_id"] = jobs["task_id"].map(
        {"task0": SCRIPT, "task1": "t|single", "task2": "t", "task3": "' --"}
    )
    jobs["processing_type"] = jobs["task_id"].map({"t": "single|simul", "t|single": "simul"}).fillna(SCRIPT)
    return jobs


def filled(folder: Path, form: str) -> Path:
    """A store whose jobs were ingested through a text format, and run."""
    source = write_jobs(hostile_jobs(), folder / "jobs.parquet")
    file, made = source, folder / "jobs.duckdb"
    if form != "parquet":
        assert run(other := folder / "other.duckdb", "ingest", "jobs", str(source)).exit_code == 0
        file = folder / f"jobs.{form}"
        assert run(other, "export", "jobs", "--out", str(file)).exit_code == 0
    report = run(made, "ingest", "jobs", str(file))
    assert report.exit_code == 0
    assert "rejected" not in report.stdout or " 0 rejected" in report.stdout
    assert run(made, "run").exit_code == 0
    return made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names that went through CSV, which has most to escape."""
    return filled(tmp_path_factory.mktemp("hostile"), "csv")


@pytest.mark.parametrize("ingested", ["parquet", "csv", "jsonl"])
def test_every_name_has_its_row_in_every_format(
    request: pytest.FixtureRequest, tmp_path: Path, ingested: str
) -> None:
    store = request.getfixturevalue("store") if ingested == "csv" else filled(tmp_path, ingested)
    chosen = ("--level", "queue", "--type", "all", "--method", "gamma")
    for form in ("json", "csv"):
        flags = {str(row["name"]): row["verdict"] for row in rows(store, "show", "flags", *chosen, form=form)}
        assert sorted(flags) == sorted(NAMES)
        assert flags.pop(SCRIPT) == "deviates"
        assert set(flags.values()) == {"ok"}
    assert run(store, "show", "flags").exit_code == 0
    assert run(store, "show", "components").exit_code == 0
    models = rows(store, "show", "factors", "--level", "cpu_model")
    assert all("alert" not in str(row["name"]) for row in models)  # no CPU, so no name of one


def test_tasks_and_types_that_look_like_separators_stay_apart(store: Path) -> None:
    fits = rows(store, "show", "fits", "--level", "queue", "--type", "all", "--method", "gamma")
    assert fits[0]["n_units"] == 4
    types = {row["processing_type"] for row in rows(store, "show", "fits")}
    assert types == {SCRIPT, "single|simul", "simul", "all"}


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_finds_itself(store: Path, name: str) -> None:
    found = rows(
        store, "show", "flags", "--level", "queue", "--name", name, "--type", "all", "--method", "gamma"
    )
    assert [row["name"] for row in found] == [name]
    asked = rows(store, "query", "--by", "queue", "--where", f"queue={quoted(name)}")
    assert asked == [{"queue": name, "jobs": 100}]


def test_the_report_runs_nothing_of_a_name(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert run(store, "report", "--out", str(out)).exit_code == 0
    page = out.read_text("utf-8")
    lowered = page.lower()
    assert "<script>alert" not in lowered
    assert "<img src=x" not in lowered
    assert "</script><script>" not in lowered
    assert "{{ 7 * 7 }}" in page  # shown as it is, not computed
    assert ">49<" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    # A script element ends at the first end tag: what lies in one may hold no other.
    scripts: Sequence[str] = re.findall(r"<script[^>]*>(.*?)</script", page, re.DOTALL | re.IGNORECASE)
    assert len(scripts) == len(re.findall(r"<script[\s>]", page, re.IGNORECASE))
    assert not any("<!--" in script for script in scripts)
    assert "two\\nlines" in page or "two\nlines" in page


def test_names_stay_on_their_row_of_a_table(store: Path) -> None:
    for arguments in (("show", "flags", "--level", "queue", "--type", "all", "--method", "gamma"),):
        lines = run(store, *arguments).stdout.splitlines()
        for name in ("two\\nlines", "two\\r\\nlines\\tand a tab", "[bold red]markup[/]", "\\u202edesrever"):
            assert sum(line.startswith(f"{name} ") for line in lines) == 1


NASTY = ["\x1b[31mred\x1b[0m\x07", "b\x08\x9bc"]


def test_control_characters_do_not_reach_a_terminal(tmp_path: Path) -> None:
    """Neither from a row nor from a title nor from a sentence; and markup is no markup."""
    speed = np.where(np.arange(14) == 0, 5.0, 10.0)
    jobs = grid_jobs(
        np.random.default_rng(2),
        speed,
        np.full(14, 10.5),
        names=[*NASTY, *site_names(12)],
        processing_type="[/] \x1b[1m",
    )
    made = tmp_path / "jobs.duckdb"
    assert run(made, "ingest", "jobs", str(write_jobs(jobs, tmp_path / "jobs.parquet"))).exit_code == 0
    outputs = [run(made, "run").stderr]
    for arguments in (
        ("show", "flags"),
        ("show", "flags", "--level", "queue", "--type", "[/] \x1b[1m", "--method", "gamma"),
        ("show", "components"),
        ("query", "--by", "site,processing_type"),
    ):
        result = run(made, *arguments)
        assert result.exit_code == 0
        assert "red" in result.stdout
        outputs.append(result.stdout)
    assert all("\\x1b[31mred" in output for output in outputs[1:])
    for output in outputs:
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", output)
    exact = rows(made, "query", "--by", "queue")
    assert {row["queue"] for row in exact} >= set(NASTY)
