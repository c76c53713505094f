"""The account of a load is history, and what came to nothing leaves no file."""

import resource
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoResultError, StoreError
from esjobs.core.report import RunReport
from esjobs.publish.publication import read_table
from esjobs.records.ingest.refusals import LISTED
from esjobs.records.jobs.undo import undo
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import LOAD_COUNTS, LOADS
from esjobs.settings import RetentionSettings, Settings
from esjobs.store.base import Change, JobStore
from esjobs.store.duck.store import DuckStore
from tests.cli.running import job_file
from tests.conftest import NOW
from tests.messages import raised

HEADER = "job_id,queue,end_time,cpu_s\n"
GOOD, REFUSED = "1,CERN,2018-08-10T12:00:00Z,5\n", "2,CERN,2018-08-10T12:00:00Z,much\n"


def account(session: Session) -> tuple[object, ...]:
    (row,) = read_table(session.store, LOADS).to_pylist()
    return tuple(row[name] for name in ("state", "rows_in", "stored", "updated", "rejected", "loaded_at"))


def test_reading_a_file_again_leaves_the_account_of_the_load(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(HEADER + GOOD + REFUSED)
    first = session.ingest("jobs", path)
    before = account(session)
    assert before[:5] == ("complete", 2, 1, 0, 1)
    assert "esjobs show rejects" in first.notes[-1]
    again = session.ingest("jobs", path)
    assert again.counts == {"stored": 0, "updated": 1, "unchanged": 1}
    assert "were already loaded" in again.notes[-1]
    assert account(session) == before
    assert len(session.tables.rejects().to_pandas()) == 1


def test_rows_that_are_not_listed_one_by_one_are_counted(session: Session, tmp_path: Path) -> None:
    newer, older = tmp_path / "newer.csv", tmp_path / "older.csv"
    jobs = range(LISTED + 7)
    newer.write_text(HEADER + "".join(f"{job},CERN,2018-08-10T12:00:00Z,5\n" for job in jobs))
    older.write_text(HEADER + "".join(f"{job},CERN,2018-08-09T12:00:00Z,much\n" for job in jobs))
    older.write_text(older.read_text() + "".join(f"{job},CERN,2018-08-09T12:00:00Z,5\n" for job in jobs))
    session.ingest("jobs", newer)
    report = session.ingest("jobs", older)
    assert report.dropped == {"not a number": len(jobs), "superseded": len(jobs)}
    rejects = session.tables.rejects().to_pandas()
    for reason, first in (("not a number", 2), ("superseded", 2 + len(jobs))):
        mine = rejects[rejects["reason"] == reason]
        assert mine["n_rows"].tolist() == [1] * LISTED + [7]
        assert mine["line"].tolist() == list(range(first, first + LISTED + 1))
        assert mine["detail"].iloc[-1].startswith("7 more rows like the 1,000 listed")
        assert set(mine["file"]) == {"older.csv"}


def test_a_load_is_taken_back_once(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(HEADER + GOOD)
    load = session.ingest("jobs", path).run
    report = session.undo(load)
    assert (report.rows_in, report.rows_out, report.rows_become) == (1, 1, "taken back")
    with raised(NoResultError):
        session.undo(load)
    assert "show rejects" not in " ".join(session.ingest("jobs", path).notes)


def loaded(session: Session, path: Path, *numbers: int) -> RunReport:
    """Ingest jobs 0, 1, ... with these numbers of seconds."""
    rows = (f"{job},CERN,2018-08-10T12:00:00Z,{cpu_s}\n" for job, cpu_s in enumerate(numbers))
    path.write_text(HEADER + "".join(rows))
    return session.ingest("jobs", path)


def test_unchanged_rows_are_counted_where_a_load_is_accounted_for(session: Session, tmp_path: Path) -> None:
    loaded(session, tmp_path / "a.csv", 1, 2, 3)
    mark = session.store.day_fingerprints(None)
    same = loaded(session, tmp_path / "b.csv", 1, 2, 3)
    assert session.store.day_fingerprints(None) == mark
    some = loaded(session, tmp_path / "c.csv", 1, 2, 4, 5)
    assert same.counts == {"stored": 0, "updated": 3, "unchanged": 3}
    assert some.counts == {"stored": 1, "updated": 3, "unchanged": 2}
    assert "3 updated (of them 2 unchanged)" in some.headline
    for table in (LOADS, LOAD_COUNTS):
        rows = read_table(session.store, table, columns=["load_id", "unchanged"]).to_pylist()
        assert {row["load_id"]: row["unchanged"] for row in rows}[some.run] == 2
        assert sorted(row["unchanged"] for row in rows) == [0, 2, 3]


def test_undo_names_the_loads_whose_equal_rows_were_not_stored(session: Session, tmp_path: Path) -> None:
    first = loaded(session, tmp_path / "a.csv", 1, 2, 3).run
    second = loaded(session, tmp_path / "b.csv", 1, 2).run
    assert session.undo(second).notes == ()
    second = loaded(session, tmp_path / "b.csv", 1, 2).run
    (note,) = session.undo(first).notes
    assert f"{second} 2" in note
    assert session.store.span().jobs == 0
    assert loaded(session, tmp_path / "b.csv", 1, 2).counts["stored"] == 2


@pytest.mark.parametrize(("undo_days", "age", "goes"), [(7, 6, False), (7, 7, True), (0, 0, True)])
def test_what_a_load_replaced_stays_for_a_number_of_days(
    tmp_path: Path, undo_days: int, age: int, *, goes: bool
) -> None:
    now = NOW
    settings = Settings(retention=RetentionSettings(undo_days=undo_days))
    with esjobs.open("duckdb::memory:", settings=settings, clock=lambda: now) as session:
        first = loaded(session, tmp_path / "a.csv", 1, 2).run
        second = loaded(session, tmp_path / "b.csv", 1, 3).run
        now += timedelta(days=age)
        for dry_run in (True, False):
            report = session.runs.prune(dry_run=dry_run)
            assert report.counts.get("replaced versions of jobs", 0) == goes
            assert len(report.notes) == (goes and dry_run)
        assert session.runs.prune().counts.get("replaced versions of jobs", 0) == 0
        if goes:
            with raised(StoreError):
                session.undo(second)
            assert len(session.tables.loads().to_pandas()) == 2
        else:
            session.undo(second)
        session.undo(first)
        assert session.store.span().jobs == goes


def test_what_came_to_nothing_leaves_no_file(tmp_path: Path) -> None:
    store = tmp_path / "jobs.duckdb"
    bad = tmp_path / "bad.csv"
    bad.write_text("nonsense\n")
    good = job_file(tmp_path / "good.csv", n_jobs=1)
    with esjobs.open(f"duckdb:{store}") as session, pytest.raises(InputError):
        session.ingest("jobs", bad)
    with esjobs.open(f"duckdb:{store}") as session:
        session.ingest("jobs", good, dry_run=True)
    with esjobs.open(f"duckdb:{store}") as session, pytest.raises(InputError):
        session.declared.import_values(bad)
    assert {path.name for path in tmp_path.iterdir()} == {"bad.csv", "good.csv"}


def test_a_store_that_was_there_is_never_removed(tmp_path: Path) -> None:
    store = tmp_path / "jobs.duckdb"
    good = job_file(tmp_path / "good.csv", n_jobs=1)
    with esjobs.open(f"duckdb:{store}") as session:
        load = session.ingest("jobs", good).run
    with esjobs.open(f"duckdb:{store}") as session:
        session.undo(load)
    assert store.exists()
    with esjobs.open(f"duckdb:{store}") as session:
        session.ingest("jobs", good, dry_run=True)
    assert store.exists()


def test_a_store_that_another_process_made_meanwhile_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "jobs.duckdb"
    with esjobs.open(f"duckdb:{path}") as session:
        load = session.ingest("jobs", job_file(tmp_path / "good.csv", n_jobs=1)).run
    with esjobs.open(f"duckdb:{path}") as session:
        session.undo(load)
    # As if the file had appeared between the look and the lock.
    monkeypatch.setattr(Path, "exists", lambda _: False)
    DuckStore(path, tables=TABLES).close()
    monkeypatch.undo()
    assert path.exists()


def test_a_file_in_use_stays_when_a_second_process_gives_up(tmp_path: Path) -> None:
    path = tmp_path / "jobs.duckdb"
    with esjobs.open(f"duckdb:{path}") as session:
        session.ingest("jobs", job_file(tmp_path / "good.csv", n_jobs=1))
        with pytest.raises(StoreError):
            esjobs.open(f"duckdb:{path}", settings=session.settings.model_copy(update={"memory": "2GB"}))
        assert path.exists()


@pytest.mark.parametrize("size", [0, 5_000, 13_000, 40_000, 100_000, 300_000, 600_000])
def test_a_first_load_on_a_full_disk_leaves_no_store(tmp_path: Path, size: int) -> None:
    """Wherever in making the file, laying it out or loading the space ends."""
    source = job_file(tmp_path / "jobs.csv")
    store = tmp_path / "new" / "deep" / "jobs.duckdb"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with raised(StoreError), esjobs.open(f"duckdb:{store}") as session:
            session.ingest("jobs", source)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.csv"]
    with esjobs.open(f"duckdb:{store}") as session:
        assert session.ingest("jobs", source).rows_out == 2160


def test_a_later_load_on_a_full_disk_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    first = job_file(tmp_path / "first.csv", n_queues=2)
    second = job_file(tmp_path / "second.csv", n_jobs=800)
    store = tmp_path / "jobs.duckdb"
    with esjobs.open(f"duckdb:{store}") as session:
        session.ingest("jobs", first)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (store.stat().st_size, hard))
    try:
        with raised(StoreError), esjobs.open(f"duckdb:{store}") as session:
            session.ingest("jobs", second)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with esjobs.open(f"duckdb:{store}") as session:
        assert len(session.jobs().to_pandas()) == 2 * 3 * 60
        session.ingest("jobs", second)
        assert len(session.jobs().to_pandas()) == 12 * 3 * 800


def test_a_load_that_broke_off_does_not_claim_to_know_what_it_changed(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs were put, its account was not written; putting them again changes nothing."""
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text(HEADER + GOOD)
    second.write_text(HEADER + GOOD.replace(",5", ",7"))
    session.ingest("jobs", first)
    publish = session.store.publish

    def broken_off(changes: Sequence[Change], *rest: object) -> None:
        if len(changes) > 1:
            raise KeyboardInterrupt
        publish(changes, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(session.store, "publish", broken_off)
        with pytest.raises(KeyboardInterrupt):
            session.ingest("jobs", second)
    session.ingest("jobs", second)
    rows = {row["files"]: row for row in read_table(session.store, LOADS).to_pylist()}
    changed = {Path(name).name: row["jobs_changed"] for name, row in rows.items()}
    assert changed == {"first.csv": 0, "second.csv": None}
    assert session.jobs().to_pandas()["cpu_s"].tolist() == [7.0]


def test_imports_of_declared_values_are_listed_and_taken_back(session: Session, tmp_path: Path) -> None:
    """They have no entry of their own: their rows are the account."""
    jobs, declared = tmp_path / "jobs.csv", tmp_path / "declared.csv"
    jobs.write_text(HEADER + GOOD)
    declared.write_text("name,corepower\nCERN,12.5\nBNL,13.5\n")
    load = session.ingest("jobs", jobs).run
    imported = session.declared.import_values(declared, benchmark="HS06").run
    shown = session.tables.loads().to_pandas().set_index("load_id")
    assert set(shown.index) == {load, imported}
    row = shown.loc[[imported]]
    columns = ["state", "format", "files", "stored"]
    assert row[columns].to_numpy().tolist() == [["complete", "corepower", "declared.csv", 2]]
    assert row[["rows_in", "rejected"]].isna().all(axis=None)
    session.undo(imported)
    assert session.tables.loads().to_pandas()["load_id"].tolist() == [load]
    assert session.tables.corepower().to_pandas().empty


class Overtaken:
    """A store to which something else happens just before results are published."""

    def __init__(self, store: DuckStore, meanwhile: Callable[[], object]) -> None:
        self._store = store
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def publish(self, *arguments: Any) -> None:
        self._meanwhile()
        self._store.publish(*arguments)


def test_a_day_that_another_load_fills_meanwhile_keeps_its_buckets(session: Session, tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    header = "job_id,queue,end_time,cpu_s,wall_s,cores,events,task_id,state\n"
    row = ",CERN,2018-08-10T12:00:00Z,4000,1000,8,100,7,finished\n"
    first.write_text(f"{header}1{row}")
    second.write_text(f"{header}2{row}3{row}")
    load = session.ingest("jobs", first).run
    session.speed.aggregate()

    def meanwhile() -> None:
        session.ingest("jobs", second)
        session.speed.aggregate()

    assert isinstance(session.store, DuckStore)
    undo(cast("JobStore", Overtaken(session.store, meanwhile)), load, TABLES)
    assert session.tables.buckets().to_pandas()["n_jobs"].tolist() == [2]
    assert session.tables.day_books().to_pandas()["n_jobs"].tolist() == [2]
