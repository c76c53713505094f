"""Every address of the table, with every method: status, headers, limits, caches."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest

import esjobs
from esjobs.web.request import Route
from esjobs.web.shield import HEADERS, POLICY
from esjobs.web.table import PAGES, ROWS
from tests.web.client import Client

ADDRESSES = {"/pages/{name}": "/pages/sites.html"}


def address(client: Client, route: Route) -> str:
    """An address that a pattern matches and that leads somewhere."""
    if route.pattern in ADDRESSES:
        return ADDRESSES[route.pattern]
    kind = route.pattern.partition("/{name:any}")[0]
    if kind != route.pattern:
        return f"{kind}/{quote(first_name(client, kind.strip('/')), safe='')}"
    if route.pattern == "/pages/{folder}/{part}":
        folder = re.search(r'data-folder="([^"]+)"', client.get("/pages/sites.html").text)
        assert folder is not None
        return f"/pages/{folder[1]}/pages.js"
    if route.pattern == "/static/{name}":
        style = re.search(r'href="(/static/[^"]+)"', client.get("/").text)
        assert style is not None
        return style[1]
    return route.pattern


def first_name(client: Client, kind: str) -> str:
    """The name of the largest of a kind."""
    if kind == "job":
        return str(client.get("/api/v1/jobs?limit=1").json["rows"][0]["job_id"])
    field = {"cpu": "cpu_model", "task": "task_id"}.get(kind, kind)
    rows = client.get(f"/api/v1/query?by={field}").json["rows"]
    return str(next(row[field] for row in rows if row[field]))


@pytest.mark.parametrize("route", [*PAGES, *ROWS], ids=lambda route: route.pattern)
def test_every_address_is_read_and_nothing_else(client: Client, route: Route) -> None:
    where = address(client, route)
    got, head = client.get(where), client.get(where, "HEAD")
    assert (got.status, head.status) == (200, 200)
    assert head.body == b""
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.body))
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        refused = client.get(where, method)
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    assert client.get(f"{where}?nothing=1").status == 400
    for each in (got, head, refused):
        protected(each.headers)


def protected(headers: dict[str, str]) -> None:
    for name, text in HEADERS:
        assert headers[name.decode()] == text.decode()
    assert "server" not in headers


def test_the_policy_admits_nothing_unsafe() -> None:
    assert "unsafe" not in POLICY
    assert "*" not in POLICY


@pytest.mark.parametrize(
    ("where", "more", "status"),
    [
        ("/nowhere", {}, 404),
        ("/site/NOWHERE", {}, 404),
        ("/job/0", {}, 404),
        ("/api/v1/nowhere", {}, 404),
        ("/api/v1/flags?level=planet", {}, 400),
        ("/api/v1/query?metric=beauty", {}, 400),
        ("/api/v1/query?where=beauty%3D1", {}, 400),
        ("/api/v1/jobs?limit=0", {}, 400),
        ("/api/v1/jobs?limit=1&limit=2", {}, 400),
        ("/api/v1/jobs?limit=100000", {}, 400),
        ("/api/v1/jobs?window=sometime", {}, 400),
        ("/api/v1/jobs?cursor=WzFd", {}, 400),
        ("/api/v1/jobs?cursor=%00", {}, 400),
        ("/api/v1/jobs?format=xml", {}, 400),
        ("/api/v1/jobs", {"accept": "image/png"}, 406),
        ("/", {"host": "evil.example"}, 421),
        ("/", {"host": ""}, 421),
        ("/?" + "a" * 9000, {}, 414),
    ],
)
def test_errors_are_short_and_protected(
    client: Client, store: Path, where: str, more: dict[str, str], status: int
) -> None:
    got = client.get(where, **more)
    assert got.status == status
    protected(got.headers)
    assert str(store.parent) not in got.text
    assert "SELECT" not in got.text
    if where.startswith("/api/") and status != 421:
        assert got.headers["content-type"] == "application/problem+json"
        assert got.json["status"] == status


def test_the_cost_of_an_incident(client: Client) -> None:
    site = first_name(client, "site")
    found = client.get(f"/incident?site={quote(site)}&window=2025-06-17/2025-06-20")
    assert found.status == 200
    assert "finished jobs: beyond the usual" in found.text
    assert f'value="{site}"' in found.text
    for where in ("site=NOWHERE&window=2025-06-17/2025-06-20", f"site={site}&window=nonsense"):
        refused = client.get(f"/incident?{where}")
        assert refused.status == 400
        protected(refused.headers)


def test_a_request_has_no_body(client: Client) -> None:
    assert client.get("/", body="x" * 10).status == 413
    assert client.get("/", transfer_encoding="chunked").status == 413
    assert client.get("/", "POST", body="x" * 10).status == 405


def test_an_error_of_the_program_is_protected(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esjobs.web.api.csv_text", None)
    got = client.get("/api/v1/flags?format=csv&level=queue")
    assert got.status == 500
    assert "NoneType" not in got.text
    protected(got.headers)


def test_what_is_unchanged_is_not_sent_again(client: Client) -> None:
    for where in ("/", "/jobs", "/api/v1/flags", "/health"):
        tag = client.get(where).headers["etag"]
        assert tag.startswith('W/"')
        for sent in (tag, f'"other", {tag}', "*", tag.removeprefix("W/")):
            again = client.get(where, if_none_match=sent)
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
            protected(again.headers)
        assert client.get(where, if_none_match='W/"other"').status == 200
    tags = {client.get(f"/api/v1/flags?format={form}").headers["etag"] for form in ("json", "csv", "arrow")}
    assert len(tags) == 3


def test_answers_are_compressed(client: Client) -> None:
    plain, packed = client.get("/jobs"), client.get("/jobs", accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


def test_many_readers_of_a_cold_page_cost_one_computation(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    query = esjobs.Session.query

    def counting(session: esjobs.Session, *arguments: object, **options: object) -> object:
        calls.append(1)
        return query(session, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(esjobs.Session, "query", counting)
    got = client.together(["/api/v1/query?by=week&metric=core_h"] * 50)
    assert {each.status for each in got} == {200}
    assert len({each.body for each in got}) == 1
    assert len(calls) == 1


def test_pages_link_to_pages_that_exist(client: Client) -> None:
    """Of every page the links, of a kind one each."""
    seen: dict[str, str] = {}
    of_names = [f"/{kind}/{quote(first_name(client, kind))}" for kind in ("site", "queue", "user")]
    for page in ("/", "/jobs", "/ask?by=queue", *of_names):
        for link in re.findall(r'<a href="([^"]+)"', client.get(page).text):
            seen.setdefault(link.split("/")[1].split("?")[0], link.replace("&amp;", "&"))
    assert {"site", "queue", "cpu", "job", "jobs", "user", "ask", "pages"} <= seen.keys()
    assert {link: client.get(link).status for link in seen.values()} == dict.fromkeys(seen.values(), 200)


def test_the_list_of_work_leads_to_people_and_jobs(client: Client) -> None:
    page = client.get("/issues")
    assert page.status == 200
    for query in ("by=user,detector&severity=info&sort=n_jobs", "by=job&severity=info", "window=2001-01"):
        assert client.get(f"/issues?{query}").status == 200
    assert client.get("/issues?by=colour").status == 400
    assert client.get("/issues?severity=awful").status == 400


def test_the_description_has_every_address_for_programs(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json
    assert document["openapi"] == "3.1.0"
    assert document["paths"].keys() == {route.pattern for route in ROWS}
    json.dumps(document)


def test_links_of_a_site_with_several_queues_lead_somewhere(client: Client) -> None:
    rows = client.get("/api/v1/query?by=site,queue").json["rows"]
    counts = Counter(row["site"] for row in rows)
    site = max(counts, key=counts.__getitem__)
    assert counts[site] > 1
    page = client.get(f"/site/{quote(site, safe='')}").text
    links = sorted(set(re.findall(r'href="(/(?:queue|cpu|task|site)/[^"#?]+)"', page)))
    assert f"/queue/{quote(rows[[row['site'] for row in rows].index(site)]['queue'])}" in links
    statuses = {each: client.get(each).status for each in links}
    assert set(statuses.values()) == {200}, {each for each, status in statuses.items() if status != 200}


def test_jobs_of_a_page_are_those_of_what_its_name_means(client: Client) -> None:
    """A queue's address with the name of a site of several queues, or in small letters, has jobs, too."""
    rows = client.get("/api/v1/query?by=site,queue").json["rows"]
    counts = Counter(row["site"] for row in rows)
    site = max(counts, key=counts.__getitem__)
    queue = next(row["queue"] for row in rows if row["site"] == site)
    for page in (f"/site/{site}", f"/queue/{site}", f"/queue/{queue}", f"/site/{site.lower()}"):
        (link,) = set(re.findall(r'<a href="(/jobs\?where=[^"&]+)">Jobs', client.get(page).text))
        assert "No jobs" not in (listed := client.get(link.replace("&amp;", "&")).text), page
        assert 'href="/job/' in listed
