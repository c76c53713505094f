"""Rows for programs: the numbers of the command line, every job once, in three formats."""

import csv
import io
from datetime import datetime
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import esjobs
from esjobs.publish.latest import latest_run
from esjobs.schema.speed import SPEED
from esjobs.schema.today import EVERYWHERE, LASTING
from esjobs.today.sentences import hours
from tests.web.client import Client


@pytest.fixture(scope="module")
def session(store: Path) -> esjobs.Session:
    return esjobs.open(f"duckdb:{store}", read_only=True)


def walked(client: Client, where: str) -> list[dict[str, object]]:
    """The rows of all pages."""
    rows, following = [], where
    while following:
        got = client.get(following)
        assert got.status == 200, got.text
        rows += got.json["rows"]
        following = got.json["next"] or ""
        assert ("link" in got.headers) == bool(following)
    return rows


def test_jobs_come_once_page_by_page(client: Client, session: esjobs.Session) -> None:
    window = "2025-06-01/2025-06-03"
    stored = session.jobs(columns=["job_id", "end_time"], window=window).rows
    rows = walked(client, f"/api/v1/jobs?limit=500&window={quote(window)}")
    assert len(rows) == stored.num_rows > 1000
    assert {row["job_id"] for row in rows} == set(stored.column("job_id").to_pylist())
    ends = [datetime.fromisoformat(str(row["end_time"])) for row in rows]
    assert ends == sorted(ends, reverse=True)


def test_the_page_of_jobs_leads_through_all_of_them(client: Client, session: esjobs.Session) -> None:
    (first, *_) = session.query("queue", ("jobs",)).rows.column("queue").to_pylist()
    where = f"queue={first}"
    text = client.get(f"/jobs?where={quote(where)}").text
    (total,) = session.query((), ("jobs",), where=where).rows.column("jobs").to_pylist()
    assert f"<h1>{total:,} jobs</h1>" in text
    assert "Next page" in text


def test_flags_and_factors_are_those_of_show(client: Client, session: esjobs.Session) -> None:
    for name in ("flags", "factors"):
        shown = session.tables.read(name, level="queue", type="all").rows.to_pylist()
        rows = walked(client, f"/api/v1/{name}?level=queue&type=all&limit=50")
        keys = ("name", "method", "run")
        assert [[row[key] for key in keys] for row in rows] == [[row[key] for key in keys] for row in shown]
        number = "deviation" if name == "flags" else "k"
        assert [row[number] for row in rows] == [row[number] for row in shown]


def test_groups_are_those_of_query(client: Client, session: esjobs.Session) -> None:
    own = session.query(
        "queue", ("jobs", "efficiency"), where="state=finished", sort="efficiency"
    ).rows.to_pylist()
    asked = "by=queue&metric=jobs&metric=efficiency&where=state%3Dfinished&sort=efficiency&limit=1000"
    got = client.get(f"/api/v1/query?{asked}").json
    assert got["rows"] == own
    assert got["meta"]["total"] == len(own)
    sites = client.get("/api/v1/sites?limit=1000").json["rows"]
    assert sum(row["jobs"] for row in sites) == session.store.span().jobs


def test_the_answer_of_the_form_says_how_to_get_it_elsewhere(client: Client, session: esjobs.Session) -> None:
    text = client.get("/ask?by=queue&metric=efficiency&where=state%3Dfinished&top=3&order=ascending").text
    assert "esjobs query --by queue --metric efficiency --where state=finished --top 3 --asc" in text
    python = "session.query(['queue'], ['efficiency'], where=['state=finished'], descending=False, top=3)"
    assert python in unescape(text)
    answer = session.query(["queue"], ["efficiency"], where=["state=finished"], descending=False, top=3)
    for row in answer.rows.to_pylist():
        assert row["queue"] in text
    for note in answer.notes:
        assert note[:1].upper() + note[1:] in text
    wrong = client.get("/ask?by=beauty")
    assert wrong.status == 400
    assert "beauty" in wrong.text


