"""Readers share a file and leave it as it is; a writer has it alone. Tried with real processes."""

import contextlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import esjobs
from esjobs.core.arrow import table_schema
from esjobs.core.errors import NoJobsError, ReadOnlyError, SchemaError, StoreBusyError, StoreError, UsageError
from esjobs.core.query import In
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import LOADS
from esjobs.store.duck import result_cache, shared
from esjobs.store.duck.connection import DuckConnection
from esjobs.store.duck.holders import holders_of
from esjobs.store.duck.store import DuckStore
from esjobs.store.process import Process
from tests.cli.running import job_file, run
from tests.contract.jobs import job, put
from tests.messages import raised

ROOT = Path(__file__).parents[2]

READER = """
import os, sys
from esjobs.schema.catalogue import TABLES
from esjobs.core.query import Select
from esjobs.store.duck.store import DuckStore
path, user, streams = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "stream"
warm = DuckStore(None, tables=TABLES, read_only=True)  # imports what is needed, while it may
list(warm.select(Select(("events",)))); warm.span(); warm.close()
if user:
    os.setgroups([]); os.setgid(user); os.setuid(user)
store = DuckStore(path, tables=TABLES, read_only=True, wait_s=60)
stream = iter(store.select(Select(("events",)))) if streams else None
first = next(stream) if stream else None
print(store.span().jobs, flush=True)
for line in sys.stdin:
    print(store.span().jobs, flush=True)
store.close()
"""

WRITER = """
import os, signal, sys
from esjobs.schema.catalogue import TABLES
from esjobs.store.duck.store import DuckStore
from tests.cli.running import job_file, run
from tests.contract.jobs import job, put
store = DuckStore(sys.argv[1], tables=TABLES, wait_s=float(sys.argv[3]))
put(store, sys.argv[2], *(job(n, source=sys.argv[2]) for n in range(5)))
print("written", flush=True)
if sys.stdin.readline() == "kill\\n":
    os.kill(os.getpid(), signal.SIGKILL)
store.close()
"""

CROWD = """
import sys, time
from esjobs.schema.catalogue import TABLES
from esjobs.store.duck.store import DuckStore
print("reading", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    store = DuckStore(sys.argv[1], tables=TABLES, read_only=True, wait_s=30)
    time.sleep(0.2)
    store.close()
"""


