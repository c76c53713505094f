"""The folder of pages: ours is replaced, nothing else is touched, and a reader always finds what he loads."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import esjobs
from esjobs.cli.main import main
from esjobs.core.errors import InputError
from esjobs.store.files.folders import write_folder
from tests.messages import raised

MARK = "<!-- ours -->"


def files(number: int, parts: str) -> Iterator[tuple[str, str]]:
    yield f"{parts}/rows.js", f"rows {number}"
    yield "index.html", f"{MARK} {parts} {number}"
    yield "sites.html", f"{MARK} {parts} {number}"


def write(folder: Path, number: int) -> str:
    parts = f"pages-{number:012x}"
    write_folder(folder, files(number, parts), parts, MARK)
    return parts


def test_what_is_loaded_is_replaced_with_what_loads_it(tmp_path: Path) -> None:
    write(tmp_path / "out", 1)
    parts = write(tmp_path / "out", 2)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.html", parts, "sites.html"]
    assert (tmp_path / "out" / parts / "rows.js").read_text() == "rows 2"
    assert parts in (tmp_path / "out" / "index.html").read_text()


def test_files_of_others_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, 1)
    others = {
        "notes.txt": "mine",
        "pages-mine/kept": "mine",
        "pages-000000000001.bak": "mine",
        "assets/logo.svg": "mine",
    }
    for name, text in others.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text(text)
    write(out, 2)
    assert {name: (out / name).read_text() for name in others} == others


def test_a_page_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "sites.html").write_text("my own page")
    with raised(InputError):
        write(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["sites.html"]
    assert (tmp_path / "sites.html").read_text() == "my own page"


def test_what_was_never_completed_goes(tmp_path: Path) -> None:
    left = tmp_path / ".pages-00000000000a.esjobs-unfinished-0123abcd"
    left.mkdir()
    (left / "rows.js").write_text("half")
    parts = write(tmp_path, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html", parts, "sites.html"]


def test_an_interruption_leaves_the_pages_of_before(tmp_path: Path) -> None:
    old = write(tmp_path, 1)
    new = "pages-000000000002"

    bad = dict(files(2, new))
    bad[f"{new}/rows.js"] = "\ud800"  # no file can hold half of a character
    with pytest.raises(InputError):
        write_folder(tmp_path, bad.items(), new, MARK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html", old, "sites.html"]
    assert old in (tmp_path / "index.html").read_text()


def test_a_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    parts = write(tmp_path / "link", 1)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / parts / "rows.js").exists()


def test_a_link_in_the_place_of_old_parts_is_left_alone(tmp_path: Path) -> None:
    """What lies behind it is somebody else's."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "pages-000000000009").symlink_to(tmp_path / "elsewhere")
    write(out, 1)
    assert (tmp_path / "elsewhere" / "kept").read_text() == "mine"


@pytest.mark.parametrize("kind", ["a file", "standard output", "a folder below a file"])
def test_what_is_no_folder_is_told(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("mine")
    out = {
        "a file": tmp_path / "file",
        "standard output": Path("-"),
        "a folder below a file": tmp_path / "file/x",
    }
    with raised(InputError):
        write(out[kind], 1)
    assert (tmp_path / "file").read_text() == "mine"
    assert not Path("-").exists()


def test_the_command_writes_pages_of_a_store_without_a_run(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text(json.dumps({"job_id": "1", "end_time": "2025-06-01T12:00:00Z", "queue": "A"}) + "\n")
    with esjobs.open(f"duckdb:{tmp_path / 'empty.duckdb'}", create=True) as session:
        session.ingest("jobs", [str(jobs)])
    store = ["--store", f"duckdb:{tmp_path / 'empty.duckdb'}"]
    said = CliRunner().invoke(main, [*store, "dashboards", "export-html", "--out", str(tmp_path / "out")])
    assert said.exit_code == 0, said.output
    assert re.search(r"pages written; open .*out/index\.html", said.stderr)
    both = CliRunner().invoke(
        main, [*store, "dashboards", "render", "--target", "html", "--out", str(tmp_path / "b")]
    )
    assert both.exit_code == 0, both.output
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["html"]
    same = [path.name for path in (tmp_path / "b" / "html").iterdir()]
    assert sorted(same) == sorted(path.name for path in (tmp_path / "out").iterdir())
