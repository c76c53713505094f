"""SQL of others over the embedded store: what is answered, and what nobody gets at."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import EsjobsError, StoreError, UsageError
from tests.contract.jobs import batch, hours, job
from tests.messages import raised


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with esjobs.open(f"duckdb:{tmp_path / 'jobs.duckdb'}") as opened:
        rows = [job(n, queue="A" if n % 3 else "B", end_time=hours(n), cpu_s=float(n)) for n in range(30)]
        opened.store.put_jobs([batch(rows)], "a")
        yield opened


def test_jobs_and_result_tables_answer(session: Session) -> None:
    counted = session.sql(
        "SELECT queue, count(*) AS n, sum(cores) AS cores FROM jobs GROUP BY ALL ORDER BY n"
    ).to_pandas()
    assert counted.to_dict("records") == [
        {"queue": "B", "n": 10, "cores": 80},
        {"queue": "A", "n": 20, "cores": 160},
    ]
    assert len(session.sql("select * from latest_factors").to_pandas()) == 0
    assert session.sql("with x as (select 1 as a) select a, a from x").to_pandas().columns.tolist() == [
        "a",
        "a_2",
    ]


def test_every_type_becomes_one_that_is_written(session: Session) -> None:
    text = (
        "SELECT 1.25::DECIMAL(5, 2), INTERVAL 1 DAY, TIME '12:00', {'a': 1}, [1, 2], DATE '2018-08-01', "
        "TIMESTAMP '2018-08-01 12:00', 'x'::ENUM('x', 'y'), 255::UTINYINT, NULL, "
        "18446744073709551615::UBIGINT, uuid(), MAP {'a': 1.5}, 1::HUGEINT, 'nan'::DOUBLE, 'abc'::BLOB, true"
    )
    table = session.sql(text).batches().read_all()
    assert table.num_rows == 1
    for form in ("csv", "json", "jsonl", "parquet", "table"):
        from esjobs.render.rows import write_batches

        path = session.settings.location.removeprefix("duckdb:") + f".{form}"
        write_batches(session.sql(text).batches(), form, path)
        assert Path(path).stat().st_size


FORBIDDEN = [
    "",
    ";",
    "select 1; select 2",
    "select 1; drop table jobs",
    "drop table jobs",
    "delete from jobs",
    "insert into jobs (job_id) values ('x')",
    "update jobs set queue = 'x'",
    "create table x (a int)",
    "create temp table x (a int)",
    "copy jobs to '{place}/out.csv'",
    "copy (select 1) to '{place}/out.csv'",
    "export database '{place}/out'",
    "attach '{place}/other.duckdb' as other",
    "detach jobs",
    "install httpfs",
    "load httpfs",
    "pragma database_list",
    "set memory_limit = '100GB'",
    "reset memory_limit",
    "call pragma_version()",
    "checkpoint",
    "begin transaction",
    "prepare x as select 1",
    "explain analyze delete from jobs",
    "select * from read_csv('{place}/secret.csv')",
    "select * from read_text('{place}/secret.csv')",
    "select * from read_blob('{place}/*')",
    "select * from glob('{place}/*')",
    "select * from '{place}/secret.csv'",
    "select * from read_parquet('https://example.org/x.parquet')",
    "select * from query('delete from jobs')",
    "with gone as (delete from jobs returning *) select * from gone",
    "select * from secret",
    "select getenv('HOME')",
    "select nonsense",
    "selekt 1",
    "select * from jobs where",
    "select '\x00' from",
]


def test_nothing_else_is_answered_and_nothing_changes(session: Session, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\nsecret\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    secret = session.query("queue").rows  # a table in a variable is no table of the database
    assert secret.num_rows == 2
    for text in FORBIDDEN:
        with raised(EsjobsError) as caught:
            session.sql(text.replace("{place}", str(tmp_path))).batches().read_all()
        assert str(caught.value).startswith("SQL: "), text
    assert session.sql("select count(*) as n from jobs").to_pandas()["n"].tolist() == [30]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_session_goes_on_after_sql(session: Session) -> None:
    session.sql("select 1").to_pandas()
    session.store.put_jobs([batch([job(100), job(101)])], "b")
    assert session.store.span().jobs == 32
    assert len(session.jobs(where="job_id=100,101").to_pandas()) == 2
    assert session.store.undo_load("b").jobs == 2


def test_a_question_without_end_is_ended(session: Session) -> None:
    with raised(StoreError):
        session.sql("select count(*) from range(10000000000000) a", timeout_s=0.5).batches().read_all()
    assert session.sql("select 1 as a").to_pandas()["a"].tolist() == [1]


def test_only_the_embedded_store_speaks_sql() -> None:
    with raised(UsageError):
        Session(object(), Settings()).sql("select 1")  # type: ignore[arg-type]


def test_what_spills_is_bounded_by_half_of_the_free_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=8_000_000))
    settings = Settings(store=f"duckdb:{tmp_path / 'jobs.duckdb'}", memory="60MB")
    refused = raised(StoreError)
    with esjobs.open(settings=settings) as session, refused:
        session.sql("SELECT i, hash(i)::VARCHAR AS h FROM range(20000000) AS t(i) ORDER BY h").to_pandas()


@pytest.mark.parametrize(
    "value",
    [
        "date 'infinity'",
        "timestamp '-infinity'",
        "timestamptz 'infinity'",
        "timestamp '290000-01-01'",
        "date '290000-01-01'",
        "[timestamp 'infinity']",
        "map {'a': date 'infinity'}",
    ],
)
def test_times_that_nobody_can_read_are_refused_in_a_line(session: Session, value: str) -> None:
    with raised(UsageError):
        session.sql(f"SELECT {value} AS moment").batches().read_all()
    assert session.sql(f"SELECT CAST({value} AS VARCHAR) AS moment").batches().read_all().num_rows == 1


def test_the_first_and_the_last_day_are_answered(session: Session) -> None:
    days = session.sql("SELECT date '0001-01-01' AS a, timestamp '9999-12-31 23:59:59.999999' AS b").batches()
    assert [str(each) for each in days.read_all().to_pylist()[0].values()] == [
        "0001-01-01",
        "9999-12-31 23:59:59.999999+00:00",
    ]
