"""Bulk writes: bounded requests, every item's answer looked at."""

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import orjson

from esjobs.store.elastic.cluster import Cluster, RefusedError, refusal

_REQUEST_BYTES = 5_000_000
_TOO_LARGE = 413
_BUSY = 429
_IN_FLIGHT = 2
"""More requests at a time hardly help: what indexes is busy with two."""

_ANSWER = {"filter_path": "errors,items.*.status,items.*.error,items.*._id,items.*._index"}
"""What is read of the answers: a third of them."""

What = TypeVar("What")

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


def write(
    cluster: Cluster, actions: Iterable[Action], *, before: Callable[[], None] | None = None
) -> list[str]:
    """Perform actions in bulk; the ids of documents that ``create`` found there already.

    Raises :class:`RefusedError` for any other item that the cluster refused; what came before it is written.
    """
    present: list[str] = []
    requests = ((lines, None) for lines in parts(map(_line, actions)))
    with contextlib.closing(sent(cluster, requests, before)) as answers:
        for found, _ in answers:
            present += found
    return present


def sent(
    cluster: Cluster,
    requests: Iterable[tuple[list[bytes], What]],
    before: Callable[[], None] | None = None,
) -> Generator[tuple[list[str], What]]:
    """Send bulk requests, two at a time, and yield the answers as they come, in any order.

    ``requests``: lines, and what they are. Answers: ids of documents that ``create`` found there already, and
    what the lines were. ``before`` is called ahead of each request.

    When a request fails no other begins, those under way are waited for, and its error is raised.
    """
    pending: dict[Future[list[str]], What] = {}
    pool = ThreadPoolExecutor(_IN_FLIGHT, "esjobs-bulk")
    try:
        for lines, what in requests:
            if before is not None:
                before()
            pending[pool.submit(_send, cluster, lines)] = what
            if len(pending) >= _IN_FLIGHT:
                yield from _answers(pending)
        while pending:
            yield from _answers(pending)
    finally:
        pool.shutdown(cancel_futures=True)


def _answers(pending: dict[Future[list[str]], What]) -> Iterator[tuple[list[str], What]]:
    """Wait until at least one request is answered."""
    for done in wait(pending, return_when=FIRST_COMPLETED).done:
        yield done.result(), pending.pop(done)


def parts(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Lines cut into requests of at most 5 MB, or of one line."""
    held: list[bytes] = []
    size = 0
    for line in lines:
        if held and size + len(line) > _REQUEST_BYTES:
            yield held
            held, size = [], 0
        held.append(line)
        size += len(line)
    if held:
        yield held


def _line(action: Action) -> bytes:
    head, body = action
    return orjson.dumps(head) + b"\n" + (orjson.dumps(body) + b"\n" if body is not None else b"")


def _send(cluster: Cluster, lines: list[bytes]) -> list[str]:
    try:
        answer = cluster.bulk(b"".join(lines), params=_ANSWER)
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
