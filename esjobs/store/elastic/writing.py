"""Bulk writes: bounded requests, every item's answer looked at."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from esjobs.store.elastic.cluster import Cluster, RefusedError, refusal

_REQUEST_BYTES = 5_000_000
_TOO_LARGE = 413
_BUSY = 429

Action = tuple[Mapping[str, Any], Mapping[str, Any] | None]
"""What to do with which document, and its body (None for a deletion)."""


def create(index: str, name: str, document: Mapping[str, Any]) -> Action:
    """Write a document that must not be there yet."""
    return {"create": {"_index": index, "_id": name}}, document


def index(where: str, name: str, document: Mapping[str, Any]) -> Action:
    """Write a document, whether or not it is there."""
    return {"index": {"_index": where, "_id": name}}, document


def update(index: str, name: str, changes: Mapping[str, Any]) -> Action:
    """Change fields of a document that is there; null takes a field's value away."""
    return {"update": {"_index": index, "_id": name, "retry_on_conflict": 3}}, {"doc": changes}


def delete(index: str, name: str) -> Action:
    """Delete a document; one that is gone already is no error."""
    return {"delete": {"_index": index, "_id": name}}, None


def write(cluster: Cluster, actions: Iterable[Action]) -> list[str]:
    """Perform actions in bulk; the ids of documents that ``create`` found there already.

    Raises :class:`RefusedError` for any other item that the cluster refused; what came before it is written.
    """
    present: list[str] = []
    for lines in _requests(actions):
        present += _send(cluster, lines)
    return present


def _requests(actions: Iterable[Action]) -> Iterator[list[bytes]]:
    held: list[bytes] = []
    size = 0
    for head, body in actions:
        line = orjson.dumps(head) + b"\n" + (orjson.dumps(body) + b"\n" if body is not None else b"")
        if held and size + len(line) > _REQUEST_BYTES:
            yield held
            held, size = [], 0
        held.append(line)
        size += len(line)
    if held:
        yield held


def _send(cluster: Cluster, lines: list[bytes]) -> list[str]:
    try:
        answer = cluster.bulk(b"".join(lines))
    except RefusedError as error:
        if error.status != _TOO_LARGE or len(lines) < 2:
            raise
        half = len(lines) // 2
        return _send(cluster, lines[:half]) + _send(cluster, lines[half:])
    if not answer["errors"]:
        return []
    present = []
    for item in answer["items"]:
        ((kind, result),) = item.items()
        status = result["status"]
        if status < 300 or (kind == "delete" and status == 404):
            continue
        if kind == "create" and status == 409:
            present.append(result["_id"])
            continue
        raise refusal(cluster.location, "a document for", result["_index"], status, result.get("error"))
    return present


def refresh(cluster: Cluster, index: str) -> None:
    """Make what is written visible to searches."""
    cluster.call("POST", f"/{index}/_refresh")
