"""Imports and removals against a server that misbehaves in the ways that servers and proxies were seen to."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dashboards.servers import (
    Bundle,
    Client,
    Login,
    Outcome,
    import_bundle,
    plan_import,
    plan_removal,
    read_bundle,
    recognise,
    remove_bundle,
)
from esjobs.core.errors import DashboardsError, EsjobsError, InputError, UsageError
from tests.dashboards.servers.stand_in import Reply, StandIn, late, standing_in
from tests.messages import raised

VIEW, CHART, PAGE = ("index-pattern", "d"), ("visualization", "v"), ("dashboard", "p")
OTHER = ("dashboard", "someone-elses")
PAGE_OF_LOGIN = (200, {"content-type": "text/html"}, b"<!doctype html><form>log in</form>")


def _line(key: tuple[str, str], *needs: tuple[str, str]) -> str:
    references = [{"type": type_, "id": id_, "name": "n"} for type_, id_ in needs]
    return json.dumps(
        {"type": key[0], "id": key[1], "attributes": {"title": key[1]}, "references": references}
    )


def _bundle(*lines: str) -> Bundle:
    chosen = lines or (_line(VIEW), _line(CHART, VIEW), _line(PAGE, CHART))
    return read_bundle("\n".join(chosen).encode(), "b.ndjson")


@pytest.fixture
def kibana() -> Iterator[StandIn]:
    with standing_in(StandIn()) as server:
        server.has().add(OTHER)
        yield server


def _import(server: StandIn, space: str | None = None, login: Login | None = None) -> list[Outcome]:
    with Client(server.url, login, timeout_s=5) as client:
        return import_bundle(client, recognise(client), _bundle(), space)


def _states(outcomes: list[Outcome]) -> list[str]:
    return [one.state for one in outcomes]


def _told(error: pytest.ExceptionInfo[EsjobsError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_an_import_is_said_object_by_object_and_can_be_repeated(kibana: StandIn) -> None:
    with Client(kibana.url) as client:
        server = recognise(client)
        assert _states(plan_import(client, server, _bundle())) == ["new"] * 3
        assert kibana.has() == {OTHER}
        assert _states(import_bundle(client, server, _bundle())) == ["new"] * 3
        assert kibana.has() == {VIEW, CHART, PAGE, OTHER}
        assert _states(plan_import(client, server, _bundle())) == ["replaced"] * 3
        assert _states(import_bundle(client, server, _bundle())) == ["replaced"] * 3


def test_a_removal_takes_dashboards_first_and_nothing_of_others(kibana: StandIn) -> None:
    _import(kibana)
    with Client(kibana.url) as client:
        server = recognise(client)
        objects = _bundle().objects
        assert _states(plan_removal(client, server, objects)) == ["removed"] * 3
        assert kibana.has() == {VIEW, CHART, PAGE, OTHER}
        assert _states(remove_bundle(client, server, objects)) == ["removed"] * 3
        assert kibana.has() == {OTHER}
        deleted = [path for method, path, *_ in kibana.requests if method == "DELETE"]
        assert [path.split("/")[3] for path in deleted] == ["dashboard", "visualization", "index-pattern"]
        assert _states(remove_bundle(client, server, objects)) == ["absent"] * 3


def test_ids_that_are_no_path_are_quoted(kibana: StandIn) -> None:
    odd = ("dashboard", "../../status?x=1#y z")
    kibana.has().add(odd)
    with Client(kibana.url) as client:
        server = recognise(client)
        assert _states(remove_bundle(client, server, _bundle(_line(odd)).objects)) == ["removed"]
    assert odd not in kibana.has()


def test_opensearch_dashboards_gets_its_own_header_and_lacks_types() -> None:
    with standing_in(StandIn(name="osd", version="2.8.0")) as server, Client(server.url) as client:
        found = recognise(client)
        assert (str(found), found.target) == ("OpenSearch Dashboards 2.8.0", "portable")
        assert _states(import_bundle(client, found, _bundle())) == ["new"] * 3
        lens = ("lens", "l")
        both = _bundle(_line(lens), _line(VIEW))
        assert _states(plan_removal(client, found, both.objects)) == ["absent", "removed"]
        with raised(UsageError):
            found.require_lens()
        with raised(UsageError):
            plan_import(client, found, _bundle(), "grid")


@pytest.mark.parametrize(
    ("version", "target"),
    [("8.9.0", "portable"), ("8.11.4", "portable"), ("8.12.0", "kibana"), ("9.2.1", "kibana")],
)
def test_versions_of_kibana_get_the_bundle_that_they_take(version: str, target: str) -> None:
    with standing_in(StandIn(version=version)) as server, Client(server.url) as client:
        assert recognise(client).target == target


@pytest.mark.parametrize(("name", "version"), [("kbn", "8.8.2"), ("kbn", "7.17.28"), ("osd", "1.3.0")])
def test_servers_that_are_too_old_are_refused(name: str, version: str) -> None:
    with standing_in(StandIn(name=name, version=version)) as server, Client(server.url) as client:
        with raised(DashboardsError) as error:
            recognise(client)
        assert version in _told(error)


def test_spaces(kibana: StandIn) -> None:
    assert _states(_import(kibana, "grid")) == ["new"] * 3
    assert kibana.has("grid") == {VIEW, CHART, PAGE}
    assert kibana.has() == {OTHER}
    assert _states(_import(kibana, "default")) == ["new"] * 3
    with raised(DashboardsError):
        _import(kibana, "grud")
    with raised(UsageError):
        _import(kibana, "../x")
    kibana.spaces = None
    with raised(DashboardsError):
        _import(kibana, "grid")
    assert set(kibana.objects) <= {"default", "grid"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            {"type": "missing_references", "references": [{"type": "index-pattern", "id": "d"}]},
            "refers to index-pattern/d",
        ),
        ({"type": "unsupported_type"}, "does not support such objects"),
        ({"type": "conflict"}, "another space has an object with this id"),
        ({"type": "ambiguous_conflict", "destinations": []}, "another space has an object with this id"),
        ({"type": "unknown", "statusCode": 400, "message": "strict\nmapping"}, "strict mapping"),
        ({}, "no reason given"),
    ],
)
def test_success_false_is_a_failure_of_that_object(kibana: StandIn, error: dict[str, Any], said: str) -> None:
    kibana.refuses[CHART] = error
    outcomes = _import(kibana)
    assert _states(outcomes) == ["new", "failed", "new"]
    assert said in outcomes[1].reason
    assert "\n" not in outcomes[1].reason


def test_success_that_is_none_is_found(kibana: StandIn) -> None:
    kibana.moves[VIEW] = "another-id"
    kibana.forgets.add(CHART)
    kibana.unnamed.add(PAGE)
    outcomes = _import(kibana)
    assert _states(outcomes) == ["failed"] * 3
    assert "got another id (another-id)" in outcomes[0].reason
    assert "but missing" in outcomes[1].reason
    assert "not in the response" in outcomes[2].reason


@pytest.mark.parametrize(
    "lines",
    [
        [_line(CHART, VIEW)],
        [_line(VIEW), _line(VIEW)],
        ["[1]"],
        ["{"],
        ["[" * 100_000],
        ['{"type": "dashboard"}'],
        ['{"type": "dashboard", "id": "p", "references": [1]}'],
        ['{"exportedCount": 0}'],
        [""],
    ],
)
def test_a_broken_bundle_is_not_sent(lines: list[str]) -> None:
    with raised(InputError) as error:
        read_bundle("\n".join(lines).encode(), "b.ndjson")
    assert "b.ndjson" in _told(error)


def _json(status: int, message: str) -> Reply:
    return StandIn().error(status, message)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (_json(400, "Invalid file extension .json"), "HTTP 400: Invalid file extension"),
        (_json(401, "missing authentication"), "add credentials"),
        (_json(403, "Unable to bulk_create dashboard"), "has no permission"),
        (_json(404, "Not Found"), "check the address"),
        (_json(413, "Payload content length greater"), "raise it"),
        (_json(422, "belongs to a more recent version of Kibana [8.14.0]"), "older than the objects"),
        (_json(429, "slow down"), "retry later"),
        (_json(500, "An internal server error occurred"), "wrote nothing"),
        (_json(503, "License is not available."), "is not ready"),
        ((502, {"content-type": "text/html"}, b"<html>Bad Gateway</html>"), "an HTML page"),
        (PAGE_OF_LOGIN, "an HTML page"),
        ((200, {}, b"not json"), "HTTP 200"),
        ((200, {}, b"[]"), "HTTP 200"),
        (
            (302, {"location": "http://u:secret@elsewhere/login?next=secret"}, b""),
            "redirects to http://elsewhere",
        ),
    ],
)
def test_a_refused_import_is_one_sentence_with_a_way_out(kibana: StandIn, fault: Reply, said: str) -> None:
    kibana.faults["POST /api/saved_objects/_import"] = fault
    with pytest.raises(DashboardsError) as error:
        _import(kibana)
    text = _told(error)
    assert said in text
    assert kibana.url in text
    assert "secret" not in text


@pytest.mark.parametrize("status", [401, 403, 500, 503])
@pytest.mark.parametrize("place", ["GET /api/status", "POST /api/saved_objects/_export", "GET /api/spaces"])
def test_refusals_before_an_import_change_nothing(kibana: StandIn, place: str, status: int) -> None:
    kibana.faults[place] = _json(status, "no")
    with pytest.raises(DashboardsError):
        _import(kibana, "grid")
    assert not any(path.startswith("/s/grid/api/saved_objects/_import") for _, path, *_ in kibana.requests)


def test_a_refused_removal_is_said_and_the_rest_goes_on(kibana: StandIn) -> None:
    _import(kibana)
    kibana.faults["DELETE /api/saved_objects/visualization"] = _json(403, "no")
    kibana.faults["DELETE /api/saved_objects/dashboard"] = _json(400, "shared with several spaces")
    with Client(kibana.url) as client:
        outcomes = remove_bundle(client, recognise(client), _bundle().objects)
    assert _states(outcomes) == ["failed", "failed", "removed"]
    assert "shared with several spaces" in outcomes[0].reason
    assert "has no permission" in outcomes[1].reason


@pytest.mark.parametrize(
    "answer",
    [
        (
            200,
            {"content-type": "application/json"},
            b'{"cluster_name": "x", "version": {"number": "8.19.9"}}',
        ),
        (404, {}, b"{}"),
        (405, {}, b"{}"),
    ],
)
def test_other_servers_are_not_taken_for_one(answer: Reply) -> None:
    with (
        standing_in(StandIn(name="x", faults={"GET /": answer})) as server,
        Client(server.url) as client,
        raised(DashboardsError),
    ):
        recognise(client)


def test_a_version_that_is_hidden_from_strangers_asks_for_credentials(kibana: StandIn) -> None:
    kibana.faults["GET /api/status"] = kibana.json(200, {"status": {"overall": {"level": "available"}}})
    with raised(DashboardsError):
        _import(kibana)


def test_a_page_of_a_proxy_is_called_one(kibana: StandIn) -> None:
    kibana.name = "proxy"
    kibana.faults["GET /api/status"] = PAGE_OF_LOGIN
    with raised(DashboardsError):
        _import(kibana)


def test_slow_servers_do_not_hold_us(kibana: StandIn) -> None:
    kibana.faults["POST /api/saved_objects/_import"] = late(1.5)
    with Client(kibana.url, timeout_s=0.5) as client:
        server = recognise(client)
        with raised(DashboardsError):
            import_bundle(client, server, _bundle())


def test_servers_that_drip_do_not_hold_us(kibana: StandIn) -> None:
    kibana.drips = True
    with Client(kibana.url, timeout_s=0.5) as client, raised(DashboardsError):
        recognise(client)


def test_a_server_that_is_not_there() -> None:
    with standing_in(StandIn()) as server:
        url = server.url
    with Client(url) as client, raised(DashboardsError) as error:
        recognise(client)
    assert "0x" not in _told(error)


def test_credentials_are_sent_and_never_shown(kibana: StandIn) -> None:
    login = Login({"authorization": "ApiKey c2VjcmV0"})
    _import(kibana, login=login)
    assert {headers["authorization"] for _, _, headers, _ in kibana.requests} == {"ApiKey c2VjcmV0"}
    assert "c2VjcmV0" not in repr(login)


def test_nothing_of_the_environment_is_sent(kibana: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert _states(_import(kibana)) == ["new"] * 3


@pytest.mark.parametrize(
    "url",
    ["", "localhost:5601", "ftp://x", "http://", "http://x:y", "http://x/?a=1", "http://[::1", "http://x:0"],
)
def test_addresses_that_are_none(url: str) -> None:
    with raised(UsageError) as error:
        Client(url)
    _told(error)


def test_a_malformed_address_shows_no_password() -> None:
    with pytest.raises(UsageError) as error:
        Client("https://me:secret@host:port/")
    assert "secret" not in _told(error)
