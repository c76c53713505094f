"""Interface of cluster clients, and their errors."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
import orjson

from esjobs.core.errors import BlockedError, SettingsError, StoreError, UsageError
from esjobs.core.fields import FieldType
from esjobs.core.redact import excerpt
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.retry import PassingError, longest_s, patiently
from esjobs.store.elastic.transport.tls import way_out
from esjobs.store.meter import Meter

Body = Mapping[str, Any]
Decoded = TypeVar("Decoded")

NO_JSON = "no JSON"
"""Kind of an error answer that came from something before the cluster, such as a proxy."""


class RefusedError(PassingError):
    """Error answer of the cluster; ``status`` and ``kind`` identify it."""

    def __init__(self, message: str, status: int, kind: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.wait_s = wait_s
        self.passing = status in _PASSING and kind not in _LASTING

    @property
    def absent(self) -> bool:
        """True if the cluster, not a proxy, reports the target as missing."""
        return self.status == _NOT_FOUND and self.kind != NO_JSON

    @property
    def forbidden(self) -> bool:
        """True if this user lacks the right."""
        return self.status == _FORBIDDEN


class UnreachableError(PassingError):
    """Missing or unreadable answer; the request may have been carried out."""

    def __init__(self, message: str, *, passing: bool = True) -> None:
        super().__init__(message)
        self.passing = passing


class Request(NamedTuple):
    """Request as it is sent; ``body``: encoded, with its type in ``headers``."""

    method: str
    path: str
    body: bytes | None
    headers: Mapping[str, str]
    params: Mapping[str, Any]


_PASSING = frozenset({429, 502, 503, 504})
# Kinds of errors that come again however often one asks, though their status says overload
_LASTING = frozenset({"too_many_buckets_exception"})


class Cluster(ABC):
    """Connection to a cluster; every error is a :class:`StoreError`. Thread-safe.

    Requests are repeated while errors may pass (`patience`), except before the first answer, so that a wrong
    address fails at once, and after a final failure until the next success.
    """

    product: str
    """``elasticsearch`` or ``opensearch``."""
    version: str
    location: str
    meter: Meter

    def call(
        self, method: str, path: str, body: Body | None = None, *, params: Mapping[str, Any] | None = None
    ) -> Any:
        """Send a JSON request and return the JSON answer.

        Raises :class:`RefusedError` for an error answer, :class:`UnreachableError` without one.
        """
        return self._ask(_loads, Request(method, path, *_json(body), params or {}))

    def decoded(
        self,
        decode: Callable[[bytes | str], Decoded],
        method: str,
        path: str,
        body: Body | None = None,
        *,
        params: Mapping[str, Any] | None = None,
    ) -> Decoded:
        """Send like :meth:`call`, with a decoder that raises ``ValueError`` for invalid JSON."""
        return self._ask(decode, Request(method, path, *_json(body), params or {}))

    def bulk(
        self, lines: bytes, *, index: str = "", params: Mapping[str, Any] | None = None
    ) -> list[Any] | None:
        """Send a ``_bulk`` request of lines; return its items, or None if all succeeded.

        ``index``: that of lines which name none.
        """
        path = f"/{index}/_bulk" if index else "/_bulk"
        return self._ask(_items, Request("POST", path, lines, _LINES, params or {}))

    def patiently(self, ask: Callable[[], Decoded]) -> Decoded:
        """Repeat a function while it raises a passing :class:`PassingError`."""
        return patiently(ask, 0 if self._gave_up else self._repetitions)

    def longest_s(self) -> float:
        """Return the maximum duration of a request with its repetitions."""
        return longest_s(self._repetitions, self.timeout_s)

    def search(self, name: str, index: str, columns: Mapping[str, FieldType]) -> Any:
        """Return an ``elasticsearch.dsl`` search. Raises :class:`UsageError` for other products."""
        del columns
        raise UsageError(
            f"elasticsearch.dsl requires Elasticsearch, but {self.location} is {self.product}; use "
            f"s.tables.{name}(), or opensearchpy.Search on the alias {index}"
        )

    def account(self) -> str:
        """Return the account as the cluster knows it, else the login of the settings."""
        try:
            return self._account()
        except StoreError:
            return self._access.login

    def _be_patient(self, access: Access) -> None:
        self._access = access
        self._authorization = access.headers()
        self.meter = Meter()
        self._repetitions, self.timeout_s = access.retries, access.timeout_s

    _repetitions = 0
    timeout_s = 60.0
    """Time to wait for the response to a request."""
    _answered = False
    _gave_up = False

    def _ask(self, read: Callable[[bytes | str], Decoded], request: Request) -> Decoded:
        def once() -> Decoded:
            try:
                return self._read(read, self._authorized(request))
            except UnreachableError as error:
                # a wrong address never answers: waiting for it would only delay the message
                error.passing = error.passing and self._answered
                raise
            except RefusedError:
                self._answered = True
                raise

        try:
            answer = self.patiently(once)
        except PassingError as error:
            # the cluster is down: the requests of a clean-up do not wait as long again
            self._gave_up = self._gave_up or error.passing
            raise
        self._answered, self._gave_up = True, False
        return answer

    def _authorized(self, request: Request) -> bytes | str:
        """Send with the login; once more if it is refused and its file has changed since."""
        used = self._authorization
        try:
            return self._counted(request, used)
        except RefusedError as error:
            if error.status != _UNAUTHORISED:
                raise
            self._authorization = self._access.headers()
            # the same login would be refused again
            if self._authorization == used:
                raise
        return self._counted(request, self._authorization)

    def _counted(self, request: Request, login: Mapping[str, str]) -> bytes | str:
        status, received, server_s = "none", 0, 0.0
        try:
            answer = self._send(request._replace(headers={**login, **request.headers}))
            status, received, server_s = "200", len(answer), _server_s(answer)
        except RefusedError as error:
            status = str(error.status)
            raise
        except BlockedError:
            status = "blocked"
            raise
        finally:
            self.meter.request(status, len(request.body or b""), received, server_s)
        return answer

    def _all_addresses(self) -> str:
        return ", ".join(self._access.addresses)

    def _require_one_cluster(self) -> None:
        """Raise :class:`SettingsError` if addresses that answer belong to different clusters."""
        if len(self._access.addresses) == 1:
            return
        found: dict[str, str] = {}
        for address, answer in self._of_each_address(_IDENTITY, _LONGEST_LOOK_S):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                found.setdefault(str(orjson.loads(answer)["cluster_uuid"]), address)
        if len(found) > 1:
            raise SettingsError(
                f"{' and '.join(found.values())} are different clusters; cluster.addresses must name "
                "addresses of the same cluster"
            )

    @abstractmethod
    def _of_each_address(self, path: str, timeout_s: float) -> Iterator[tuple[str, bytes | str]]:
        """Yield addresses that answer, with what they answer to a GET."""

    def _read(self, read: Callable[[bytes | str], Decoded], answer: bytes | str) -> Decoded:
        try:
            return read(answer)
        except ValueError as error:
            # a login page of a proxy, or something else than a cluster
            raise no_json(self.location, str(error)) from error

    @abstractmethod
    def _send(self, request: Request) -> bytes | str:
        """Send a request and return the body of the answer."""

    @abstractmethod
    def _account(self) -> str:
        """Return the account by the cluster; :class:`StoreError` without security."""

    @abstractmethod
    def index_template(self, patterns: Sequence[str], layout: Body, priority: int) -> Body:
        """Return the template of some patterns in the product's form."""

    @abstractmethod
    def close(self) -> None:
        """Release the connections."""


