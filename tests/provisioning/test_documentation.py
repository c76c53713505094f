"""The examples of docs/provisioning.md, run again: what is printed there is what is printed."""

import re
from pathlib import Path

import pytest

from tests.cli.running import run

PAGE = Path(__file__).parents[2] / "docs" / "provisioning.md"
EXAMPLES = re.findall(r"```text\n\$ esjobs (.*)\n((?:.*\n)*?)```", PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("command", "printed"), EXAMPLES)
def test_examples_print_what_the_page_says(command: str, printed: str, demo_folder: Path) -> None:
    told = run(*command.split(), store=demo_folder / "demo.duckdb")
    assert told.exit_code == 0, told.stderr
    assert told.stdout == printed


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
