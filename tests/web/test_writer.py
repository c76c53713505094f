"""A writer beside readers: it is not refused, they get no error, and see what it wrote."""

import shutil
import threading
import time
from pathlib import Path

import pytest

import esjobs
from esjobs.web import source as source_module
from esjobs.web.source import Source
from tests.web.client import Client
from tests.web.conftest import Opened, settings_of

JOB = "job_id,queue,end_time,wall_s,cpu_s,cores,source\n{id},NEW-QUEUE,2025-06-30T12:00:00Z,100,90,1,later\n"


@pytest.fixture
def own(store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(store, tmp_path / "own.duckdb"))


def test_a_writer_writes_while_readers_read(
    own: Path, open_web: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_LOOK_S", 0.05)
    monkeypatch.setattr(source_module, "_SHARE_OF_COPYING", 10.0)
    client = open_web(own)
    assert client.get("/health").status == 200
    waits: list[float] = []
    failures: list[str] = []
    ended = threading.Event()

    def write() -> None:
        try:
            for number in range(4):
                file = tmp_path / f"{number}.csv"
                file.write_text(JOB.format(id=f"new-{number}"))
                began = time.monotonic()
                with esjobs.open(f"duckdb:{own}") as session:
                    waits.append(time.monotonic() - began)
                    session.ingest("jobs", file)
                time.sleep(0.3)
        except esjobs.EsjobsError as error:
            failures.append(str(error))
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    statuses: set[int] = set()
    versions: set[str] = set()
    addresses = ["/health", "/jobs", "/api/v1/jobs?limit=10", "/api/v1/flags?level=queue", "/"] * 4
    while not ended.is_set():
        got = client.together(addresses)
        statuses |= {each.status for each in got}
        versions |= {each.headers["etag"] for each in got}
    writer.join()
    assert failures == []
    assert statuses == {200}
    assert max(waits) < 5.0
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        rows = client.get("/api/v1/jobs?limit=10&where=source%3Dlater").json
        if len(rows.get("rows", ())) == 4:
            break
        time.sleep(0.1)
    assert {row["job_id"] for row in rows["rows"]} == {f"new-{number}" for number in range(4)}
    assert len(versions) > 1


def test_the_state_before_is_shown_while_a_writer_has_the_store(
    own: Path, open_web: Opened, tmp_path: Path
) -> None:
    client = open_web(own)
    before = client.get("/health")
    with esjobs.open(f"duckdb:{own}") as session:
        session.ingest("jobs", _file(tmp_path))
        time.sleep(1.2)
        assert client.get("/health").status == 200
        assert client.get("/jobs?where=state%3Dfinished").status == 200
        assert client.get("/health").headers["etag"] == before.headers["etag"]


def test_copies_go_when_they_are_no_longer_read(own: Path, tmp_path: Path) -> None:
    source = Source(settings_of(own))
    first = source.taken()
    try:
        with esjobs.open(f"duckdb:{own}") as session:
            session.ingest("jobs", _file(tmp_path))
        source._next = source._looked = 0.0
        deadline = time.monotonic() + 20
        while source.current() is first and time.monotonic() < deadline:
            source._looked = 0.0
            time.sleep(0.05)
        second = source.current()
        assert second is not first
        assert first.session.store.span().jobs + 1 == second.session.store.span().jobs
        assert len(_copies(own)) == 2
    finally:
        first.release()
    assert len(_copies(own)) == 1
    source.close()
    assert list(own.parent.glob(".*web-*")) == []


def test_an_old_cursor_of_rows_is_gone(own: Path, open_web: Opened, client: Client) -> None:
    following = open_web(own).get("/api/v1/flags?limit=10").json["next"]
    assert following
    assert client.get(following).status == 410


def _copies(own: Path) -> list[Path]:
    return list(own.parent.glob(".*web-*/*.duckdb"))


def _file(folder: Path) -> Path:
    file = folder / "later.csv"
    file.write_text(JOB.format(id="later"))
    return file


def test_what_was_written_while_nobody_read_is_shown_to_the_first_reader(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_ALONE_S", 0.05)
    monkeypatch.setattr(source_module, "_SHARE_OF_COPYING", 10.0)
    source = Source(settings_of(own))
    try:
        first = source.current().version
        with esjobs.open(f"duckdb:{own}") as session:
            session.ingest("jobs", _file(tmp_path))
        deadline = time.monotonic() + 20
        while source._shown is not None and source._shown.version == first and time.monotonic() < deadline:
            time.sleep(0.05)
        shown = source.current()
        assert shown.session.query([], ["jobs"], where="source=later").rows["jobs"][0].as_py() == 1
    finally:
        source.close()
