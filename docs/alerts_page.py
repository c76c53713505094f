"""Page of the alerts, from the rules in ``deploy/prometheus/alerts.yaml``."""

from pathlib import Path
from typing import Any

import yaml

_RULES = Path(__file__).parents[1] / "deploy" / "prometheus" / "alerts.yaml"
_HEAD = """# Alerts

{note}
Load `deploy/prometheus/alerts.yaml` into Prometheus and `deploy/prometheus/grafana.json` into Grafana.
Metrics come from `http://127.0.0.1:9464/metrics` of `esjobs serve`; with `serve --once` from the file
`nights.metrics_file`, read by node_exporter, or from the Pushgateway at `nights.push_to`.

| alert | after | do |
|---|---|---|
"""


def alerts_page(note: str) -> str:
    """Return the page: a row for each rule."""
    groups = yaml.safe_load(_RULES.read_text(encoding="utf-8"))["groups"]
    return _HEAD.format(note=note) + "".join(_row(rule) for group in groups for rule in group["rules"])


def _row(rule: dict[str, Any]) -> str:
    notes = rule["annotations"]
    summary = notes["summary"].removesuffix(".")
    return f"| `{rule['alert']}`: {summary} | {rule['for']} | {notes['action']} |\n"
