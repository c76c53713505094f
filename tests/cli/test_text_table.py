"""Tables for people: what a terminal of any width is shown."""

import io
import os
from pathlib import Path

import pytest

from esjobs.render.text.table import write_text_table
from tests.cli.terminal import on_terminal

COLUMNS = ("name", "n_tasks", "method_sigmas", "reason")
NAME = "TAMARIND-LCG2-2_UCORE"
REASON = "slope -0.45 +- 0.01, mean events per job differ by 2.90x between units"
ROWS = [(NAME, "60,000", "-0.04", REASON), ("OAK", "7", "-0.2717", "-")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, width: int, columns: tuple[str, ...] = COLUMNS, prose: str = "reason"
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = Terminal()
    rows = [row[: len(columns)] for row in ROWS]
    write_text_table(columns, rows, stream, numbers=columns[1:3], prose=[prose])
    return stream.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()


def test_prose_is_wrapped_on_words_and_everything_else_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 80)
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == list(COLUMNS)
    assert lines[1].split()[:3] == [NAME, "60,000", "-0.04"]
    assert " ".join(line[47:].strip() for line in lines[1:-1]) == REASON
    assert lines[-1].split() == ["OAK", "7", "-0.2717", "-"]


def test_headings_break_at_underscores_before_lines_run_past_the_edge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = shown(monkeypatch, 66)
    assert max(map(len, lines)) <= 66
    assert [line.split() for line in lines[:2]] == [["n_", "method_"], ["name", "tasks", "sigmas", "reason"]]


@pytest.mark.parametrize("width", [10, 40, 60])
def test_too_narrow_a_terminal_gets_a_row_a_line_and_nothing_is_cut(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    lines = shown(monkeypatch, width)
    assert lines[2].split(maxsplit=3) == list(ROWS[0])
    assert len(lines) == 4


def test_what_is_no_terminal_gets_a_row_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    write_text_table(COLUMNS, ROWS, stream, prose=["reason"], title="level site")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "level site"
    assert len(lines) == 4
    assert lines[2].endswith(REASON)
    assert "\x1b" not in stream.getvalue()


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_the_conclusion_of_a_run_is_the_last_thing_on_a_terminal(filled: Path) -> None:
    lines = on_terminal(80, "--store", f"duckdb:{filled}", "run")
    sentence = next(number for number, line in enumerate(lines) if line.startswith("by queue: "))
    account = max(number for number, line in enumerate(lines) if line.startswith("flag: "))
    assert account < sentence
    assert lines[-1].startswith("details: esjobs show flags")
    assert max(map(len, lines[sentence:])) <= 80
