"""Golden texts of errors: no entry without its test; texts are compared, normalised, shared by servers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from esjobs.core.errors import InputError, UsageError
from tests.messages import (
    COLLECTED,
    expected_texts,
    golden_folder,
    is_selected,
    orphans,
    raised,
    read,
    updated,
    write,
)

ID = "tests/test_messages.py::test_x"


def test_no_entry_is_without_its_test(request: pytest.FixtureRequest) -> None:
    if is_selected(request.config):
        pytest.skip("single tests are run")
    tests = request.config.stash[COLLECTED]
    entries = [nodeid for path in golden_folder(request.config).glob("*.txt") for nodeid in read(path)]
    assert orphans(entries, tests, request.config.rootpath, complete=True) == []


def test_a_file_reads_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.txt"
    texts = {ID: ["InputError: a  b", "text: "], f"{ID}[1]": ["UsageError: x"]}
    write(path, texts)
    assert read(path) == texts
    write(path, {})
    assert not path.exists()


def test_servers_share_an_entry_unless_their_texts_differ() -> None:
    ids = [f"{ID}[{name}]" for name in ("elasticsearch8", "elasticsearch9", "opensearch3")]
    first = updated({}, {ids[0]: ["a"], ids[1]: ["a"], ids[2]: ["b"]})
    assert first == {f"{ID}[<server>]": ["a"], ids[2]: ["b"]}
    assert [expected_texts(each, first) for each in ids] == [["a"], ["a"], ["b"]]
    assert updated(first, {ids[0]: ["c"]}) == {f"{ID}[<server>]": ["c"], ids[2]: ["b"]}
    assert updated(first, {ids[2]: ["a"]}) == {f"{ID}[<server>]": ["a"]}


def test_a_server_without_texts_has_an_entry_where_others_have_some() -> None:
    texts = updated({}, {f"{ID}[elasticsearch8]": ["a"], f"{ID}[opensearch3]": [], f"{ID}[duckdb]": []})
    assert texts == {f"{ID}[<server>]": ["a"], f"{ID}[opensearch3]": []}


def test_another_class_is_not_accepted() -> None:
    with pytest.raises(UsageError), raised(InputError):
        raise UsageError("other")


MINE = """
from tests.messages import compare_text, raised

def test_x(tmp_path):
    with raised(ValueError):
        raise ValueError(f"{tmp_path}/a is held by process 17")
    compare_text("done")
"""


def test_a_text_that_differs_fails_until_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    test = tmp_path / "tests" / "test_a.py"
    test.write_text(MINE)

    def run(*options: str) -> int:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.messages",
            f"--rootdir={tmp_path}",
            *options,
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        done = subprocess.run(
            [*command, str(test)], env=environment, cwd=tmp_path, check=False, capture_output=True
        )
        return done.returncode

    assert run() == 1
    assert run("--update-golden", "-p", "xdist", "-n", "1") == 0
    golden = tmp_path / "tests/golden/messages/tests.txt"
    texts = ["ValueError: <tmp>/a is held by process <number>", "text: done"]
    assert read(golden) == {"tests/test_a.py::test_x": texts}
    assert run() == 0
    golden.write_text(golden.read_text().replace("done", "gone"))
    assert run() == 1