class Child:
    """A process that says a line whenever it is told one."""

    def __init__(self, program: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        said = self.process.stdout.readline().strip()
        if not said:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        return said

    def tell(self, text: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def end(self) -> int:
        _, said = self.process.communicate(timeout=120)
        if self.process.returncode not in (0, -9):
            raise AssertionError(said)
        return self.process.returncode


@pytest.fixture
def file() -> Iterator[Path]:
    """A store with five jobs, in a folder that any user of the machine may enter."""
    folder = Path(tempfile.mkdtemp(prefix="esjobs-test-"))
    folder.chmod(0o755)
    path = folder / "jobs.duckdb"
    store = DuckStore(path, tables=TABLES)
    put(store, "a", *(job(n) for n in range(5)))
    store.close()
    yield path
    folder.chmod(0o755)
    shutil.rmtree(folder)


def contents(file: Path) -> dict[str, tuple[bytes, int]]:
    """Everything in the folder of a file, with the times of the last change."""
    return {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in sorted(file.parent.iterdir())}


def jobs(file: Path, **options: Any) -> int:
    store = DuckStore(file, tables=TABLES, **options)
    try:
        return store.span().jobs
    finally:
        store.close()


def test_five_readers_at_once(file: Path) -> None:
    before = contents(file)
    readers = [Child(READER, file, 0, "stream") for _ in range(5)]
    assert [reader.line() for reader in readers] == ["5"] * 5
    assert {holder.pid for holder in holders_of(file)} == {reader.process.pid for reader in readers}
    assert jobs(file, read_only=True) == 5
    assert [reader.end() for reader in readers] == [0] * 5
    assert contents(file) == before


def test_who_may_not_write_reads_also_what_a_killed_writer_left_in_the_log(file: Path) -> None:
    writer = Child(WRITER, file, "b", 5)
    assert writer.line() == "written"
    writer.tell("kill")
    assert writer.end() == -9
    log = Path(f"{file}.wal")
    assert log.stat().st_size
    for path, mode in ((file, 0o444), (log, 0o444), (file.parent, 0o555)):
        path.chmod(mode)
    before = contents(file)
    nobody = 65534 if os.getuid() == 0 else 0
    reader = Child(READER, file, nobody, "stream")
    assert reader.line() == "10"
    assert reader.end() == 0
    assert contents(file) == before

    file.parent.chmod(0o755)
    file.chmod(0o644)
    log.chmod(0o644)
    assert jobs(file) == 10
    assert jobs(file, read_only=True) == 10
    assert not log.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="to be another user takes root")
def test_who_may_not_read_is_told_so(file: Path) -> None:
    file.chmod(stat.S_IRUSR)
    reader = Child(READER, file, 65534, "question")
    with pytest.raises(AssertionError, match="StoreError: "):
        reader.line()
    reader.process.communicate()


def test_a_writer_names_the_readers_it_waits_for(file: Path) -> None:
    readers = [Child(READER, file, 0, "stream") for _ in range(2)]
    assert [reader.line() for reader in readers] == ["5", "5"]
    with pytest.raises(StoreBusyError) as caught:
        DuckStore(file, tables=TABLES, wait_s=0.3)
    said = str(caught.value)
    for reader in readers:
        assert f"{reader.process.pid} (" in said
    assert "running since 2" in said
    # how long it waited depends on what else the machine does
    assert re.search(
        rf"use store {re.escape(str(file))}; gave up after \d s: retry later, or raise --wait", said
    )
    assert [each.name for each in file.parent.iterdir()] == ["jobs.duckdb"]

    writer = Child(WRITER, file, "b", 60)
    time.sleep(1.5)
    assert writer.process.poll() is None
    assert [reader.end() for reader in readers] == [0, 0]
    assert writer.line() == "written"
    assert writer.end() == 0
    assert jobs(file) == 10


def test_a_session_that_stays_open_gives_the_file_back_and_sees_what_is_written(file: Path) -> None:
    reader = Child(READER, file, 0, "question")
    assert reader.line() == "5"
    writer = Child(WRITER, file, "b", 30)
    assert writer.line() == "written"
    reader.tell()
    time.sleep(0.5)
    writer.tell()
    assert reader.line() == "10"
    assert (reader.end(), writer.end()) == (0, 0)


def test_readers_that_come_and_go_keep_no_writer_out(file: Path) -> None:
    crowd = [Child(CROWD, file, 8) for _ in range(4)]
    for each in crowd:
        assert each.line() == "reading"
    time.sleep(0.5)
    store = DuckStore(file, tables=TABLES, wait_s=6)
    assert all(each.process.poll() is None for each in crowd)
    put(store, "b", job(7))
    store.close()
    assert [each.end() for each in crowd] == [0] * 4


def test_a_reader_waits_for_a_writer_and_names_it(file: Path) -> None:
    writer = Child(WRITER, file, "b", 5)
    assert writer.line() == "written"
    with raised(StoreBusyError):
        jobs(file, read_only=True)
    reader = Child(READER, file, 0, "question")
    time.sleep(1.0)
    writer.tell()
    assert reader.line() == "10"
    assert (reader.end(), writer.end()) == (0, 0)


@contextlib.contextmanager
def marked(file: Path, text: str, age_s: float) -> Iterator[None]:
    mark = Path(f"{file}.waiting")
    mark.write_text(text)
    os.utime(mark, (time.time() - age_s,) * 2)
    yield
    mark.unlink()


def test_only_a_mark_of_a_process_that_waits_now_is_heeded(file: Path) -> None:
    alive, gone = Child(CROWD, file, 60), Child("")
    other = str(Process.of(alive.process.pid))
    dead = str(Process.of(gone.process.pid))
    gone.end()
    for text, age_s in ((other, 3600.0), (dead, 0.0), ("no process", 0.0), ("", 0.0)):
        with marked(file, text, age_s):
            assert jobs(file, read_only=True, wait_s=3600) == 5
    with marked(file, other, 0.0):
        began = time.monotonic()
        assert jobs(file, read_only=True, wait_s=1.0) == 5
        assert time.monotonic() - began >= 1.0
    alive.process.kill()
    alive.end()


def test_a_mark_that_is_a_link_writes_nowhere(file: Path) -> None:
    victim = file.parent / "victim"
    victim.write_text("precious")
    Path(f"{file}.waiting").symlink_to(victim)
    reader = Child(READER, file, 0, "stream")
    assert reader.line() == "5"
    with pytest.raises(StoreBusyError):
        DuckStore(file, tables=TABLES, wait_s=0.3)
    reader.end()
    assert victim.read_text() == "precious"


STEPS = [
    ("ingest", ("jobs", "jobs.csv")),
    ("undo", ("x",)),
    ("declared.import_values", ("file.csv",)),
    ("declared.remove", ("x",)),
    ("declared.remove_references", ("x",)),
    *((f"speed.{step}", ()) for step in ("aggregate", "fit", "correlate", "flag", "run")),
    *((f"flags.{step}", ()) for step in ("update", "decompose", "drift")),
    *((step, ()) for step in ("run", "scores.compute", "issues.detect", "pop.join", "runs.prune")),
]


@pytest.mark.parametrize(("step", "arguments"), STEPS)
def test_a_session_for_reading_refuses_steps(file: Path, step: str, arguments: tuple[str, ...]) -> None:
    before = contents(file)
    with esjobs.open(f"duckdb:{file}", read_only=True) as session:
        with raised(ReadOnlyError):
            attrgetter(step)(session)(*arguments)
        assert session.store.span().jobs == 5
    assert contents(file) == before


@pytest.mark.parametrize("place", ["file", "memory"])
def test_a_store_for_reading_refuses_whatever_writes(file: Path, place: str) -> None:
    store = DuckStore(file if place == "file" else None, tables=TABLES, read_only=True)
    for write in (
        lambda: put(store, "b", job(1)),
        lambda: store.undo_load("a"),
        lambda: store.replace(TABLES[0], "x", []),
        lambda: store.publish([]),
        store.sweep,
        lambda: store.compare_and_set("key", None, "value"),
        store.set_up,
    ):
        with pytest.raises(ReadOnlyError):
            write()
    store.close()


def test_a_reader_makes_nothing(tmp_path: Path) -> None:
    with raised(StoreError):
        esjobs.open(f"duckdb:{tmp_path / 'new' / 'jobs.duckdb'}", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_lacks_tables_and_columns_is_read_as_it_is(file: Path) -> None:
    with duckdb.connect(file) as connection:
        for view in ("latest_flags", "flags", "loads"):
            connection.execute(f"DROP VIEW {view}")
        connection.execute("DROP TABLE results.flags")
        for table in ("main.jobs", "internal.replaced_jobs"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN project")
        connection.execute("ALTER TABLE results.loads DROP COLUMN state")
        connection.execute(
            "CREATE VIEW loads AS SELECT * EXCLUDE (generation) FROM results.loads "
            "WHERE generation IN (SELECT number FROM internal.published WHERE table_name = 'loads')"
        )
    before = contents(file)
    with esjobs.open(f"duckdb:{file}", read_only=True) as session:
        rows = session.jobs(columns=["job_id", "project"]).batches().read_all()
        assert (rows.num_rows, rows.column("project").null_count) == (5, 5)
        assert session.query("queue", "jobs").to_pandas()["jobs"].sum() == 5
        assert session.tables.batches("loads").read_all().column("state").null_count == 0
        with pytest.raises(NoJobsError):
            session.query("queue", "jobs", where="project=x").to_pandas()
    assert contents(file) == before
    with duckdb.connect(file) as connection:
        connection.execute("DROP TABLE internal.named_values")
    with raised(SchemaError):
        esjobs.open(f"duckdb:{file}", read_only=True)


def test_sessions_of_one_process_share_a_file(file: Path) -> None:
    one, two = (esjobs.open(f"duckdb:{file}", read_only=True) for _ in range(2))
    assert (one.store.span().jobs, two.store.span().jobs) == (5, 5)
    settings = esjobs.Settings(store=f"duckdb:{file}", wait_s=10)
    with esjobs.open(settings=settings) as writing:  # the two give it back in a moment
        put(writing.store, "b", job(6, source="b"))
        with raised(StoreBusyError):
            one.store.span()
    assert (one.store.span().jobs, two.store.span().jobs) == (6, 6)
    one.close()
    assert two.store.span().jobs == 6
    two.close()
    with raised(StoreError):
        two.store.span()


def test_a_stream_is_not_cut_off_however_long_it_rests(file: Path) -> None:
    with esjobs.open(f"duckdb:{file}", read_only=True) as session:
        stream = iter(session.jobs().batches())
        time.sleep(2.5 * shared.IDLE_S)
        assert sum(batch.num_rows for batch in stream) == 5


def test_sql_stays_fenced_after_the_file_was_given_back(file: Path) -> None:
    with esjobs.open(f"duckdb:{file}", read_only=True) as session:
        assert session.sql("select count(*) as n from jobs").to_pandas().n.tolist() == [5]
        for _ in range(2):
            time.sleep(2.5 * shared.IDLE_S)
            writer = Child(WRITER, file, "b", 0)  # has it at once, so the session has not
            assert writer.line() == "written"
            assert writer.end() == 0
            for text in ("select * from read_csv('/etc/passwd')", "select * from '/etc/passwd'"):
                with raised(UsageError):
                    session.sql(text).to_pandas()
            assert session.sql("select count(*) as n from jobs").to_pandas().n.tolist() == [10]


def test_an_answer_to_sql_is_read_to_its_end_however_long_it_rests(file: Path) -> None:
    with esjobs.open(f"duckdb:{file}", read_only=True) as session:
        answer = session.sql("select range as n from range(100000)").batches()
        first = answer.read_next_batch()
        time.sleep(2.5 * shared.IDLE_S)
        assert session.store.span().jobs == 5
        assert first.num_rows + answer.read_all().num_rows == 100_000


def test_readers_during_a_run_see_all_of_it_or_what_was_before(tmp_path: Path) -> None:
    """Nobody gets an error, nobody half of the results; the run comes to its end among readers."""
    store = tmp_path / "jobs.duckdb"
    assert run("ingest", "jobs", str(job_file(tmp_path / "jobs.csv")), store=store).exit_code == 0
    assert run("run", store=store).exit_code == 0
    shown = ("show", "factors", "--format", "csv")
    before = run(*shown, store=store).stdout
    more = job_file(tmp_path / "more.csv", n_tasks=5)
    assert run("ingest", "jobs", str(more), store=store).exit_code == 0
    program = [sys.executable, "-m", "esjobs", "--quiet", "--store", f"duckdb:{store}", "--wait", "300"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    seen = []
    with subprocess.Popen([*program, "run"], **pipes) as running:
        while running.poll() is None:
            readers = [subprocess.Popen([*program, *shown], **pipes) for _ in range(2)]
            answers = [reader.communicate(timeout=300) for reader in readers]
            assert [reader.returncode for reader in readers] == [0, 0], answers
            # who waits for the writer says so
            assert all("waiting up to" in line for _, said in answers for line in said.splitlines()), answers
            seen += [told for told, _ in answers]
        assert running.returncode == 0, running.communicate()
    after = run(*shown, store=store).stdout
    assert after != before
    assert seen
    assert set(seen) <= {before, after}


@pytest.mark.parametrize(
    "stream",
    [
        "session.jobs().batches()",
        "session.sql('FROM jobs').batches()",
        "session.jobs(where='cores=8', sort='job_id').batches()",
    ],
)
@pytest.mark.parametrize("end", ["", "session.close()"])
def test_a_program_that_leaves_a_stream_half_read_ends_quietly(file: Path, stream: str, end: str) -> None:
    program = f"""
import esjobs
session = esjobs.open("duckdb:{file}", read_only=True)
unread = session.jobs()
stream = {stream}
print(stream.read_next_batch().num_rows)
{end}
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "5\n", "")


def test_what_questions_ask_alike_is_asked_once_while_the_file_stays_open(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    stream = DuckConnection.stream

    def counted(self: DuckConnection, sql: str, *given: Any) -> Iterator[pa.RecordBatch]:
        asked.append(sql)
        return stream(self, sql, *given)

    monkeypatch.setattr(DuckConnection, "stream", counted)
    store = DuckStore(file, tables=TABLES, read_only=True)
    assert [store.span().jobs for _ in range(3)] == [5, 5, 5]
    assert len(asked) == 1
    notes = [list(store.read(LOADS, [In("load_id", (load,))])) for load in ("a", "b", "a", "b")]
    assert notes == [[], [], [], []]
    assert len(asked) == 3
    writing = DuckStore(file, tables=TABLES, wait_s=10)  # it gets the file when nothing was asked for a while
    put(writing, "b", job(6, source="b"))
    writing.publish([writing.replace(LOADS, "b", [_load("b")])])
    writing.close()
    assert store.span().jobs == 6
    rows = [row for batch in store.read(LOADS, [In("load_id", ("b",))]) for row in batch.to_pylist()]
    assert [row["load_id"] for row in rows] == ["b"]
    store.close()


def test_a_large_answer_is_read_as_it_comes_and_not_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cache, "_ANSWER_B", 100)
    with contextlib.closing(DuckStore(file, tables=TABLES)) as writing:
        writing.publish([writing.replace(LOADS, name, [_load(name)]) for name in ("a", "b")])
    store = DuckStore(file, tables=TABLES, read_only=True)
    answers = [pa.Table.from_batches(store.read(LOADS)) for _ in range(2)]
    assert [answer.num_rows for answer in answers] == [2, 2]
    assert store._connection._cache._answers == {}  # type: ignore[attr-defined]
    store.close()


def test_answers_that_are_kept_take_so_much_memory_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = result_cache.ResultCache()
    answer = [pa.record_batch({"n": pa.array(range(1000), pa.int64())})]
    for number in range(1000):
        kept.keep(kept.key("SELECT $1", [number]), answer)
        kept.keep(kept.key("SELECT nothing", [number]), [])
    assert kept.get(kept.key("SELECT $1", [999])) is answer
    assert kept.get(kept.key("SELECT $1", [0])) is None
    assert len(kept._answers) < 2 * result_cache._ALL_B / 8000
    assert kept.get(kept.key("SELECT nothing", [999.0])) is None
    kept.keep(kept.key("SELECT $1", ["x" * result_cache._KEY_CHARACTERS]), answer)
    assert kept.get(kept.key("SELECT $1", ["x" * result_cache._KEY_CHARACTERS])) is None
    kept.forget()
    assert kept.get(kept.key("SELECT $1", [999])) is None


def _load(name: str) -> pa.RecordBatch:
    rows = [{"load_id": name}]
    return pa.RecordBatch.from_pylist(rows, schema=table_schema(LOADS))