_JSON = {"content-type": "application/json"}
_LINES = {"content-type": "application/x-ndjson"}


_TOOK = '"took":'
_LONGEST_HEAD = 20_000
"""Characters before the time in the answer to a search: the id of the snapshot, longer with many shards."""


def _server_s(answer: bytes | str) -> float:
    """Return the time that the cluster says it took; 0 of answers that do not say."""
    # from the head alone: an answer may have megabytes
    head = answer[:_LONGEST_HEAD]
    text = head.decode("utf-8", "replace") if isinstance(head, bytes) else head
    digits = text.partition(_TOOK)[2][:15].lstrip()
    number = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    return int(number) / 1000 if number else 0.0


def _json(body: Body | None) -> tuple[bytes | None, Mapping[str, str]]:
    return (None, {}) if body is None else (orjson.dumps(body), _JSON)


def _loads(answer: bytes | str) -> Any:
    return orjson.loads(answer or b"null")


class _Bulk(msgspec.Struct):
    errors: bool
    items: msgspec.Raw = msgspec.Raw(b"[]")


_BULK = msgspec.json.Decoder(_Bulk)


def _items(answer: bytes | str) -> list[Any] | None:
    """Return the items of an answer with failures. Raises ``ValueError`` if it is invalid."""
    bulk = _BULK.decode(answer)
    items: list[Any] | None = msgspec.json.decode(bulk.items) if bulk.errors else None
    return items


def ask(cluster: Cluster, path: str, *, params: Mapping[str, Any] | None = None) -> Any:
    """Return the answer to a GET; None if the target is missing."""
    try:
        return cluster.call("GET", path, params=params)
    except RefusedError as error:
        if error.absent:
            return None
        raise


_IDENTITY = "/_cluster/state/version?filter_path=cluster_uuid"
_LONGEST_LOOK_S = 5.0
_UNAUTHORISED = 401
_PROXY_LOGIN = 407
_FORBIDDEN = 403
_NOT_FOUND = 404
_UNAVAILABLE = 503

