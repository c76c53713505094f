"""The example of docs/talp.md says what the commands say, and its numbers by hand are right."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from esjobs.cli.main import main
from esjobs.entry import load
from esjobs.pop.formulas import judged
from esjobs.pop.settings import TalpSettings
from esjobs.schema.pop import STATUSES
from tests.pop.test_formulas import rows_of

GUIDE = (Path(__file__).parents[2] / "docs" / "talp.md").read_text(encoding="utf-8")
NAME = "talp.4711.20261120T225948.node01.991.json"


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "jobs.csv").write_text(block("csv"))
    (tmp_path / NAME).write_text(block("json"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ESJOBS_STORE", f"duckdb:{tmp_path}/s.duckdb")
    return tmp_path


def test_the_commands_print_what_the_guide_prints(files: Path) -> None:
    commands = re.findall(r"^\$ esjobs (.*)$", block("console"), re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        done = CliRunner().invoke(main, shlex.split(command), env={"COLUMNS": "100"})
        assert done.exit_code == 0, done.output
    _, _, printed = block("console").partition("...\n")
    assert printed.strip() in done.output
    assert len(printed.splitlines()) > 8


def test_the_numbers_by_hand_are_those_of_the_tree(files: Path) -> None:
    told = judged(next(row for row in rows_of(files / NAME) if row["main"]))
    by_hand = {
        "parallel_efficiency": 30 / 40,
        "mpi_communication_efficiency": (10 - 0.5) / 10,
        "mpi_load_balance": (10 - 2.5) / (10 - 0.5),
        "mpi_load_balance_in": (10 - 0.7) / (10 - 0.5),
        "mpi_load_balance_out": (10 - 2.5) / (10 - 0.7),
        "ipc": 108 / 72,
        "frequency_ghz": 72 / 30,
    }
    for name, value in by_hand.items():
        assert told[name] == pytest.approx(value), name


def test_every_status_is_explained() -> None:
    for status in STATUSES:
        assert f"`{status}`" in GUIDE


def test_the_settings_are_settings(tmp_path: Path) -> None:
    path = tmp_path / "esjobs.toml"
    path.write_text(block("toml"))
    settings = load(path, "duckdb::memory:").section(TalpSettings)
    assert [spool.source for spool in settings.spools] == ["slurm"]
