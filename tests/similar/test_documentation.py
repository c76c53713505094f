"""The examples of docs/similar.md about series, run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from esjobs.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "similar.md"


def test_the_example_gives_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8").split("\n## By program\n")[0]
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (expected,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    exec(compile(program, str(PAGE), "exec"), {})  # noqa: S102
    commands = re.findall(r"^    esjobs (.*)$", text, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        ran = CliRunner().invoke(main, shlex.split(command), env={"COLUMNS": "130"})
        assert ran.exit_code == 0, ran.output
    assert [line.rstrip() for line in ran.stdout.splitlines()] == expected.splitlines()
