"""Files with names of people are for their owner, whatever the umask: modes of every file that is made."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import job_file
from tests.forked import program

MODES = {"nobody": (0o700, 0o600), "group": (0o750, 0o640), "all": (0o755, 0o644)}


def esjobs(folder: Path, umask: int, *commands: tuple[str, ...], **environment: str) -> None:
    """Run the program in a folder, one command after the other."""
    store = ("--quiet", "--store", "duckdb:deep/stores/jobs.duckdb")
    ended = program(*((*store, *each) for each in commands), cwd=folder, umask=umask, environment=environment)
    assert ended.returncode == 0, ended.stderr


def modes(folder: Path) -> dict[str, int]:
    """Every file and folder below, with its mode."""
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in folder.rglob("*")}


def wrong(folder: Path, share: str) -> dict[str, str]:
    """Whatever has other rights than it should have."""
    of_folder, of_file = MODES[share]
    return {
        name: oct(mode)
        for name, mode in modes(folder).items()
        if mode != (of_folder if (folder / name).is_dir() else of_file)
    }


@pytest.mark.parametrize(
    ("umask", "share"),
    [
        (0, "nobody"),
        (0o077, "group"),
        pytest.param(0o022, "nobody", marks=pytest.mark.matrix),
        pytest.param(0o077, "nobody", marks=pytest.mark.matrix),
    ],
)
def test_whatever_the_umask_every_file_has_the_rights_of_the_setting(
    tmp_path: Path, umask: int, share: str
) -> None:
    jobs = job_file(tmp_path / "jobs.csv")
    made = tmp_path / "made"
    made.mkdir()
    made.chmod(MODES[share][0])
    esjobs(
        made,
        umask,
        ("ingest", "jobs", str(jobs)),
        ("run", "--window", "2018-08-10/2018-08-15"),
        ("show", "factors", "--format", "csv", "--out", "factors.csv"),
        ("show", "factors", "--format", "parquet", "--out", "factors.parquet"),
        ("show", "factors", "--format", "json", "--out", "factors.json"),
        ("query", "--by", "user", "--out", "users.txt"),
        ("export", "jobs", "--out", "jobs.parquet"),
        ("export", "jobs", "--out", "jobs.csv"),
        ("export", "jobs", "--out", "jobs.jsonl"),
        ("report", "--out", "report.html"),
        ("dashboards", "export-html", "--out", "pages/of/all"),
        ("dashboards", "render", "--out", "bundles"),
        ("fields", "--format", "csv", "--out", "fields.csv"),
        ("site", "SITE00", "--format", "html", "--out", "site.html"),
        ESJOBS_SHARE=share,
    )
    assert wrong(made, share) == {}
    assert len(modes(made)) > 20


def test_the_demo_is_for_its_owner(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir(mode=0o700)
    esjobs(made, 0o022, ("demo", "--jobs", "3000", "--out", "a/demo"))
    assert wrong(made, "nobody") == {}
    assert len(modes(made)) >= 5


def test_a_key_is_for_its_owner_even_where_files_are_shared(tmp_path: Path) -> None:
    jobs = job_file(tmp_path / "jobs.csv", 2, 1, 3)
    esjobs(tmp_path, 0, ("ingest", "jobs", str(jobs)))
    shared = {"ESJOBS_SHARE": "all"}
    esjobs(
        tmp_path, 0, ("export", "jobs", "--pseudonymise", "key", "--new-key", "--out", "out.csv"), **shared
    )
    assert modes(tmp_path)["key"] == 0o600
    assert modes(tmp_path)["out.csv"] == 0o644


def test_what_exists_keeps_its_mode_and_the_log_beside_a_store_has_that_of_the_store(tmp_path: Path) -> None:
    jobs = job_file(tmp_path / "jobs.csv", 2, 1, 3)
    esjobs(tmp_path, 0o077, ("ingest", "jobs", str(jobs)))
    out, store = tmp_path / "out.csv", tmp_path / "deep/stores/jobs.duckdb"
    out.touch()
    out.chmod(0o664)
    store.chmod(0o640)
    esjobs(tmp_path, 0o077, ("show", "loads", "--format", "csv", "--out", "out.csv"))
    killed = (
        "import os, esjobs; s = esjobs.open('duckdb:deep/stores/jobs.duckdb');"
        f"s.ingest('jobs', {str(job_file(tmp_path / 'more.csv', 3, 1, 3))!r}); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", killed], cwd=tmp_path, umask=0o077, check=True)
    found = modes(tmp_path)
    assert (found["out.csv"], found["deep/stores/jobs.duckdb"]) == (0o664, 0o640)
    assert found["deep/stores/jobs.duckdb.wal"] == 0o640
    esjobs(tmp_path, 0, ("doctor",))


@pytest.mark.parametrize("umask", [0, pytest.param(0o022, marks=pytest.mark.matrix)])
def test_what_is_spilled_beside_a_store_and_its_log_are_for_the_owner(tmp_path: Path, umask: int) -> None:
    spilling = """
import os, esjobs, pyarrow as pa
from esjobs.settings import Settings
s = esjobs.open(settings=Settings(store="duckdb:jobs.duckdb", memory="64MB"))
c = s.store._make()
text = "hash(range)::VARCHAR || hash(range + 1)::VARCHAR"
c.run(f"CREATE TABLE big AS SELECT range AS a, {text} AS b FROM range(3000000)")
rows = c.stream("SELECT * FROM big ORDER BY b", pa.schema([("a", "int64"), ("b", "string")]))
next(rows)
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", spilling], cwd=tmp_path, umask=umask, check=True)
    found = modes(tmp_path)
    assert any("duckdb_temp" in name for name in found)
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077 and ".tmp/" not in name} == {}
