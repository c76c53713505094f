"""Charts with the answers of a real index in place of their questions."""

import json
from typing import Any

from tests.servers.server import Server

UNSCORED = {
    f"people-{score}-by-{by}"
    for score in ("score-mpi", "score-io", "score-gpu", "score-gpumem")
    for by in ("project", "user")
}
"""Rankings by scores that no job of the demo has: its counters are those of cores."""


def without_context(found: Any) -> Any:
    """A search as a server sends it when its dashboard has no filter and no limits of time."""
    if isinstance(found, dict):
        return {key: without_context(value) for key, value in found.items()}
    if isinstance(found, list):
        return [without_context(each) for each in found if not _of_dashboard(each)]
    return found


def _of_dashboard(clause: Any) -> bool:
    text = json.dumps(clause)
    return text.startswith('"%dashboard_context') or (text.startswith('{"range"') and "%timefilter%" in text)


def answered(spec: Any, server: Server) -> Any:
    """A specification with the answers of the index in place of its questions."""
    if isinstance(spec, list):
        return [answered(each, server) for each in spec]
    if not isinstance(spec, dict):
        return spec
    if "url" in spec:
        named = {"name": spec["name"]} if "name" in spec else {}
        search = without_context(spec["url"]["body"])
        answer = server.json("POST", f"{spec['url']['index']}/_search?ignore_unavailable=true", search)
        taken = spec["format"].get("property")
        return {**named, "values": at(answer, taken) if taken else answer}
    return {key: answered(value, server) for key, value in spec.items()}


def at(bucket: Any, path: str) -> Any:
    """What stands at a path with dots."""
    for part in path.split("."):
        bucket = bucket[part]
    return bucket