_WAYS_OUT: dict[str, str] = {
    "cluster_block_exception": (
        "the index or the cluster is blocked for writing (index.blocks, cluster.blocks); remove the block "
        "and run it again"
    ),
    "security_exception": "use a different user, or grant this user the role that 'esjobs setup' prints",
    "index_closed_exception": "the index is closed; open it (POST /INDEX/_open) and run it again",
    "invalid_alias_name_exception": "an index has the name of an alias of esjobs; run: esjobs doctor",
    "invalid_index_name_exception": "an alias has the name of an index of esjobs; run: esjobs setup --repair",
    "index_not_found_exception": "run 'esjobs setup', or specify the jobs' index",
    "es_rejected_execution_exception": "the cluster is overloaded; run it again later",
    "circuit_breaking_exception": "the cluster is out of memory; run it again later, or for fewer days",
    "search_context_missing_exception": (
        "the snapshot of the read has expired (the cluster restarted, or reading took too long); run it again"
    ),
    "too_many_buckets_exception": "raise search.max_buckets, or run it for fewer days",
}


# Number of the block that stands for a full disk, in the reason of both products
_DISK_BLOCK = "/12/"


def refusal(
    location: str, method: str, path: str, status: int, error: object, wait_s: float | None = None
) -> StoreError:
    """Return the error for an error answer; ``wait_s``: its ``Retry-After``."""
    kind, reason = _described(error)
    if status == _UNAUTHORISED:
        way = "check the user, the password or the key"
    elif status == _PROXY_LOGIN:
        way = "check the user and the password of the proxy (cluster.proxy, HTTPS_PROXY)"
    elif status == _UNAVAILABLE:
        way = _WAYS_OUT[kind] if kind in _LASTING else "the cluster is not ready; run it again later"
    elif kind == "cluster_block_exception" and _DISK_BLOCK in reason:
        way = "the cluster blocks writes (is a disk full?); fix this and run it again"
    else:
        way = _WAYS_OUT.get(kind, "see the log of the cluster")
    what = f"{location} rejected {method} {path.partition('?')[0]} ({status} {kind}): {reason}"
    text = f"{excerpt(what, 400)}; {way}"
    # without a master everything is blocked, for moments; a full disk blocks writes until somebody comes
    if kind == "cluster_block_exception" and status != _UNAVAILABLE:
        return BlockedError(text)
    return RefusedError(text, status, kind, wait_s)


def unreachable(location: str, reason: str, *, tls: bool, late: bool) -> UnreachableError:
    """Return the error for a missing answer; ``tls``: refused certificate, ``late``: timeout."""
    way, reason = way_out(" ".join(reason.split())), excerpt(reason, 200)
    if tls:
        return UnreachableError(f"{location}: no TLS connection ({reason}); {way}", passing=False)
    if late:
        return UnreachableError(
            f"{location} did not answer in time ({reason}); run it again, or raise the timeout"
        )
    # a server that expects TLS, or a certificate, often just hangs up
    doubt = ""
    if "Connection aborted" in reason:
        need = "require a client certificate" if location.startswith("https:") else "use https"
        doubt = f" (does it {need}?)"
    return UnreachableError(
        f"{location} cannot be reached ({reason}); check the address{doubt} and whether the cluster runs"
    )


def no_json(location: str, reason: str) -> UnreachableError:
    """Return the error for an answer that is not JSON."""
    reason = excerpt(reason, 200)
    return UnreachableError(f"{location} returned invalid JSON ({reason}); check the address")


def _described(error: object) -> tuple[str, str]:
    if isinstance(error, bytes | str):
        try:
            return _described(orjson.loads(error))
        except orjson.JSONDecodeError:
            text = error.decode(errors="replace") if isinstance(error, bytes) else error
            return NO_JSON, excerpt(text, 200)
    if not isinstance(error, Mapping):
        return NO_JSON, excerpt(str(error), 200)
    cause = error.get("error", error)
    return _of_cause(cause) if isinstance(cause, Mapping) else ("error", str(cause))


def _of_cause(cause: Mapping[str, Any]) -> tuple[str, str]:
    # the innermost cause says more than "all shards failed"
    causes = cause.get("root_cause") or []
    first = causes[0] if causes and isinstance(causes[0], Mapping) else {}
    kind = str(cause.get("type") or first.get("type") or "error")
    if kind == "search_phase_execution_exception":
        # the cause of a failed reduction stands beside the empty list of causes in shards
        first = first or cause.get("caused_by") or {}
        kind = str(first.get("type") or kind)
    return kind, str(first.get("reason") or cause.get("reason") or "")
