"""Bulk writes: bounded requests, every item checked."""

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

import orjson

from esjobs.store.base import Work
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError, refusal
from esjobs.store.elastic.transport.retry import PassingError

_REQUEST_BYTES = 2_500_000
_TOO_LARGE = 413
_CONFLICT = 409
_NOT_FOUND = 404
# More requests at a time hardly help: what indexes is busy with two
_IN_FLIGHT = 2

# Fields read of the responses: a seventh of them. The subject of an item is in the line that was sent.
_ANSWER = {"filter_path": "took,errors,items.*.status,items.*.error"}

_DELETION = b'{"delete":'

What = TypeVar("What")

Action = tuple[Mapping[str, Any], Mapping[str, Any] | None]
"""Action on one document, and its body (None for a deletion)."""


def create(index: str, name: str, document: Mapping[str, Any]) -> Action:
    """Create a document that must not exist."""
    return {"create": {"_index": index, "_id": name}}, document


def index(where: str, name: str, document: Mapping[str, Any]) -> Action:
    """Write a document."""
    return {"index": {"_index": where, "_id": name}}, document


def update(index: str, name: str, changes: Mapping[str, Any]) -> Action:
    """Change fields of an existing document; null removes a value."""
    return {"update": {"_index": index, "_id": name, "retry_on_conflict": 3}}, {"doc": changes}


def delete(index: str, name: str) -> Action:
    """Delete a document, if present."""
    return {"delete": {"_index": index, "_id": name}}, None


def write(
    cluster: Cluster, actions: Iterable[Action], *, before: Callable[[], None] | None = None
) -> list[str]:
    """Perform actions in bulk; return the ids that ``create`` found present.

    These may include documents of a repeated request. ``before`` runs ahead of each request. Raises
    :class:`RefusedError` for other refusals; earlier items are written.
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
    index: str = "",
) -> Generator[tuple[list[str], What]]:
    """Send bulk requests, two in flight, and yield answers in any order.

    Yields the ids that ``create`` found present, and the label of the request. ``before`` runs ahead of each
    attempt, one thread at a time. ``index``: that of lines which name none. After a failure no further
    request starts.
    """
    pending: dict[Future[list[str]], What] = {}
    pool = ThreadPoolExecutor(_IN_FLIGHT, "esjobs-bulk")
    lock = Lock()

    def alone() -> None:
        with lock:
            if before is not None:
                before()

    try:
        for lines, what in requests:
            pending[pool.submit(send, cluster, lines, alone, index)] = what
            if len(pending) >= _IN_FLIGHT:
                yield from _answers(pending)
        while pending:
            yield from _answers(pending)
    finally:
        pool.shutdown(cancel_futures=True)


def _answers(pending: dict[Future[list[str]], What]) -> Iterator[tuple[list[str], What]]:
    for done in wait(pending, return_when=FIRST_COMPLETED).done:
        yield done.result(), pending.pop(done)


def parts(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield requests of at most 2.5 MB, or of one line."""
    part: list[bytes] = []
    size = 0
    for line in lines:
        if part and size + len(line) > _REQUEST_BYTES:
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield part


def _line(action: Action) -> bytes:
    head, body = action
    return orjson.dumps(head) + b"\n" + (orjson.dumps(body) + b"\n" if body is not None else b"")


@dataclass
class _Outcome:
    """Result of a request: present ids, items to repeat, reason."""

    present: list[str] = field(default_factory=list)
    again: list[bytes] = field(default_factory=list)
    reason: RefusedError | None = None


def send(
    cluster: Cluster, lines: Sequence[bytes], before: Callable[[], None] | None = None, index: str = ""
) -> list[str]:
    """Send items, split if too large, rejected ones repeated; return the ids found present."""
    present: list[str] = []
    left = list(lines)

    def once() -> None:
        nonlocal left
        try:
            if before is not None:
                before()
            outcome = _once(cluster, left, index)
        except PassingError as error:
            error.passing = False  # it has been repeated as a request
            raise
        present.extend(outcome.present)
        left = outcome.again
        if outcome.reason is not None:
            raise outcome.reason

    try:
        cluster.patiently(once)
    except RefusedError as error:
        if error.status != _TOO_LARGE or len(left) < 2:
            raise
        half = len(left) // 2
        # a proxy or the cluster takes smaller requests only: halves, until they fit
        return [
            *present,
            *send(cluster, left[:half], before, index),
            *send(cluster, left[half:], before, index),
        ]
    return present


def _once(cluster: Cluster, lines: Sequence[bytes], index: str) -> _Outcome:
    items = cluster.bulk(b"".join(lines), index=index, params=_ANSWER)
    outcome = _Outcome()
    if items is None:
        _count(cluster, lines)
        return outcome
    for line, item in zip(lines, items, strict=True):
        ((kind, result),) = item.items()
        status = result["status"]
        # deleting what is gone is done
        if status < 300 or (kind == "delete" and status == _NOT_FOUND):
            continue
        about = orjson.loads(line.partition(b"\n")[0])[kind]
        if kind == "create" and status == _CONFLICT:
            outcome.present.append(about["_id"])
            continue
        where = about.get("_index", index)
        refused = refusal(cluster.location, "a document for", where, status, result.get("error"))
        if not isinstance(refused, RefusedError) or not (refused.passing or status == _CONFLICT):
            raise refused
        # a conflict: the same change, sent before and given up, is just being made
        refused.passing = True
        outcome.again.append(line)
        outcome.reason = refused
    _count(cluster, lines, outcome.again)
    return outcome


def _count(cluster: Cluster, lines: Sequence[bytes], again: Sequence[bytes] = ()) -> None:
    """Count written and deleted documents, without those to be sent again; present ones count as written."""
    repeated = set(again)
    lines = [line for line in lines if line not in repeated]
    n_deleted = sum(line.startswith(_DELETION) for line in lines)
    size = sum(map(len, lines))
    cluster.meter.add(Work(rows_written=len(lines) - n_deleted, rows_deleted=n_deleted, bytes_written=size))


def refresh(cluster: Cluster, index: str) -> None:
    """Make documents that were written visible to searches."""
    cluster.call("POST", f"/{index}/_refresh")
