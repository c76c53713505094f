"""The example of docs/similar.md about programs, run as it stands there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "similar.md"


def test_the_example_gives_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8").split("\n## By program\n")[1]
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (expected,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    exec(compile(program, str(PAGE), "exec"), {})  # noqa: S102
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == expected.splitlines()
