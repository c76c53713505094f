"""What comes from outside is shown, not obeyed: in errors, hints, notes, logs, progress and tables."""

import csv
import io
import json
import logging
import re
import sys
from pathlib import Path

import pytest

from esjobs.cli.log_lines import LogLines
from esjobs.core.errors import EsjobsError, InputError
from esjobs.core.text import visible
from tests.cli.running import JOBS, run
from tests.cli.terminal import on_terminal
from tests.messages import compare_text

NASTY = "\x1b[31mred\r\u202eb\u200b\n\u00adc"
SHOWN = "\\x1b[31mred\\r\\u202eb\\u200b\\n\\xadc"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b\u202e]")


def is_one_line(said: str) -> bool:
    return said.count("\n") == 1 and not OBEYED.search(said)


@pytest.mark.parametrize(
    ("character", "what"),
    [
        ("\u200b", "zero width space"),
        ("\u2066", "direction"),
        ("\u00ad", "soft hyphen"),
        ("\ufeff", "byte order mark"),
        ("\U000e0041", "tag"),
        ("\ue000", "private use"),
        ("\u2028", "line separator"),
        ("\u0085", "next line"),
        ("\udcff", "byte that is not UTF-8"),
        ("\u00a0", "space that is none"),
        ("\u3164", "filler"),
        ("\ufe0f", "variation selector"),
        ("\u034f", "joiner"),
        ("\x7f", "delete"),
    ],
)
def test_what_is_not_seen_is_written_out(character: str, what: str) -> None:
    seen = visible(f"a{character}b")
    assert seen == f"a\\{seen[2:-1]}b", what
    assert seen.isascii()
    assert visible("Zürich Ωß 東京 ≥ – 'é́'") == "Zürich Ωß 東京 ≥ – 'é́'"


def test_an_error_is_one_line_whatever_it_quotes() -> None:
    error = InputError(f"{NASTY} has no column")
    assert str(error) == f"{SHOWN} has no column"
    assert str(EsjobsError(f"{error}, again")) == f"{SHOWN} has no column, again"


def test_names_of_files_and_headers_in_errors_are_shown(tmp_path: Path) -> None:
    path = tmp_path / NASTY
    assert SHOWN in run("ingest", "jobs", str(path), store=":memory:").stderr
    path.write_text(f'"{NASTY}",site\n1,2\n', newline="")
    for command in (
        ("ingest", "jobs", str(path)),
        ("fit-file", str(path), "--task-column", "task", "--unit-column", "queue", "--value-column", "v"),
        ("corepower", "import", str(path)),
        ("show", "runs", "--run", NASTY),
        ("show", "corepower", "--name", NASTY),
        ("query", "--by", NASTY),
        ("export", "jobs", "--out", f"{path}/x.csv"),
    ):
        said = run(*command, store=":memory:").stderr
        assert is_one_line(said), command
        assert "\\x1b[31mred" in said, command


@pytest.mark.parametrize(
    "command",
    [
        (NASTY,),
        ("show", NASTY),
        ("show", "flags", "--method", NASTY),
        ("show", "flags", f"--{NASTY}"),
        ("show", "flags", NASTY),
        ("demo", "--jobs", NASTY),
        ("--log-level", NASTY, "doctor"),
        (f"--{NASTY}",),
        ("corepower", NASTY),
        ("prune", "--keep", NASTY),
    ],
)
def test_wrong_usage_is_shown_not_obeyed(command: tuple[str, ...]) -> None:
    result = run(*command)
    assert result.exit_code == 2
    assert not OBEYED.search(result.stderr)
    compare_text(result.stderr)


def test_a_log_line_is_one_line() -> None:
    lines = LogLines("%(levelname)s %(message)s")
    record = logging.LogRecord("x", logging.WARNING, "f", 1, "%s is odd", (NASTY,), None)
    assert lines.format(record) == f"WARNING {SHOWN} is odd"
    try:
        raise RuntimeError(NASTY)
    except RuntimeError:
        record.exc_info = sys.exc_info()
    said = lines.format(record)
    assert not OBEYED.search(said)
    assert "Traceback" in said


