"""Rules of Kibana against a server that answers as Kibana 8.12 does, and in the ways it may refuse."""

import json
import re
from collections.abc import Iterator

import pytest

from dashboards.servers import Client, Outcome, Rule, recognise, remove_rules, rules, set_rules
from esjobs.core.errors import DashboardsError, UsageError
from tests.dashboards.servers.stand_in import StandIn, standing_in
from tests.messages import raised

RULES = rules("gamma")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""What Kibana takes as the id of a rule."""


@pytest.fixture
def kibana() -> Iterator[StandIn]:
    with standing_in(StandIn()) as server:
        server.rules["11111111-1111-4111-8111-111111111111"] = {"name": "of somebody", "actions": []}
        yield server


def made(server: StandIn, *, prefix: str = "esjobs", dry_run: bool = False) -> list[Outcome]:
    with Client(server.url, timeout_s=5) as client:
        return set_rules(client, recognise(client), RULES, prefix=prefix, indices="esjobs", dry_run=dry_run)


def gone(server: StandIn, *, prefix: str = "esjobs", dry_run: bool = False) -> list[Outcome]:
    with Client(server.url, timeout_s=5) as client:
        return remove_rules(client, recognise(client), RULES, prefix=prefix, dry_run=dry_run)


def states(outcomes: list[Outcome]) -> list[str]:
    return [one.state for one in outcomes]


def test_ids_and_names_are_fixed_and_such_as_kibana_takes() -> None:
    named = [rule.named("esjobs") for rule in RULES]
    assert all(UUID.fullmatch(one.id) for one in named)
    assert named[0].id == "eb48ad09-c56b-4d40-9861-e3959adba199"
    assert len({one.id for one in named}) == len(RULES)
    assert {rule.named("other").id for rule in RULES}.isdisjoint({one.id for one in named})
    assert [one.title for one in named] == [rule.named("esjobs").title for rule in rules("paper")]


def test_rules_are_made_once_and_brought_up_to_date(kibana: StandIn) -> None:
    others = dict(kibana.rules)
    assert states(made(kibana, dry_run=True)) == ["new"] * 3
    assert kibana.rules == others
    assert states(made(kibana)) == ["new"] * 3
    mine = {one: body for one, body in kibana.rules.items() if one not in others}
    assert set(mine) == {rule.named("esjobs").id for rule in RULES}
    assert all(body["enabled"] and body["rule_type_id"] == ".es-query" for body in mine.values())
    assert states(made(kibana)) == ["replaced"] * 3
    assert states(made(kibana, prefix="second")) == ["new"] * 3
    assert len(kibana.rules) == 7


def test_actions_of_people_stay(kibana: StandIn) -> None:
    made(kibana)
    one = RULES[0].named("esjobs").id
    action = {"id": "mail", "group": "query matched", "params": {"to": ["a@b"]}, "uuid": "u"}
    kibana.rules[one]["actions"] = [{**action, "connector_type_id": ".email"}]
    kibana.rules[one]["schedule"] = {"interval": "5s"}
    assert states(made(kibana)) == ["replaced"] * 3
    assert kibana.rules[one]["actions"] == [action]
    assert kibana.rules[one]["schedule"] == {"interval": "1h"}


def test_removal_takes_ours_alone_and_says_nothing_of_what_is_not_there(kibana: StandIn) -> None:
    others = dict(kibana.rules)
    assert gone(kibana) == []
    made(kibana)
    assert states(gone(kibana, dry_run=True)) == ["removed"] * 3
    assert len(kibana.rules) == 4
    assert states(gone(kibana)) == ["removed"] * 3
    assert kibana.rules == others


def test_who_may_not_see_rules_removes_dashboards_all_the_same(kibana: StandIn) -> None:
    kibana.faults["GET /api/alerting/rule"] = kibana.error(403, "no")
    assert gone(kibana) == []
    with raised(DashboardsError):
        made(kibana)


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        (400, "Unable to create rules because the Encrypted Saved Objects plugin is missing encryption key",
         "xpack.encryptedSavedObjects.encryptionKey"),
        (403, "Unauthorized by \"stackAlerts\" to create \".es-query\" rule", "Stack Rules"),
        (409, "conflict", "conflict"),
        (500, "boom", "see its log"),
    ],
)  # fmt: skip
def test_refusals_are_a_sentence_each(kibana: StandIn, status: int, message: str, said: str) -> None:
    kibana.faults["POST /api/alerting/rule"] = kibana.error(status, message)
    outcomes = made(kibana)
    assert states(outcomes) == ["failed"] * 3
    assert all(said in one.reason and "\n" not in one.reason for one in outcomes)
    assert len(kibana.rules) == 1


def test_opensearch_dashboards_has_none() -> None:
    with standing_in(StandIn(name="osd", version="3.3.0")) as server:
        with raised(UsageError):
            made(server)
        assert gone(server) == []
        assert not any("alerting" in path for _, path, *_ in server.requests)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_a_rule_asks_what_kibana_can(rule: Rule) -> None:
    params = rule.body("esjobs", "mine")["params"]
    assert params["index"] == [f"mine-{rule.index}"]
    assert set(json.loads(params["esQuery"])) == {"query"}
    assert (params["thresholdComparator"], params["threshold"]) in ((">", [0]), ("<", [1]))
