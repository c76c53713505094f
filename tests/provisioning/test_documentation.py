"""The examples of docs/provisioning.md, run again: what is printed there is what is printed."""

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.running import run

PAGE = Path(__file__).parents[2] / "docs" / "provisioning.md"
EXAMPLES = re.findall(r"```text\n\$ esjobs (.*)\n((?:.*\n)*?)```", PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo, and the questionnaire that the program prints."""
    copied = tmp_path_factory.mktemp("provisioning")
    shutil.copy(demo_folder / "demo.duckdb", copied)
    (copied / "centre.toml").write_text(run("provision", "questions").stdout, encoding="utf-8")
    return copied


@pytest.mark.parametrize(("command", "printed"), EXAMPLES)
def test_examples_print_what_the_page_says(
    command: str, printed: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    told = run(*command.split(), store="demo.duckdb")
    assert told.exit_code == 0, told.stderr
    assert told.stdout == printed


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