def test_formats_have_the_same_rows(client: Client) -> None:
    where = "/api/v1/queues?limit=20"
    rows = client.get(where).json["rows"]
    for how in ({}, {"accept": "text/csv"}):
        text = client.get(where if how else f"{where}&format=csv", **how).text
        table = list(csv.DictReader(io.StringIO(text)))
        assert [row["queue"] for row in table] == [row["queue"] for row in rows]
        assert [float(row["efficiency"]) for row in table] == [row["efficiency"] for row in rows]
    arrow = client.get(where, accept="application/vnd.apache.arrow.stream, */*;q=0.1")
    assert pa.ipc.open_stream(arrow.body).read_all().to_pylist() == rows


def test_today_is_what_the_tables_say(client: Client, session: esjobs.Session) -> None:
    text = client.get("/").text
    states = session.tables.flag_states(level="queue", type="all").rows.to_pylist()
    names = [row["name"] for row in states if row["state"] == "open"]
    assert names
    for name in names:
        assert f'<a href="/queue/{name}">{name}</a>' in text
    (sentence,) = (
        session.tables.fit_summaries(level="queue", type="all", method="gamma")
        .rows.column("sentence")
        .to_pylist()
    )
    assert sentence in text
    rows = sorted(session.tables.read("incident_nights").rows.to_pylist(), key=lambda row: row["night"])
    newest = {row["incident"]: row for row in rows}.values()
    told = [row for row in newest if row["state"] in (*LASTING, "closed")]
    assert all(f'<a href="/site/{row["site"]}">' in text for row in told if row["site"] != EVERYWHERE)
    assert all(row["what"] or hours(row["total_core_h"]) in text for row in told)
    assert ("No incident of a site" in text) == (not told)
    # what sites deviate by follows from their queues
    assert "site ALDER-HEP" not in text
    run = session.runs.shown("flags")
    assert run is not None
    assert client.get("/health").json["run"] == run.run


def test_incidents_and_delivered_work_are_those_of_the_session(
    client: Client, session: esjobs.Session
) -> None:
    work = client.get("/api/v1/delivered?by=site&by=month&limit=1000").json
    expected = session.delivered.work(["site", "month"]).rows
    assert work["meta"]["total"] == expected.num_rows > 0
    assert [row["core_h"] for row in work["rows"]] == expected.column("core_h").to_pylist()
    found = client.get("/api/v1/incidents").json["rows"]
    assert [row["site"] for row in found] == session.tables.read("incidents").rows.column("site").to_pylist()


def test_the_description_says_the_limits(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").json["paths"]
    asked = {each["name"]: each["schema"] for each in paths["/api/v1/flags"]["get"]["parameters"]}
    assert asked["limit"] == {"type": "integer", "minimum": 1, "maximum": 1000}
    assert asked["level"]["items"]["enum"] == ["queue", "site", "cpu_model"]
    assert client.get("/api/v1/flags?limit=1000").status == 200
    assert client.get("/api/v1/flags?limit=1001").status == 400


def test_a_row_of_a_page_leads_to_its_jobs(client: Client, session: esjobs.Session) -> None:
    by_type = session.query(("queue", "processing_type"), ("jobs",)).rows.to_pylist()
    row = max(by_type, key=lambda each: each["jobs"])
    text = unescape(client.get(f"/queue/{quote(row['queue'])}").text)
    chosen = f"/jobs?where=queue%3D{row['queue']}+%3B+processing_type%3D{row['processing_type']}&window="
    (address,) = {each.split('"')[0] for each in text.split('href="') if each.startswith(chosen)}
    run = latest_run(session.store, SPEED)
    assert run is not None
    where = (f"queue={row['queue']}", f"processing_type={row['processing_type']}")
    (jobs,) = (
        session.query((), ("jobs",), where=where, window=str(run.window)).rows.column("jobs").to_pylist()
    )
    assert f"<h1>{jobs:,} jobs</h1>" in client.get(address).text


def test_a_question_is_compared_with_another_window(client: Client) -> None:
    asked = "/ask?by=queue&metric=jobs&window=2025-06-08/2025-06-15&compare=previous"
    text = client.get(asked).text
    assert "jobs_before" in text
    assert "--compare previous" in text
    assert "compare=&#39;previous&#39;" in text
