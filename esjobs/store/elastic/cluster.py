"""What the parts of this store need of a cluster, and the errors that leave it.

A product's client is one file that implements :class:`Cluster`. Beyond it only points in
time (`scan`) and roles (`setup`) differ by product.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import orjson

from esjobs.core.errors import StoreBusyError, StoreError

Body = Mapping[str, Any]


class RefusedError(StoreError):
    """The cluster answered with an error; ``status`` and ``kind`` say which, for whoever can go on."""

    def __init__(self, message: str, status: int, kind: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class UnreachableError(StoreError):
    """The cluster did not answer."""


class Cluster(ABC):
    """A connection to a cluster. Every error that leaves it is a :class:`StoreError`.

    Safe for use from several threads at once.
    """

    product: str
    """``elasticsearch`` or ``opensearch``."""
    version: str
    location: str

    def call(
        self, method: str, path: str, body: Body | None = None, *, params: Mapping[str, Any] | None = None
    ) -> Any:
        """One request with a JSON body and a JSON answer.

        Raises :class:`RefusedError` when the answer is an error, :class:`UnreachableError` without one.
        """
        try:
            return orjson.loads(self.raw(method, path, body, params=params) or b"null")
        except orjson.JSONDecodeError as error:
            raise no_json(self.location, str(error)) from error

    def raw(
        self, method: str, path: str, body: Body | None = None, *, params: Mapping[str, Any] | None = None
    ) -> bytes | str:
        """One request with a JSON body; the answer as it came, for whoever decodes it faster than `call`."""
        sent = None if body is None else orjson.dumps(body)
        return self._send(method, path, sent, _JSON if sent is not None else {}, params or {})

    def bulk(self, lines: bytes, *, params: Mapping[str, Any] | None = None) -> Any:
        """One ``_bulk`` request of newline-delimited JSON; failures of single items are in the answer."""
        try:
            return orjson.loads(self._send("POST", "/_bulk", lines, _LINES, params or {}))
        except orjson.JSONDecodeError as error:
            raise no_json(self.location, str(error)) from error

    @abstractmethod
    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        params: Mapping[str, Any],
    ) -> bytes | str:
        """Send a request as it is; the body of the answer as it came."""

    @abstractmethod
    def close(self) -> None:
        """Release the connections."""


_JSON = {"content-type": "application/json"}
_LINES = {"content-type": "application/x-ndjson"}


def ask(cluster: Cluster, path: str, *, params: Mapping[str, Any] | None = None) -> Any:
    """The answer to a GET; None when what it asks for is not there."""
    try:
        return cluster.call("GET", path, params=params)
    except RefusedError as error:
        if error.status == _NOT_FOUND:
            return None
        raise


_NOT_FOUND = 404

_WAYS_OUT: dict[str, str] = {
    "cluster_block_exception": "the cluster blocks writes (is a disk too full?); mend that and run it again",
    "security_exception": "name another user, or give this one the role that 'esjobs setup' prints",
    "index_not_found_exception": "run 'esjobs setup', or name the jobs' index",
    "es_rejected_execution_exception": "the cluster is overloaded; run it again later",
    "circuit_breaking_exception": "the cluster lacks memory; run it again later or for fewer days at a time",
    "too_many_buckets_exception": "raise search.max_buckets, or run it for fewer days at a time",
}


def refusal(location: str, method: str, path: str, status: int, error: object) -> StoreError:
    """What an answer with an error becomes; ``error`` is the answer's body."""
    kind, reason = _described(error)
    if status == 401:
        way = "check the user, the password or the key"
    else:
        way = _WAYS_OUT.get(kind, "see the log of the cluster")
    what = f"{location} refused {method} {path.partition('?')[0]} ({status} {kind}): {reason}"
    text = f"{' '.join(what.split())[:400]}; {way}"
    if kind == "cluster_block_exception":
        return StoreBusyError(text)
    return RefusedError(text, status, kind)


def unreachable(location: str, reason: str, *, tls: bool, late: bool) -> UnreachableError:
    """What no answer becomes; ``tls``: the certificate is at fault, ``late``: the time ran out."""
    reason = " ".join(reason.split())[:200]
    if tls:
        return UnreachableError(f"{location} has no certificate to trust ({reason}); name a CA bundle")
    if late:
        return UnreachableError(
            f"{location} did not answer in time ({reason}); run it again, or raise the timeout"
        )
    return UnreachableError(
        f"{location} cannot be reached ({reason}); check the address and that the cluster runs"
    )


def no_json(location: str, reason: str) -> UnreachableError:
    """What an answer becomes that is no JSON, or half of it."""
    reason = " ".join(reason.split())[:200]
    return UnreachableError(
        f"{location} answered with something that is no JSON ({reason}); check the address"
    )


def _described(error: object) -> tuple[str, str]:
    """Type and reason of the innermost cause that an answer tells of."""
    if isinstance(error, bytes | str):
        try:
            return _described(orjson.loads(error))
        except orjson.JSONDecodeError:
            text = error.decode(errors="replace") if isinstance(error, bytes) else error
            return "no JSON", text[:200]
    if isinstance(error, Mapping):
        found = error.get("error", error)
        if isinstance(found, Mapping):
            causes = found.get("root_cause") or []
            first = causes[0] if causes and isinstance(causes[0], Mapping) else {}
            kind = str(found.get("type") or first.get("type") or "error")
            if kind == "search_phase_execution_exception":
                # the cause of a failed reduction stands beside the empty list of causes in shards
                first = first or found.get("caused_by") or {}
                kind = str(first.get("type") or kind)
            return kind, str(first.get("reason") or found.get("reason") or "")
        return "error", str(found)
    return "no JSON", str(error)[:200]
