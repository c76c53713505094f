"""Metrics outside of the service: a file for node_exporter, a push, and the rules of deploy/."""

import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.condition import WORK, Condition
from scheduler.metrics import Metrics
from scheduler.service import PeriodicTask

DEPLOY = Path(__file__).parents[2] / "deploy" / "prometheus"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SEEN = Condition(
    work={"requests": 40, "requests_failed": 2, "bytes_written": 1e6}, unsent=3, lease_age_s=12.5
)


def values(text: str) -> dict[str, float]:
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in text.splitlines() if line[0] != "#")
    }


@pytest.fixture
def gateway() -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    """A port that takes what is pushed."""
    got: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            got.append((self.command, self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()


def test_a_trigger_leaves_a_file_and_a_push_that_say_the_same(
    tmp_path: Path, gateway: tuple[str, list[tuple[str, str, bytes]]]
) -> None:
    url, got = gateway
    file = tmp_path / "esjobs.prom"
    metrics = Metrics(str(file), url)
    metrics.show(SEEN)
    metrics.triggered(NOON, NOON + timedelta(days=1), ok=True)
    found = values(file.read_text())
    assert found['esjobs_night_work{what="requests"}'] == 40
    assert found['esjobs_night_work{what="requests_failed"}'] == 2
    assert found["esjobs_unsent_messages"] == 3
    assert found["esjobs_lease_age_seconds"] == 12.5
    assert file.stat().st_mode & 0o777 == 0o644
    assert sorted(tmp_path.iterdir()) == [file]
    ((verb, path, body),) = got
    assert (verb, path) == ("PUT", "/metrics/job/esjobs")
    assert values(body.decode()) == found


def test_neither_a_missing_folder_nor_a_gateway_that_is_away_ends_a_trigger(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics(str(tmp_path / "gone" / "esjobs.prom"), "http://127.0.0.1:9")
    metrics.triggered(NOON, None, ok=False)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def names() -> set[str]:
    """Every series that there can be, with the names of its labels."""
    metrics = Metrics()
    PeriodicTask("web", timedelta(1), lambda: None, lambda: NOON, metrics)
    return {sample.name for family in metrics.registry.collect() for sample in family.samples} | {
        family.name for family in metrics.registry.collect()
    }


def expressions() -> list[str]:
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    board = json.loads((DEPLOY / "grafana.json").read_text())
    return [rule["expr"] for group in rules["groups"] for rule in group["rules"]] + [
        target["expr"] for panel in board["panels"] for target in panel.get("targets", ())
    ]


@pytest.mark.parametrize("expression", expressions())
def test_rules_and_board_ask_for_metrics_that_there_are(expression: str) -> None:
    asked = set(re.findall(r"esjobs_\w+", expression))
    assert asked
    assert asked <= names()
    assert set(re.findall(r'what="(\w+)"', expression)) <= {*WORK, "in", "used", "dropped"}


def test_the_board_has_no_two_panels_with_one_number_and_none_over_another() -> None:
    panels = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