def test_headings_and_cells_are_shown_and_files_keep_everything(tmp_path: Path) -> None:
    header = f"era{NASTY}".replace("\n", "")
    table = tmp_path / "table.csv"
    rows = "".join(
        f"t{task},s{site},{1 + task + site / 10},{NASTY.replace(chr(10), '').replace(chr(13), '')}\n"
        for task in range(4)
        for site in range(4)
    )
    table.write_text(f'task,queue,value,"{header}"\n{rows}', newline="")
    command = (
        "fit-file",
        str(table),
        "--task-column",
        "task",
        "--unit-column",
        "queue",
        "--value-column",
        "value",
    )
    shown = run(*command, "--group-column", header).stdout
    assert not OBEYED.search(shown)
    assert shown.startswith("era\\x1b[31m")
    exact = run(*command, "--group-column", header, "--format", "csv").stdout_bytes.decode()
    assert header in exact


def jobs_at(path: Path, site: str) -> Path:
    row = f'1,t,"{site}",cpu,simul,finished,2018-08-10T12:00:00Z,1,100,9,10,100'
    path.write_text(
        JOBS.format(rows=row + "\n" + row.replace("1,t", "2,t").replace(site, "short")), newline=""
    )
    return path


def test_a_giant_name_is_cut_on_a_terminal_only(tmp_path: Path) -> None:
    name = "N" * 5000
    store = tmp_path / "jobs.duckdb"
    run("ingest", "jobs", str(jobs_at(tmp_path / "jobs.csv", name)), store=store)
    command = ("query", "--by", "queue", "--metric", "jobs")
    lines = on_terminal(80, "--store", f"duckdb:{store}", *command)
    assert f"{'N' * 99}…" in lines[1]
    assert max(map(len, lines)) < 120
    piped = run(*command, store=store).stdout.splitlines()
    assert name in piped[1]
    assert len(piped[2]) < 120  # the row of the other site is as wide as its own name needs
    assert name in run(*command, "--format", "csv", store=store).stdout
    out = tmp_path / "out.txt"
    run(*command, "--out", str(out), store=store)
    assert name in out.read_text()


FORMULAS = ["=cmd|'/C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "a;=1+1", " =1", "＝1", "\n@x"]
HARMLESS = ["-0.3", "+7", "-1e5", "CERN-PROD", "a=b", "x; y", "Zürich"]


def test_a_spreadsheet_is_given_no_formula(tmp_path: Path) -> None:
    jobs, store = tmp_path / "jobs.jsonl", tmp_path / "jobs.duckdb"
    lines = [
        {"job_id": f"j{n}", "queue": site, "end_time": "2018-08-10T12:00:00Z", "cpu_s": 0.5, "user": site}
        for n, site in enumerate([*FORMULAS, *HARMLESS])
    ]
    jobs.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert run("ingest", "jobs", str(jobs), store=store).exit_code == 0
    for command, column in (
        (("query", "--by", "queue", "--metric", "jobs,cpu_h"), "queue"),
        (("export", "jobs"), "queue"),
    ):
        said = run(*command, "--format", "csv", "--spreadsheet", store=store).stdout_bytes.decode()
        rows = list(csv.DictReader(io.StringIO(said, newline="")))
        assert len(rows) == len(lines)
        cells = {row[column] for row in rows}
        assert set(HARMLESS) <= cells
        assert {"'=cmd|'/C calc'!A0", "'+1+1", "'-2+3", "'@SUM(A1)", "a;'=1+1", "' =1", "'＝1"} <= cells
        for row in rows:
            for cell in row.values():
                is_number = re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", cell)
                assert is_number or not re.search(r"(^|[;\t\r\n])\s*[=+\-@＝]", cell)
        exact = run(*command, "--format", "csv", store=store).stdout_bytes.decode()
        assert {row[column] for row in csv.DictReader(io.StringIO(exact, newline=""))} == set(FORMULAS) | set(
            HARMLESS
        )


def test_negative_numbers_stay_numbers_in_a_spreadsheet(filled: Path) -> None:
    command = ("show", "flags", "--format", "csv")
    plain, cells = (run(*command, *more, store=filled).stdout for more in ((), ("--spreadsheet",)))
    assert re.search(r",-0\.\d", plain)
    assert cells == plain


@pytest.mark.parametrize(
    "command",
    [("show", "flags"), ("show", "flags", "--format", "json"), ("export", "jobs", "--format", "parquet")],
)
def test_only_csv_is_for_spreadsheets(filled: Path, command: tuple[str, ...]) -> None:
    result = run(*command, "--spreadsheet", store=filled)
    assert (result.exit_code, result.stdout) == (2, "")
    compare_text(result.stderr)
