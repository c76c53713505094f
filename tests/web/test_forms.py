"""Questions as forms: the page, the command and the call beside it give the same rows."""

import html
import json
import re
import shlex
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

import esjobs
from esjobs.web.forms import QUESTIONS
from tests.cli.running import run
from tests.issues.made_jobs import START, busy, cores, put_records, put_series, record
from tests.web.client import Client
from tests.web.conftest import Opened

ASKED = [
    ("/delivered", "by=site, month&window=2025-06"),
    ("/delivered", "by=queue&where=state=finished ; wall_s>=1h"),
    ("/energy", "by=cpu_model"),
    ("/what-if/move", "from={queue}&to={other}&type=evgen"),
    ("/what-if/place", "cores=1000&memory=2000"),
    ("/what-if/finish", "task={task}&due=2025-07-10&jobs=500"),
    ("/what-if/declare", "values={queue}=12.5 {other}=9"),
    ("/what-if/drain", "site={queue}"),
    ("/what-if/drain", ""),
]


def addressed(path: str, text: str) -> str:
    pairs = [each.partition("=") for each in text.split("&") if each]
    return f"{path}?" + "&".join(f"{name}={quote(value, safe='')}" for name, _, value in pairs)


def cells(page: str) -> list[str]:
    return [
        html.unescape(re.sub(r"<[^>]+>", "", each)).strip()
        for each in re.findall(r"<td[^>]*>(.*?)</td>", page, re.S)
    ]


@pytest.fixture(scope="module")
def names(store: Path) -> dict[str, str]:
    """Two queues that ran event generation, and a task, each of the most jobs."""
    with esjobs.open(f"duckdb:{store}") as session:
        where = ["processing_type=evgen"]
        queues = [row["queue"] for row in session.query("queue", where=where, top=2)]
        (task, *_) = [row["task_id"] for row in session.query("task_id", top=1)]
    return {"queue": queues[0], "other": queues[1], "task": task}


@pytest.mark.parametrize(("path", "values"), ASKED)
def test_page_command_and_call_are_one(
    client: Client, store: Path, names: dict[str, str], path: str, values: str
) -> None:
    page = client.get(addressed(path, values.format(**names)))
    assert page.status == 200
    *_, command, call = cells(page.text)
    words = shlex.split(command)
    assert words[0] == "esjobs"
    printed = run(*words[1:], "--format", "json", store=store)
    assert printed.exit_code == 0, printed.output
    with esjobs.open(f"duckdb:{store}") as session:
        called = eval(call, {"session": session}).rows  # noqa: S307 - what the page tells people to type
    rows = json.loads(printed.stdout)
    assert len(rows) == called.num_rows > 0
    first = next(iter(rows[0]))
    assert [row[first] for row in rows] == called[first].to_pylist()
    assert page.text.count("<tr") >= min(called.num_rows, 200)


def test_every_form_asks_for_what_it_needs(client: Client) -> None:
    for question in QUESTIONS:
        page = client.get(question.path)
        assert page.status == 200
        assert [f'name="{entry.name}"' in page.text for entry in question.entries] == [True] * len(
            question.entries
        )
        assert ("The same elsewhere" in page.text) == (not any(entry.needed for entry in question.entries))


@pytest.mark.parametrize(
    "address",
    [
        "/delivered?by=nonsense",
        "/energy?by=federation",
        "/what-if/move?from=A&to=B",
        "/what-if/place?cores=0",
        "/what-if/place?cores=1e9",
        "/what-if/place?cores=" + "9" * 5000,
        "/what-if/finish?task=1&due=someday",
        "/what-if/declare?values=X",
        "/what-if/declare?values=X%3Dnan",
        "/what-if/declare?values=%3Cscript%3E%3D1",
    ],
)
def test_wrong_values_are_refused_on_the_form(client: Client, address: str) -> None:
    page = client.get(address)
    assert page.status == 400
    assert "<form" in page.text
    assert "<script>" not in page.text


def test_a_task_has_queues_days_and_jobs(client: Client, names: dict[str, str]) -> None:
    page = client.get(f"/task/{names['task']}")
    assert page.status == 200
    assert "cpu_ratio" in page.text
    assert f"/jobs?where=task_id%3D{names['task']}" in page.text
    assert client.get("/task/nobody's").status == 404
    assert 'href="/task/' in client.get(f"/queue/{names['queue']}").text


def test_a_job_leads_to_its_name_its_user_and_jobs_like_it(open_web: Opened, tmp_path: Path) -> None:
    path = tmp_path / "jobs.duckdb"
    shapes = {"a": [busy(0.9)], "b": [busy(0.8)], "c": [busy(0.1)]}
    with esjobs.open(f"duckdb:{path}") as session:
        put_records(
            session,
            tmp_path,
            [
                record(name, job_name="che/m, 2", start=START + timedelta(days=number))
                for number, name in enumerate(shapes)
            ],
        )
        put_series(session, {name: cores(each) for name, each in shapes.items()})
    web = open_web(path)
    page = web.get("/job/c").text
    links = {
        html.unescape(title): html.unescape(address)
        for address, title in re.findall(r'<a href="([^"]+)">([^<]+)</a>', page)
    }
    assert links["a"] == "/job/a"
    assert web.get(links["b"]).status == 200
    assert {"Queue batch", "User alice", "Project phys"} <= set(links)
    assert web.get(links["User alice"]).status == 200
    assert {"/job/a", "/job/b", "/job/c"} <= set(
        re.findall(r'href="(/job/.)"', web.get(links["Jobs named che/m, 2"]).text)
    )
    similar = web.get(links["Similar jobs"])
    assert re.findall(r'href="/job/(.)"', similar.text) == ["b", "a"]
    assert "Earlier runs" not in web.get("/job/a").text
    assert web.get("/similar?job=nobody").status == 200
