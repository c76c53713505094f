"""The commands that bring dashboards into a server and out of it, with the bundles of this version."""

import base64
import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from esjobs.cli.main import main
from esjobs.render.bundles import TARGETS, bundle_of
from tests.dashboards.servers.stand_in import StandIn, standing_in
from tests.messages import compare_text


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["--store", "duckdb::memory:", *arguments], catch_exceptions=False)


def ids(target: str) -> set[tuple[str, str]]:
    lines = map(json.loads, bundle_of(target).splitlines())
    return {(line["type"], line["id"]) for line in lines if "type" in line}


@pytest.fixture
def kibana() -> Iterator[StandIn]:
    with standing_in(StandIn()) as server:
        yield server


def test_kibana_gets_its_bundle_and_loses_it_again(kibana: StandIn) -> None:
    other = ("dashboard", "esjobs-dashboard-of-somebody")
    kibana.has().add(other)
    dry = run("dashboards", "import", "--url", kibana.url, "--dry-run")
    assert (dry.exit_code, kibana.has()) == (0, {other})
    compare_text(dry.stderr)
    done = run("dashboards", "import", "--url", kibana.url, "--format", "json")
    assert done.exit_code == 0
    assert kibana.has() == ids("kibana") | {other}
    assert {(row["type"], row["id"]) for row in json.loads(done.stdout)} == ids("kibana")
    compare_text(done.stderr)
    again = run("dashboards", "import", "--url", kibana.url, "--target", "portable")
    assert (again.exit_code, kibana.has()) == (0, ids("kibana") | ids("portable") | {other})
    gone = run("dashboards", "remove", "--url", kibana.url)
    assert (gone.exit_code, kibana.has()) == (0, {other})


def test_opensearch_dashboards_gets_the_other_bundle() -> None:
    with standing_in(StandIn(name="osd", version="3.3.0")) as server:
        assert run("dashboards", "import", "--url", server.url).exit_code == 0
        assert server.has() == ids("portable")
        refused = run("dashboards", "import", "--url", server.url, "--target", "kibana")
        assert refused.exit_code == 2
        compare_text(refused.stderr)
        assert run("dashboards", "remove", "--url", server.url).exit_code == 0
        assert server.has() == set()


@pytest.mark.parametrize("target", TARGETS)
def test_a_second_space_gets_ids_of_its_own(kibana: StandIn, target: str) -> None:
    run("dashboards", "import", "--url", kibana.url, "--target", target)
    arguments = ("--url", kibana.url, "--space", "grid", "--prefix", "second")
    assert run("dashboards", "import", *arguments, "--target", target).exit_code == 0
    moved = {(type_, id_.replace("esjobs-", "second-", 1)) for type_, id_ in ids(target)}
    assert kibana.has("grid") == moved
    assert kibana.has() == ids(target)
    sent = next(
        body for _, path, _, body in kibana.requests if path.startswith("/s/grid/") and b"ndjson" in body
    )
    assert b"esjobs-latest-flags" in sent
    assert not any(id_.encode() in sent for _, id_ in ids(target))
    assert run("dashboards", "remove", *arguments).exit_code == 0
    assert kibana.has("grid") == set()


def test_an_object_that_is_refused_is_an_exit_code_and_a_sentence(kibana: StandIn) -> None:
    key = ("dashboard", "esjobs-dashboard-sites")
    kibana.refuses[key] = {"type": "missing_references", "references": [{"type": "tag", "id": "t"}]}
    result = run("dashboards", "import", "--url", kibana.url)
    assert result.exit_code == 1
    assert "refers to tag/t" in result.stdout.splitlines()[1]
    compare_text(result.stderr)
    assert "Traceback" not in result.output


def test_credentials_of_the_address_and_of_the_cluster(
    kibana: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = kibana.url.replace("http://", "http://me:s%40cret@")
    result = run("dashboards", "import", "--url", address)
    assert result.exit_code == 0
    assert "cret" not in result.output
    expected = "Basic " + base64.b64encode(b"me:s@cret").decode()
    assert {headers["authorization"] for *_, headers, _ in kibana.requests} == {expected}
    kibana.requests.clear()
    monkeypatch.setenv("ESJOBS_CLUSTER__API_KEY", "bGFyZ2Utc2VjcmV0")
    run("dashboards", "import", "--url", kibana.url, "--dry-run")
    assert {headers["authorization"] for *_, headers, _ in kibana.requests} == {"ApiKey bGFyZ2Utc2VjcmV0"}
    both = run("dashboards", "import", "--url", address)
    assert both.exit_code == 1
    compare_text(both.stderr)
    assert "cret" not in both.output


def test_setup_brings_the_dashboards_too(kibana: StandIn) -> None:
    result = run("setup", "--dashboards", kibana.url)
    assert result.exit_code == 0, result.output
    assert kibana.has() == ids("kibana")
    kibana.faults["POST /api/saved_objects/_import"] = kibana.error(403, "no")
    refused = run("setup", "--dashboards", kibana.url)
    assert refused.exit_code == 1
    compare_text(refused.stderr)


def test_rules_are_made_by_a_command_and_removed_with_the_dashboards(kibana: StandIn) -> None:
    dry = run("dashboards", "rules", "--url", kibana.url, "--dry-run")
    assert (dry.exit_code, kibana.rules) == (0, {})
    compare_text(dry.stderr)
    done = run("dashboards", "rules", "--url", kibana.url, "--format", "json")
    assert done.exit_code == 0
    assert {row["id"] for row in json.loads(done.stdout)} == set(kibana.rules)
    compare_text(done.stderr)
    names = sorted(rule["name"] for rule in kibana.rules.values())
    assert names == [
        "esjobs: a deviation is newly confirmed",
        "esjobs: a night failed or is missing",
        "esjobs: no verdicts for 2 days",
    ]
    gone = run("dashboards", "remove", "--url", kibana.url)
    assert (gone.exit_code, kibana.rules) == (0, {})
    kibana.faults["POST /api/alerting"] = kibana.error(400, "missing encryption key")
    refused = run("dashboards", "rules", "--url", kibana.url)
    assert refused.exit_code == 1
    assert "encryptionKey" in refused.stdout
    compare_text(refused.stderr)


def test_mistakes(kibana: StandIn) -> None:
    for arguments in (
        ("--url", "localhost"),
        ("--url", kibana.url, "--prefix", "No Such"),
        ("--url", kibana.url, "--space", "no"),
    ):
        result = run("dashboards", "import", *arguments)
        assert result.exit_code in (1, 2)
        compare_text(result.stderr)
        assert "Traceback" not in result.output
    assert kibana.has() == set()
