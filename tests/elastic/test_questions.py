"""The page about clusters: its Python blocks run as they stand, and answer what it says."""

import contextlib
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.cli.demo import demonstrate
from esjobs.core.errors import ReadOnlyError, UsageError
from esjobs.schema.catalogue import TABLES
from esjobs.settings import ClusterSettings
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.server import Server

PAGE = Path(__file__).parents[2] / "docs" / "elasticsearch.md"
BLOCKS = re.findall(
    r"```python\n(.*?)```\n\n```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)
ELASTICSEARCH = server_params("elasticsearch8")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo of the page writes."""
    folder = tmp_path_factory.mktemp("demo")
    demonstrate(folder, jobs=20_000, seed=1)
    return folder


def settings(server: Server, prefix: str) -> Settings:
    return Settings(store=server.url, cluster=ClusterSettings(prefix=prefix))


@pytest.fixture
def reading(server: Server, files: Path, index_prefix: str) -> Iterator[Session]:
    """A session that reads the demo in a cluster."""
    chosen = settings(server, index_prefix.rstrip("-"))
    with esjobs.open(settings=chosen) as session:
        session.ingest("jobs", files / "jobs.parquet")
        session.declared.import_values(files / "corepower.csv")
        session.run("2025-06-01/2025-07-01")
    with esjobs.open(settings=chosen, read_only=True) as session:
        yield session


@pytest.mark.parametrize("server", ELASTICSEARCH, indirect=True)
def test_the_blocks_of_the_page_answer_what_it_says(
    reading: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(BLOCKS) == 4
    assert PAGE.read_text(encoding="utf-8").count("```python") == len(BLOCKS)
    monkeypatch.setattr(esjobs, "open", lambda *_, **__: reading)
    names: dict[str, Any] = {}
    for block, answer in BLOCKS:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(block, names)  # noqa: S102  a page of ours
        if "percentiles" in block:
            # a cluster estimates them, each time a little differently
            assert _words(said.getvalue()) == _words(answer), block
            assert _numbers(said.getvalue()) == pytest.approx(_numbers(answer), rel=0.05), block
        else:
            assert said.getvalue() == answer, block

    # the same, asked of the store
    flags = reading.tables.flags(level="queue", type="all", method="gamma").to_pandas()
    hits = names["verdicts"][:1000].execute()
    assert {hit.name: hit.deviation for hit in hits if hit.deviation is not None} == {
        row["name"]: row["deviation"] for row in flags.dropna(subset=["deviation"]).to_dict("records")
    }
    assert type(hits[0]).__name__ == "Flags"
    assert hits[0].window_start == datetime(2025, 6, 1, tzinfo=UTC)
    failed = reading.query("queue", "jobs", where="state=failed").to_pandas().set_index("queue")["jobs"]
    assert f"{failed.sort_values(ascending=False).index[0]} " in dict(BLOCKS)[_block("failed")]

    for write in (reading.store.sweep, reading.run, reading.store.set_up):
        with raised(ReadOnlyError):
            write()


def _block(word: str) -> str:
    return str(next(block for block, _ in BLOCKS if word in block))


@pytest.mark.parametrize("server", ELASTICSEARCH, indirect=True)
def test_every_table_has_documents_without_a_connection_being_asked(
    server: Server, index_prefix: str
) -> None:
    with esjobs.open(settings=settings(server, index_prefix.rstrip("-"))) as session:
        for table in TABLES:
            search = session.tables.search(table.name)
            kind = search._doc_type[0]
            assert set(table.column_names) == set(kind._doc_type.mapping.properties.properties.to_dict())
            (index,) = search._index
            assert index.endswith(table.name.replace("_", "-"))
            latest = "-latest-" + table.name.replace("_", "-")
            assert index.endswith(latest) == table.has_latest
        with pytest.raises(UsageError):
            session.tables.search("nothing")


@pytest.mark.parametrize("server", ELASTICSEARCH, indirect=True)
def test_jobs_of_others_are_asked_by_their_own_names(server: Server, index_prefix: str) -> None:
    theirs = f"{index_prefix}theirs"
    with esjobs.open(settings=settings(server, index_prefix.rstrip("-"))) as session:
        session.store._cluster.call("PUT", f"/{theirs}", {})  # type: ignore[attr-defined]
    cluster = ClusterSettings(prefix=index_prefix.rstrip("-"), jobs_index=theirs)
    with esjobs.open(settings=Settings(store=server.url, cluster=cluster), read_only=True) as session:
        assert session.tables.search("flags").to_dict() == {}
        with raised(UsageError):
            session.tables.search("jobs")


@pytest.mark.parametrize("server", server_params("opensearch3"), indirect=True)
def test_opensearch_says_what_to_take_instead(server: Server, index_prefix: str) -> None:
    with (
        esjobs.open(settings=settings(server, index_prefix.rstrip("-"))) as session,
        raised(UsageError),
    ):
        session.tables.search("flags")


def test_an_embedded_store_says_what_to_take_instead() -> None:
    refused = raised(UsageError)
    with esjobs.open("duckdb::memory:") as session, refused:
        session.tables.search("flags")


def _words(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]
