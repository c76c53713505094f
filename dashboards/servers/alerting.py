"""Rules of Kibana that raise an alert over our results: made, brought up to date, taken out, by fixed ids.

A rule is an Elasticsearch query on a schedule. Whom it tells is for people to add in Kibana; a rule that is
brought up to date keeps its actions. Nothing that is not named here is read or changed.
"""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.servers.bundle import SavedObject
from dashboards.servers.client import Answer, Client
from dashboards.servers.outcome import Outcome
from dashboards.servers.product import Server
from dashboards.servers.spaces import path_of
from esjobs.core.errors import DashboardsError, UsageError
from esjobs.core.words import ALL_TYPES, CONFIRMED

# The window of a rule: a night is over when the next day has begun, and its run takes hours
LOOKED_BACK_DAYS = 2
EVERY = "1h"  # Interval of a rule

Body = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """Condition of an alert: documents of an index in the last days, at least one or none.

    ``slug``: tells rules of one prefix apart; id and name never change. ``few``: an alert where there is no
    such document, rather than where there is one.
    """

    slug: str
    title: str
    index: str
    time: str
    query: Body
    few: bool = False

    def named(self, prefix: str) -> SavedObject:
        """The rule as an object with a name; its id is the same for the same prefix, in the shape of a UUID.

        Kibana takes no other ids of rules.
        """
        digest = hashlib.sha256(f"{prefix}/rule/{self.slug}".encode()).digest()
        # version 4 is that of random ids: Kibana checks the shape, not where the bits come from
        return SavedObject("rule", str(uuid.UUID(bytes=digest[:16], version=4)), f"{prefix}: {self.title}")

    def body(self, prefix: str, indices: str) -> Body:
        """Return the fields common to creation and update of the rule; ``indices``: prefix of indices."""
        return {
            "name": self.named(prefix).title,
            "tags": [prefix],
            "schedule": {"interval": EVERY},
            "params": {
                "searchType": "esQuery",
                "index": [f"{indices}-{self.index}"],
                "timeField": self.time,
                # a text: Kibana parses it when the rule runs
                "esQuery": json.dumps({"query": self.query}, sort_keys=True),
                # documents that the alert shows; how many there are is counted in any case
                "size": 100,
                "timeWindowSize": LOOKED_BACK_DAYS,
                "timeWindowUnit": "d",
                "threshold": [1 if self.few else 0],
                "thresholdComparator": "<" if self.few else ">",
                "aggType": "count",
                "groupBy": "all",
                # the same document raises one alert, not one an hour
                "excludeHitsFromPreviousRun": not self.few,
            },
        }


def _terms(**values: Any) -> list[Body]:
    return [{"term": {name: value}} for name, value in values.items()]


def rules(method: str) -> tuple[Rule, ...]:
    """All of them; ``method``: whose verdicts people see."""
    of_queues = _terms(level="queue", processing_type=ALL_TYPES, method=method)
    return (
        Rule(
            "new-confirmed",
            "a deviation is newly confirmed",
            "latest-flags",
            "window_end",
            {
                "bool": {
                    "filter": [*of_queues, *_terms(confirmed=True)],
                    # one that was confirmed in the run before has had its alert
                    "must_not": _terms(status_shown_before=CONFIRMED),
                }
            },
        ),
        Rule(
            "missing-night",
            f"no verdicts for {LOOKED_BACK_DAYS} days",
            "runs",
            "window_end",
            {"bool": {"filter": _terms(step="flag", scope="all")}},
            few=True,
        ),
        Rule(
            "failed-night",
            "a night failed or is missing",
            "nights",
            "night",
            {"bool": {"filter": [{"terms": {"state": ["failed", "missing"]}}]}},
        ),
    )


def set_rules(
    client: Client,
    server: Server,
    wanted: Sequence[Rule],
    *,
    prefix: str,
    indices: str,
    space: str | None = None,
    dry_run: bool = False,
) -> list[Outcome]:
    """Make the rules, or bring those that are there up to date; what is refused is said, the rest goes on.

    Raises :class:`UsageError` for a product without them, :class:`DashboardsError` when the server does not
    say what it has.
    """
    if not server.kibana:
        raise UsageError(
            f"{server} has no rules of Kibana; use monitors of its alerting plugin, see docs/dashboards.md"
        )
    path = path_of(client, server, space)
    outcomes = []
    for rule in wanted:
        one = rule.named(prefix)
        stored = _stored(client, server, path, one)
        if not dry_run:
            answer = _write(client, server, path, rule.body(prefix, indices), one, stored)
            if answer.status != 200:
                outcomes.append(Outcome(one, "failed", _why(client, answer)))
                continue
        outcomes.append(Outcome(one, "new" if stored is None else "replaced"))
    return outcomes


def remove_rules(
    client: Client,
    server: Server,
    rules: Sequence[Rule],
    *,
    prefix: str,
    space: str | None = None,
    dry_run: bool = False,
) -> list[Outcome]:
    """Take out the rules that are there; those that are not are no outcome: they are optional."""
    if not server.kibana:
        return []
    path = path_of(client, server, space)
    outcomes = []
    for one in (rule.named(prefix) for rule in rules):
        try:
            if _stored(client, server, path, one) is None:
                continue
        except DashboardsError:
            # a user without the right to see rules has made none, and the dashboards go all the same
            continue
        answer = None if dry_run else client.ask("DELETE", _address(path, one), headers=server.headers)
        # Kibana answers 204 without a body
        if answer is None or answer.status in (200, 204):
            outcomes.append(Outcome(one, "removed"))
        else:
            outcomes.append(Outcome(one, "failed", _why(client, answer)))
    return outcomes


def _address(path: str, one: SavedObject) -> str:
    return f"{path}/api/alerting/rule/{one.id}"


def _stored(client: Client, server: Server, path: str, one: SavedObject) -> Mapping[str, Any] | None:
    answer = client.ask("GET", _address(path, one), headers=server.headers)
    if answer.status == 404:
        return None
    found = answer.json()
    if answer.status != 200 or not isinstance(found, dict):
        raise DashboardsError(_why(client, answer))
    return found


def _write(
    client: Client,
    server: Server,
    path: str,
    body: Body,
    one: SavedObject,
    stored: Mapping[str, Any] | None,
) -> Answer:
    if stored is None:
        made = {
            **body,
            "rule_type_id": ".es-query",
            "consumer": "stackAlerts",
            "actions": [],
            "enabled": True,
        }
        return client.ask("POST", _address(path, one), headers=server.headers, body=made)
    kept = [
        # an answer has it, and an update that has it is refused
        {name: value for name, value in action.items() if name != "connector_type_id"}
        for action in stored.get("actions") or ()
        if isinstance(action, dict)
    ]
    return client.ask("PUT", _address(path, one), headers=server.headers, body={**body, "actions": kept})


def _why(client: Client, answer: Answer) -> str:
    said = answer.message()
    # rules hold an API key, which a server without a key of its own cannot encrypt
    if "encryption" in said.lower():
        return (
            f"{client.url} cannot store rules (HTTP {answer.status}: {said}); set "
            "xpack.encryptedSavedObjects.encryptionKey in its kibana.yml"
        )
    if answer.status == 403:
        return (
            f"{client.url}: rule rejected (HTTP 403{': ' + said if said else ''}); grant the role all rights "
            "on Stack Rules (Management) in the space, and read on the indices"
        )
    return str(client.refusal(answer, "the rule"))
