"""Who may: every address with every method for every role, headers that lie, and what a site sees."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from esjobs.entry import load
from esjobs.flags.answering.journal import Journal
from esjobs.flags.answering.night import enter
from esjobs.flags.answering.settings import WebSettings
from esjobs.settings import Settings
from esjobs.web.access import (
    _BURST,
    ROLES,
    Access,
    Limits,
    Reader,
    Role,
    TooManyError,
    digest_of,
    new_token,
)
from esjobs.web.request import Route
from esjobs.web.server import web_of
from esjobs.web.table import ACTS, PAGES, ROWS
from tests.web.client import Client
from tests.web.test_routes import address

NOW = datetime(2025, 7, 2, 9, tzinfo=UTC)
BASE = "https://grid.example"
OWN, QUEUE, OTHER = "CHERRY-T2", "CHERRY-T2_UCORE", "ELM-T2"
TOKENS = {name: new_token() for name in ("grafana", "site", "old")}
CONFIG = f"""
[web]
base_url = "{BASE}"
key_file = "KEYS"
trusted_proxies = ["10.1.0.0/16", "::1"]
PUBLIC
[[web.roles]]
group = "poplar"
role = "site"
sites = ["{OWN}"]
[[web.roles]]
group = "support"
role = "support"
[[web.roles]]
group = "coordinators"
role = "coordinator"
[[web.roles]]
group = "admins"
role = "admin"
[[web.tokens]]
name = "grafana"
sha256 = "{digest_of(TOKENS["grafana"])}"
until = 2025-07-02
[[web.tokens]]
name = "site"
sha256 = "{digest_of(TOKENS["site"])}"
until = 2030-01-01
role = "site"
sites = ["{OWN}"]
[[web.tokens]]
name = "old"
sha256 = "{digest_of(TOKENS["old"])}"
until = 2025-07-01
"""
GROUPS: dict[Role, str] = {
    "nobody": "others",
    "site": "poplar",
    "support": "support",
    "coordinator": "coordinators",
    "admin": "admins",
}


def settings_in(folder: Path, store: Path, public: str = "") -> Settings:
    keys = folder / "keys"
    keys.write_text("k" * 40)
    config = folder / "esjobs.toml"
    config.write_text(CONFIG.replace("KEYS", str(keys)).replace("PUBLIC", public))
    return load(config, f"duckdb:{store}")


@pytest.fixture(scope="module")
def settings(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("access")
    return settings_in(folder, Path(shutil.copy(store, folder / "jobs.duckdb")))


@pytest.fixture(scope="module")
def proxied(settings: Settings) -> Iterator[Client]:
    """The web behind a proxy at 10.1.2.3."""
    web = web_of(settings, public=False, clock=lambda: NOW)
    with Client(web.application({"localhost"})) as client:
        client.peer = "10.1.2.3"
        yield client
    web._shelf.close()
    if web._hidden is not None:
        web._hidden.close()


def headers(role: Role) -> dict[str, str]:
    return {"x_forwarded_user": f"ann-{role}", "x_forwarded_groups": f"a, {GROUPS[role]}"}


ROUTES = [
    each for each in (*PAGES, *ACTS, *ROWS) if each.pattern not in ("/pages/{folder}/{part}", "/a/{token}")
]


@pytest.mark.parametrize("route", ROUTES, ids=lambda each: f"{each.method} {each.pattern}")
def test_every_address_for_every_role(proxied: Client, client: Client, route: Route) -> None:
    where = address(client, route) if route.method == "GET" else route.pattern
    for role in GROUPS:
        # the limit of acts is another test
        who = {**headers(role), "x_forwarded_for": f"192.0.2.{ROLES.index(role)}"}
        may = ROLES.index(role) >= ROLES.index(route.role)
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
            usual = {"sec_fetch_site": "same-origin", "content_type": "application/x-www-form-urlencoded"}
            got = proxied.get(where, method, **who, **usual)
            served = method == route.method or (method == "HEAD" and route.method == "GET")
            if not served:
                assert got.status == 405, (role, method)
            elif not may:
                assert got.status == 403, (role, method)
            elif role == "site":
                # names of other queues lead nowhere
                assert got.status in (200, 400, 404), (role, method)
            else:
                assert got.status == (200 if route.method == "GET" else 404), (role, method)


def test_a_program_reads_with_its_token_from_anywhere(proxied: Client) -> None:
    def asked(secret: str, where: str, method: str = "GET", **more: str) -> int:
        return proxied.get(where, method, authorization=f"Bearer {secret}", **more).status

    try:
        proxied.peer = "192.0.2.7"
        assert asked(TOKENS["grafana"], "/api/v1/jobs?limit=1") == 200
        assert asked(TOKENS["grafana"], "/user/analyst-a") == 200
        assert asked(TOKENS["site"], "/user/analyst-a") == 403
        assert asked(TOKENS["site"], f"/queue/{QUEUE}") == 200
        assert asked(TOKENS["site"], f"/queue/{OTHER}") == 404
        form = {"sec_fetch_site": "same-origin", "content_type": "application/x-www-form-urlencoded"}
        assert asked(TOKENS["grafana"], "/acknowledge", "POST", **form) == 403
        for secret in (TOKENS["old"], new_token(), "esj_", TOKENS["grafana"][:-1], TOKENS["grafana"] + "a"):
            refused = proxied.get("/api/v1/flags", authorization=f"Bearer {secret}")
            assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
            assert len(secret) < 10 or secret not in refused.text
            # no page for everybody either: who shows a token means to be somebody
            assert asked(secret, "/health") == 401
        # tokens of others are the proxy's affair
        assert asked("eyJhbGciOi", "/health") == 200
        assert proxied.get("/", authorization=f"Basic {TOKENS['grafana']}").status == 403
    finally:
        proxied.peer = "10.1.2.3"


def test_settings_have_the_digest_only(tmp_path: Path) -> None:
    from tests.cli.running import run

    printed = run("web", "--new-token", 'a "b"').stdout
    token, _, *lines = printed.splitlines()
    assert token not in "\n".join(lines)
    config = tmp_path / "esjobs.toml"
    config.write_text("\n".join(lines))
    (stored,) = load(config, "duckdb::memory:").section(WebSettings).tokens
    assert (stored.name, stored.sha256, stored.role) == ('a "b"', digest_of(token), "support")


def test_headers_of_others_count_nothing(proxied: Client) -> None:
    user = {"x_forwarded_user": "ann", "x_forwarded_groups": "admins"}
    assert proxied.get("/user/analyst-a", **user).status == 200
    try:
        for peer in ("10.2.0.1", "127.0.0.1", "192.0.2.1", "", "::2", "fe80::1%eth0", "::ffff:10.2.0.1"):
            proxied.peer = peer
            for more in ({}, {"x_forwarded_for": "10.1.2.3"}, {"x_real_ip": "10.1.2.3"}):
                assert proxied.get("/user/analyst-a", **user, **more).status == 403, peer
                assert proxied.get("/", **user, **more).status == 403, peer
            assert proxied.get("/health", **user).status == 200
        for peer in ("::1", "::ffff:10.1.2.3"):
            proxied.peer = peer
            assert proxied.get("/user/analyst-a", **user).status == 200, peer
    finally:
        proxied.peer = "10.1.2.3"
    assert proxied.get("/", x_forwarded_groups="admins").status == 403
    assert (
        proxied.get("/user/analyst-a", x_forwarded_user="ann", x_auth_request_groups="admins").status == 403
    )


def test_a_header_that_stands_twice_is_none() -> None:
    access = Access(WebSettings(trusted_proxies=("10.0.0.0/8",)), public=False)
    scope = {"client": ("10.0.0.1", 1), "headers": [(b"x-forwarded-user", b"ann")] * 2}
    assert access.reader(scope) == Reader("nobody")
    scope["headers"] = [(b"x-forwarded-user", b"ann")]
    assert access.reader(scope).name == "ann"


def test_a_site_sees_its_own_queues(proxied: Client) -> None:
    mine = headers("site")
    assert proxied.get(f"/site/{OWN}", **mine).status == 200
    assert proxied.get(f"/queue/{OTHER}", **mine).status == 404
    assert OTHER not in proxied.get("/", **mine).text
    for name in ("flags", "factors", "incidents", "queues", "sites", "jobs", "delivered"):
        own = proxied.get(f"/api/v1/{name}?limit=1000", **mine)
        rows = own.json["rows"]
        assert rows or name == "incidents", name
        assert not [row for row in rows if OTHER in map(str, row.values())], name
        named = {str(row[key]) for row in rows for key in ("queue", "name", "site") if row.get(key)}
        assert all(each.startswith(OWN) for each in named), name
        everybody = proxied.get(f"/api/v1/{name}?limit=1000", **headers("support"))
        assert len(everybody.json["rows"]) >= len(rows), name
        assert own.headers["etag"] != everybody.headers["etag"]
        # an answer for one reader is never taken for that of another
        assert (
            proxied.get(f"/api/v1/{name}?limit=1000", if_none_match=everybody.headers["etag"], **mine).status
            == 200
        )
    assert "user" not in proxied.get("/api/v1/jobs?limit=1", **mine).json["rows"][0]
    for where in ("/pages/sites.html", "/ask?by=queue", "/jobs"):
        assert OTHER not in proxied.get(where, **mine).text, where


def test_nobody_public_and_this_machine(store: Path, tmp_path: Path) -> None:
    for public, status in (("", 403), ("public = true", 200)):
        file = Path(shutil.copy(store, tmp_path / "jobs.duckdb"))
        web = web_of(settings_in(tmp_path, file, public), public=bool(public), clock=lambda: NOW)
        with Client(web.application({"localhost"})) as client:
            assert client.get("/").status == status
            assert client.get("/user/analyst-a").status == 403
            if public:
                assert client.get("/jobs").headers["cache-control"] == "private, no-cache"
                assert "user" not in client.get("/api/v1/jobs?limit=1").json["rows"][0]
        web._shelf.close()
        assert web._hidden is not None
        web._hidden.close()


def test_an_acknowledgement(proxied: Client, settings: Settings) -> None:
    who, form = headers("coordinator"), {"level": "queue", "name": QUEUE, "text": "a <b> benchmark runs"}
    page = proxied.get(f"/queue/{QUEUE}", **who).text
    assert 'action="/acknowledge"' in page
    assert 'action="/acknowledge"' not in proxied.get(f"/queue/{QUEUE}", **headers("support")).text
    refused = {**who, "sec_fetch_site": "cross-site"}
    assert proxied.send("/acknowledge", {**form, "until": "2025-08-01"}, **refused).status == 403
    nowhere = {**who, "sec_fetch_site": "", "origin": "null"}
    assert proxied.send("/acknowledge", {**form, "until": "2025-08-01"}, **nowhere).status == 403
    for wrong in ({"until": "2025-01-01"}, {"until": "soon"}, {"until": "2025-08-01", "text": " "}):
        assert proxied.send("/acknowledge", {**form, **wrong}, **who).status == 400, wrong
    done = proxied.send("/acknowledge", {**form, "until": "2025-08-01"}, **who)
    assert (done.status, done.headers["location"]) == (303, f"/queue/{QUEUE}")
    assert "a &lt;b&gt; benchmark runs" in proxied.get(f"/queue/{QUEUE}", **who).text
    path = settings.section(WebSettings).journal_of(settings.location)
    assert path is not None
    (entry,) = Journal(path).read()
    assert (entry["kind"], entry["entered_by"], entry["until"]) == ("ack", "ann-coordinator", "2025-08-01")


def test_an_acknowledgement_in_the_store(settings: Settings, tmp_path: Path) -> None:
    import esjobs

    file = Path(shutil.copy(settings.location.removeprefix("duckdb:"), tmp_path / "jobs.duckdb"))
    journal = Journal(Path(f"{file}.entered.jsonl"))
    entry = {
        "kind": "ack",
        "level": "queue",
        "processing_type": None,
        "name": QUEUE,
        "entered_by": "ann",
        "at": NOW.isoformat(),
        "until": "2025-08-01",
        "text": "new nodes",
        "before": "open",
        "after": "x",
    }
    journal.append(entry)
    with esjobs.open(settings=settings_in(tmp_path, file)) as session:
        night = session.flags.open().rows.column("night")[0].as_py()
        enter(session.store, journal.read(), night)
        session.flags.update(night)
        (flag,) = [each for each in session.flags.open().rows.to_pylist() if each["name"] == QUEUE]
    assert (flag["state"], flag["acknowledged_by"], flag["note"]) == ("acknowledged", "ann", "new nodes")
    web = web_of(settings_in(tmp_path, file), public=False, clock=lambda: NOW)
    with Client(web.application({"localhost"})) as client:
        client.peer = "10.1.2.3"
        acts = client.get(f"/queue/{QUEUE}", **headers("coordinator")).text
        assert ">Acts<" in acts
        assert ">Acts<" not in client.get(f"/queue/{QUEUE}", **headers("support")).text
        assert "new nodes" not in client.get(f"/queue/{QUEUE}", **headers("site")).text
    web._shelf.close()
    assert web._hidden is not None
    web._hidden.close()


def test_peers_are_counted_in_bounded_memory() -> None:
    limits = Limits()
    for number in range(10_000):
        limits.take(f"peer {number}", 0.0)
    assert len(limits._peers) <= 4096
    for _ in range(int(_BURST)):
        limits.take("one", 1.0)
    with pytest.raises(TooManyError):
        limits.take("one", 1.0)
    limits.take("one", 4.0)
    access = Access(WebSettings(trusted_proxies=("10.0.0.1/32",)), public=False)
    scope = {"client": ("10.0.0.1", 1), "headers": [(b"x-forwarded-for", b"1.1.1.1, 2001:db8::1:2:3:4")]}
    assert access.peer(scope) == "2001:db8::/64"
    assert access.peer({**scope, "client": ("10.0.0.2", 1)}) == "10.0.0.2"
