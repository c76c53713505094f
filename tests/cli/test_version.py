"""``--version``, and the names that a shell completes."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import esjobs
from esjobs.schema.speed import METHOD_VERSION
from tests.cli.running import run as run_here


@pytest.mark.parametrize("arguments", [("--version", "--json"), ("--json", "--version")])
def test_the_version_as_json_names_what_it_runs_on(arguments: tuple[str, ...]) -> None:
    said = json.loads(run_here(*arguments).stdout)
    assert (said["esjobs"], said["method_version"]) == (esjobs.__version__, METHOD_VERSION)
    assert said["packages"]["iminuit"] == version("iminuit")
    assert "pytest" not in said["packages"]


def test_json_alone_is_a_usage_error() -> None:
    assert run_here("--json", "fields").exit_code == 2


def completed(*words: str, **variables: str) -> list[str]:
    command_line = {"COMP_WORDS": " ".join(["esjobs", *words]), "COMP_CWORD": str(len(words))}
    environment = {**os.environ, **variables, **command_line, "_ESJOBS_COMPLETE": "bash_complete"}
    ended = subprocess.run(
        [Path(sys.executable).with_name("esjobs")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return [line.partition(",")[2] for line in ended.stdout.split("\n") if line]


def test_names_of_queues_sites_and_cpu_models_are_completed(demo_folder: Path) -> None:
    store = f"duckdb:{demo_folder / 'demo.duckdb'}"
    with esjobs.open(store, read_only=True) as session:
        flags = session.tables.flags().to_pandas()
    sites = sorted(
        set(flags["name"][flags["level"].isin(["queue", "site"]) & flags["name"].str.startswith("POP")])
    )
    assert sites
    assert completed("site", "pop", ESJOBS_STORE=store) == sites
    assert completed("--store", store, "site", "POP") == sites
    models = completed("cpu", "AMD", ESJOBS_STORE=store)
    assert models
    assert set(models) <= set(flags["name"][flags["level"] == "cpu_model"])


def test_nothing_is_offered_where_nothing_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no store")
    for store in (f"duckdb:{tmp_path / 'none'}", f"duckdb:{tmp_path / 'text'}", "nonsense"):
        assert completed("site", "A", ESJOBS_STORE=store) == []
    assert not (tmp_path / "none").exists()
