"""``esjobs export --pseudonymise``: no original name in the bytes, a pseudonym a name, keys that are safe."""

import csv
import io
import json
import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import Result

from esjobs.core import fields
from esjobs.core.arrow import schema_of, table_schema
from esjobs.core.fields import JOB_FIELDS
from esjobs.core.personal import is_free_text, kind_of_names
from esjobs.records.export.pseudonyms import Pseudonyms
from esjobs.schema.accounting import ACCOUNTING
from esjobs.schema.catalogue import TABLES
from esjobs.schema.series import SERIES
from esjobs.store.duck.store import DuckStore
from tests.cli.running import run
from tests.contract.jobs import job, put

KEY = b"0123456789abcdef0123456789abcdef"
USERS = ("ann", "böb o'hara", "/DC=ch/DC=cern/CN=Carla Doe", 'x,"y"\nz')
PROJECTS = ("hpc-physics", "ann")
PROGRAMS = ("/home/ann-home/bin/model", "gromacs")
NODES = ("node0007", "node0007/3", "gpu-host.example.org/GPU-7a")
NAMES = (
    *USERS,
    "hpc-physics",
    PROGRAMS[0],
    "ann-home",
    "node0007",
    "gpu-host.example.org",
    "GPU-7a",
    "ce01.site",
)
"""Whatever must not be found in what goes out."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs, series and sums with names."""
    path = tmp_path_factory.mktemp("names") / "jobs.duckdb"
    duck = DuckStore(path, tables=TABLES)
    jobs = [
        job(
            number,
            user=USERS[number % 4],
            project=PROJECTS[number % 2],
            application=PROGRAMS[number % 2],
            transformation=PROGRAMS[number % 2],
            counters=[("cycles", float(number))],
        )
        for number in range(12)
    ]
    put(duck, "a", *jobs, job(99))
    end = datetime(2026, 1, 1, tzinfo=UTC)
    series = [
        {
            "load_id": "a",
            "job_id": str(n),
            "source": "s",
            "end_time": end,
            "metric": "cpu_load",
            "scope": "node",
        }
        | {"unit": unit, "packed": b"\0" * 8, "n_samples": 2, "remark": f"from {NODES[0]}"}
        for n, unit in enumerate(NODES)
    ]
    sums = [
        {
            "load_id": "a",
            "month": end.date(),
            "queue": "CERN-PROD",
            "vo": "atlas",
            "user": user,
            "vo_group": "ann",
        }
        | {"submit_host": "ce01.site", "n_jobs": 1, "wall_s": 1.0, "cpu_s": 1.0, "source": f"of {user}"}
        for user in USERS
    ]
    generations = [
        duck.replace(table, "a", pa.Table.from_pylist(rows, table_schema(table)).to_batches())
        for table, rows in ((SERIES, series), (ACCOUNTING, sums))
    ]
    duck.publish(generations)
    duck.close()
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key that nobody else may read."""
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    path.chmod(0o600)
    return path


def exported(store: Path, what: str, out: Path, key: Path, *more: str) -> Result:
    return run("export", what, "--out", str(out), "--pseudonymise", str(key), *more, store=store)


def hidden(content: bytes, names: tuple[str, ...] = NAMES) -> list[str]:
    """The original names in some bytes, however they are escaped."""
    text = content.decode("utf-8", "replace")
    spelled = {name: {name, name.replace('"', '""'), json.dumps(name)[1:-1]} for name in names}
    return [
        name
        for name, ways in spelled.items()
        if any(re.search(rf"(?<![0-9A-Za-z]){re.escape(way)}(?![0-9A-Za-z])", text) for way in ways)
    ]


@pytest.mark.parametrize(
    ("what", "ending"),
    [
        *(("jobs", ending) for ending in ("csv", "json", "jsonl", "parquet")),
        *((what, ending) for what in ("series", "accounting") for ending in ("csv", "json", "parquet")),
    ],
)
def test_no_original_name_goes_out(store: Path, tmp_path: Path, key: Path, what: str, ending: str) -> None:
    plain, out = tmp_path / f"plain.{ending}", tmp_path / f"out.{ending}"
    assert run("export", what, "--out", str(plain), store=store).exit_code == 0
    assert exported(store, what, out, key).exit_code == 0
    if ending == "parquet":
        # the pages are packed; the cells are not
        before, after = (repr(pa.parquet.read_table(path).to_pylist()).encode() for path in (plain, out))
        assert not hidden(out.read_bytes())
    else:
        before, after = plain.read_bytes(), out.read_bytes()
    assert len(hidden(before)) >= 3, "the search finds nothing, so it proves nothing"
    assert hidden(after) == []


def test_the_same_name_stays_the_same(store: Path, tmp_path: Path, key: Path) -> None:
    out, again, sums = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "sums.csv"
    for path in (out, again):
        assert exported(store, "jobs", path, key).exit_code == 0
    assert exported(store, "accounting", sums, key).exit_code == 0
    assert out.read_bytes() == again.read_bytes()
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    by_user = {row["user"] for row in rows}
    assert by_user == {"", *(Pseudonyms(KEY).of("user", user) for user in USERS)}
    assert {row["user"] for row in csv.DictReader(io.StringIO(sums.read_text()))} == by_user - {""}
    ann = Pseudonyms(KEY)
    assert ann.of("user", "ann") != ann.of("project", "ann")
    other = tmp_path / "other"
    other.write_bytes(b"another key of some length")
    other.chmod(0o600)
    assert exported(store, "jobs", again, other).exit_code == 0
    assert not by_user - {""} & {row["user"] for row in csv.DictReader(io.StringIO(again.read_text()))}


def test_all_else_stays(store: Path, tmp_path: Path, key: Path) -> None:
    plain, out = tmp_path / "plain.csv", tmp_path / "out.csv"
    assert run("export", "jobs", "--out", str(plain), store=store).exit_code == 0
    assert exported(store, "jobs", out, key).exit_code == 0
    before, after = (list(csv.DictReader(io.StringIO(path.read_text()))) for path in (plain, out))
    replaced = {"user", "project", "application", "transformation"}
    assert before[0].keys() == after[0].keys()
    for old, new in zip(before, after, strict=True):
        assert {name for name in old if old[name] != new[name]} <= replaced
    assert {row["application"] for row in after} == {"gromacs", "", Pseudonyms(KEY).of("path", PROGRAMS[0])}
    series = tmp_path / "series.csv"
    assert exported(store, "series", series, key).exit_code == 0
    rows = list(csv.DictReader(io.StringIO(series.read_text())))
    node = Pseudonyms(KEY).of("host", "node0007")
    assert [row["unit"] for row in rows][:2] == [node, f"{node}/3"]
    assert {row["remark"] for row in rows} == {""}


def test_what_went_out_can_be_read_in_again(store: Path, tmp_path: Path, key: Path) -> None:
    out = tmp_path / "jobs.jsonl"
    assert exported(store, "jobs", out, key).exit_code == 0
    again = run("ingest", "jobs", str(out), store=tmp_path / "other.duckdb")
    assert again.exit_code == 0
    assert "13 rows = 13 stored" in again.output


def test_a_new_key_is_for_its_owner_alone(store: Path, tmp_path: Path) -> None:
    key, out = tmp_path / "key", tmp_path / "jobs.csv"
    old = os.umask(0)
    try:
        assert exported(store, "jobs", out, key, "--new-key").exit_code == 0
    finally:
        os.umask(old)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    first = key.read_bytes()
    assert len(first.strip()) == 64
    refused = exported(store, "jobs", out, key, "--new-key")
    assert refused.exit_code == 2
    assert "already exists; omit --new-key" in refused.output
    assert key.read_bytes() == first


@pytest.mark.parametrize(
    ("content", "mode", "complaint"),
    [
        (b"", 0o600, "is empty"),
        (b" \n\n", 0o600, "is empty"),
        (b"short\n", 0o600, "has 5 bytes; at least 16 are required"),
        (KEY, 0o640, "other users can read or change key file"),
        (KEY, 0o604, "other users can read or change key file"),
        (KEY, 0o620, "other users can read or change key file"),
        (KEY * 4096, 0o600, "has more than 65536 bytes"),
    ],
)
def test_keys_that_are_refused(
    store: Path, tmp_path: Path, content: bytes, mode: int, complaint: str
) -> None:
    key, out = tmp_path / "key", tmp_path / "jobs.csv"
    key.write_bytes(content)
    key.chmod(mode)
    result = exported(store, "jobs", out, key)
    assert result.exit_code != 0
    assert complaint in " ".join(result.output.split())
    assert not out.exists()


def test_what_is_no_key_file(store: Path, tmp_path: Path, key: Path) -> None:
    missing = exported(store, "jobs", tmp_path / "o.csv", tmp_path / "none")
    assert (missing.exit_code, "create it with --new-key" in missing.output) == (1, True)
    assert "is not a regular file" in exported(store, "jobs", tmp_path / "o.csv", tmp_path).output
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    assert "is not a regular file" in exported(store, "jobs", tmp_path / "o.csv", fifo).output
    over = exported(store, "jobs", key, key, "--format", "csv")
    assert over.exit_code != 0
    assert "it is an input file" in " ".join(over.output.split())
    assert key.read_bytes() == KEY + b"\n"
    lonely = run("export", "jobs", "--new-key", store=store)
    assert lonely.exit_code == 2


def test_every_column_is_told_apart() -> None:
    """A column that nobody has thought of is replaced; these are the ones that name somebody."""
    named = {known.name for known in JOB_FIELDS if kind_of_names(known)}
    assert named == {
        "user",
        "project",
        "transformation",
        "application",
        "executable",
        "job_id",
        "task_id",
        "node",
        "job_name",
    }
    for table in TABLES:
        unknown = {item.name for item in table.columns if kind_of_names(item) == item.name}
        assert unknown - {"user", "project", "host", "path"} <= {"file"}, (
            f"{table.name}: say in core/personal.py what they name"
        )
    assert kind_of_names(fields.Field("new", "keyword", "", "")) == "new"
    assert is_free_text(fields.Field("hint", "text", "", ""))


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "parquet"])
def test_names_in_texts_that_stay_go(tmp_path: Path, key: Path, ending: str) -> None:
    """No byte of what goes out has a name, wherever in the record it stood."""
    path, out = tmp_path / "jobs.duckdb", tmp_path / f"out.{ending}"
    duck = DuckStore(path, tables=TABLES)
    told: dict[str, object] = {
        "user": "mariasecret",
        "project": "Doe-Group",
        "exit_code": "killed by mariasecret on nodesecret7",
        "state": "cancelled by mariasecret",
        "error": "exit:secret of ann",
        "node": "nodesecret7",
        "transformation": "python run_mariasecret.py",
        "application": "MariaSecret.exe",
        "processing_type": "mariasecret-test",
        "subcluster": "part-of-doe-group",
        "cpu_raw": "CPU of mariasecret",
        "counters": [("mariasecret_events", 2.0), ("cycles", 1.0)],
    }
    plain: dict[str, object] = {
        "user": "someone",
        "state": "failed",
        "exit_code": "0:15",
        "application": "gromacs",
    }
    # one of another job, and a job before the one whose user it names
    other: dict[str, object] = {
        "user": "ann",
        "application": "for_mariasecret",
        "state": "mariasecret",
        "exit_code": "1",
    }
    jobs = [other, told, plain]
    put(
        duck,
        "a",
        *(job(number, **each) for number, each in enumerate(jobs)),
        job(9, counters=[("cycles", 3.0)]),
    )
    duck.close()
    assert exported(path, "jobs", out, key).exit_code == 0
    content = out.read_bytes()
    if ending == "parquet":
        content += repr(pa.parquet.read_table(out).to_pylist()).encode()
    for name in (b"secret", b"doe-group"):
        assert name not in content.lower()
    again = tmp_path / "again.parquet"
    assert exported(path, "jobs", again, key).exit_code == 0
    rows = {row["job_id"]: row for row in pa.parquet.read_table(again).to_pylist()}
    assert (rows["1"]["state"], rows["1"]["exit_code"]) == ("cancelled", None)
    assert dict(rows["1"]["counters"])["cycles"] == 1.0
    assert sorted(dict(rows["1"]["counters"]).values()) == [1.0, 2.0]
    assert rows["0"]["exit_code"] == "1"
    assert {name: rows["2"][name] for name in ("state", "exit_code", "application")} == {
        "state": "failed",
        "exit_code": "0:15",
        "application": "gromacs",
    }
    assert rows["2"]["counters"] is None


@pytest.mark.parametrize(
    ("text", "named"),
    [("E5-2680", True), ("E5-26801", False), ("x2680y", True), ("run_Anna.sh", True), ("ann", False)],
)
def test_names_as_parts(text: str, *, named: bool) -> None:
    columns = [fields.field("user")]
    known = pa.RecordBatch.from_pylist(
        [{"user": user} for user in ("2680", "anna", "ann")], schema_of(columns)
    )
    pseudonyms = Pseudonyms(KEY)
    pseudonyms.learn([known], columns)
    assert pseudonyms.names_somebody(text) is named


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        ("4012345678", True),
        ("123_4", True),
        ("12+0", True),
        ("550e8400-e29b-41d4-a716-446655440000", True),
        ("crab3@vocms0122.example.org#9053.0#1700000000", False),
        ("240101_120000:ann_crab_analysis", False),
        ("ann", False),
    ],
)
def test_ids_stay_where_they_are_numbers(name: str, *, stays: bool) -> None:
    columns = [fields.field("job_id"), fields.field("task_id")]
    batch = pa.RecordBatch.from_pylist([{"job_id": name, "task_id": name}], schema_of(columns))
    (out,) = Pseudonyms(KEY).batches([batch], columns)
    (row,) = out.to_pylist()
    assert row["job_id"] == row["task_id"] == (name if stays else Pseudonyms(KEY).of("id", name))


def test_gaps_and_empty_names_stay() -> None:
    columns = [fields.field("user"), SERIES.column("unit")]
    batch = pa.RecordBatch.from_pylist(
        [{"user": None, "unit": ""}, {"user": "", "unit": None}], schema_of(columns)
    )
    (out,) = Pseudonyms(KEY).batches([batch], columns)
    assert out.equals(batch)
