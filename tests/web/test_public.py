"""``--public``: no name of a person in any format; names that attack are text."""

import json
import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import quote

import duckdb
import pytest

import esjobs
from esjobs.core.personal import is_free_text, kind_of_names
from esjobs.core.text import visible
from esjobs.schema.catalogue import TABLES
from esjobs.web.server import is_loopback, listen_on, serve
from esjobs.web.table import PAGES, ROWS
from tests.dashboards.test_hostile_jobs import NAMES, job
from tests.web.client import Client
from tests.web.conftest import Opened, settings_of

TAINT = "Zoe-Taint"
# Names that fit into addresses
LONGEST = 1000


def stored_with(folder: Path, names: list[str]) -> Path:
    """A store with a job for each name, with scores and issues."""
    file = folder / "jobs.jsonl"
    file.write_text("".join(json.dumps(job(number, name)) + "\n" for number, name in enumerate(names)))
    path = folder / "jobs.duckdb"
    with esjobs.open(f"duckdb:{path}") as session:
        session.ingest("jobs", file)
        session.issues.detect("2026-03-02")
        session.scores.compute("2026-03-02")
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored_with(tmp_path_factory.mktemp("hostile"), list(NAMES))


def everything(client: Client, public: bool = False) -> dict[str, bytes]:
    """Every page and every format of rows, by address."""
    addresses = ["/", "/jobs", "/ask?by=user,project,task_id,application&metric=jobs", "/health"]
    addresses += [
        f"/pages/{name}.html" for name in ("index", "sites", "site", "efficiency", "issues", "trust")
    ]
    addresses += [
        f"{route.pattern}?format={form}" for route in ROWS for form in route.forms if len(route.forms) > 1
    ]
    addresses += [f"/api/v1/query?by=user,project,task_id&format={form}" for form in ("json", "csv", "arrow")]
    addresses += [] if public else ["/pages/people.html"]
    rows = client.get("/api/v1/jobs?limit=20").json["rows"]
    first = [row for row in rows if len(row["job_id"]) < LONGEST]
    addresses += [f"/job/{quote(row['job_id'], safe='')}?source={quote(row['source'])}" for row in first]
    addresses += [f"/queue/{quote(row['queue'], safe='')}" for row in first]
    sites = client.get("/api/v1/sites").json["rows"]
    addresses += [f"/site/{quote(row['site'], safe='')}" for row in sites]
    page = client.get("/pages/efficiency.html").text
    folder = re.search(r'data-folder="([^"]+)"', page)
    assert folder is not None
    parts = ("efficiency-0.js", "issues-0.js", "site-0.js", "trust-0.js", "today-0.js")
    addresses += [f"/pages/{folder[1]}/{part}" for part in parts]
    got = {each: client.get(each) for each in addresses}
    bad = {each: answer.status for each, answer in got.items() if answer.status not in (200, 404)}
    assert bad == {}
    return {each: answer.body for each, answer in got.items()}


def test_no_format_has_a_name_of_a_person(store: Path, open_web: Opened, tmp_path: Path) -> None:
    """A name in every column that may have one, in texts, too."""
    tainted = Path(shutil.copy(store, tmp_path / "tainted.duckdb"))
    n_tainted = 0
    with duckdb.connect(str(tainted)) as opened:
        jobs = ["user", "project", "task_id", "origin_file"]
        values = ", ".join(f"\"{name}\" = '{TAINT}'" for name in jobs)
        opened.execute(f"UPDATE main.jobs SET {values}, executable = '/home/{TAINT}/a.out'")  # noqa: S608
        for table in TABLES:
            people = [c.name for c in table.columns if kind_of_names(c) in ("user", "project", "file")]
            texts = [c.name for c in table.columns if is_free_text(c)] if people else []
            columns = [name for name in (*people, *texts) if name != table.partition]
            if columns:
                n_tainted += len(columns)
                values = ", ".join(f"\"{name}\" = '{TAINT}'" for name in columns)
                opened.execute(f'UPDATE results."{table.name}" SET {values}')  # noqa: S608
        opened.execute(f"UPDATE results.today_days SET mark = 'acknowledged by {TAINT}'")  # noqa: S608
    assert n_tainted > 20
    shown = everything(open_web(tainted))
    assert sum(TAINT.encode() in body for body in shown.values()) > 10
    hidden = everything(open_web(tainted, public=True), public=True)
    assert [where for where, body in hidden.items() if TAINT.lower().encode() in body.lower()] == []


def test_addresses_of_people_lead_nowhere(public: Client) -> None:
    people = [route.pattern for route in PAGES if route.role == "support"]
    assert people
    for where in ("/user/analyst-a", "/project/mc", "/pages/people.html"):
        assert public.get(where).status == 404
    assert "/user/" not in public.get("/jobs").text
    assert public.get("/").headers["cache-control"] == "public, max-age=60"


def test_names_that_attack_are_text(hostile: Path, open_web: Opened) -> None:
    client = open_web(hostile)
    for where, body in everything(client).items():
        if where.startswith("/api/") or where.endswith(".js"):
            continue
        text = body.decode()
        assert "<img" not in text, where
        assert re.findall(r"<script(?! src=|  type=| type=\"application/json\")", text) == [], where
        assert re.findall(r'(?:href|src)="(?!/|#|\.|[a-z-]+\.html|esjobs-pages|https?:)[^"]*"', text) == [], (
            where
        )
        assert not re.search(r"<[^>]*\son[a-z]+=", text), where
    for name in (each for each in NAMES if len(each) < LONGEST):
        page = client.get(f"/queue/{quote(name, safe='')}")
        assert page.status in (200, 404), name
        assert client.get(f"/user/{quote(name, safe='')}").status == 200, name
        found = client.get(f"/job/{quote(name, safe='')}")
        assert found.status == 200, name
        assert visible(name) in unescape(found.text)
    rows = client.get("/api/v1/jobs?format=csv").text
    assert "\n=HYPERLINK" not in rows
    assert "'=HYPERLINK" in rows


def test_who_listens_beyond_this_machine_hides_people(store: Path) -> None:
    with pytest.raises(esjobs.UsageError, match="add --public"):
        serve(settings_of(store), "0.0.0.0:8080", (), public=False, ready=print)
    assert [is_loopback(each) for each in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "grid.example")] == [  # noqa: S104
        *[True] * 3,
        *[False] * 2,
    ]
    assert listen_on("[::1]:80") == ("::1", 80)
    for wrong in ("8080", ":8080", "a:b", "a:0", "a:70000", "a:٣"):
        with pytest.raises(esjobs.UsageError, match="HOST:PORT"):
            listen_on(wrong)
