"""The faults that one request meets, and what becomes of the step that sent it.

`faults.md` has a row for each.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.elastic.table import BEFORE, SAME
from tests.servers import proxy as do
from tests.servers.proxy import Action, Predicate, Proxy, Request, Rule, path
from tests.servers.server import Server


def writes_jobs(request: Request) -> bool:
    """A bulk request that writes versions of jobs, not one that clears some away."""
    return _TO_JOBS(request) and not request.body.startswith(b'{"delete"')


def opens_snapshot(request: Request) -> bool:
    """A request for a point in time, of either product."""
    return request.method == "POST" and request.path.endswith(("/_pit", "/_search/point_in_time"))


_TO_JOBS = path("/_bulk", body=b"-jobs-")
FACTORS = path("-factors-000001/_bulk")
SEARCH = path("/_search", "POST")
PAGE = path("/_search", "POST", b'"generation"')
GROUPS = path("/_search", "POST", b'"composite"')
SWITCH = path("/_aliases", body=b"-factors")
COMMIT = path("/_doc/commit", "PUT")
LEASE = path("", "PUT", body=b'"kind":"value"')

HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"
STALL_S = 4.5
SHORT_S = 3.0


@dataclass(frozen=True)
class Fault:
    """A fault of the requests that ``when`` chooses, after ``skip`` of them, ``times`` times (None: always).

    ``done`` and ``did`` are cells of the table; ``error``: pattern of the one line, None when the step
    succeeds. ``make`` gets the server for what has to happen there. Faults of one ``scene`` that a step
    survives hit the same step, the others one attempt after the other.
    """

    scene: str
    done: str
    did: str
    step: str
    when: Predicate
    make: Callable[[Server], Action]
    times: int | None = 1
    skip: int = 0
    error: str | None = None
    timeout_s: float = 30.0

    @property
    def saw(self) -> str:
        """What users saw."""
        return SAME if self.error is None else BEFORE

    def install(self, proxy: Proxy, server: Server) -> Rule:
        """Do it to the requests that pass a proxy from now on."""
        return proxy.on(self.when, self.make(server), skip=self.skip, times=self.times)


def _always(action: Action) -> Callable[[Server], Action]:
    return lambda _: action


def _refusal(status: int, kind: str, **headers: str) -> Action:
    body = {"error": {"type": kind, "reason": "made up"}, "status": status}
    return do.answers(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


_FULL = _refusal(429, "es_rejected_execution_exception")


def _lose_snapshot(server: Server) -> Action:
    """Close the point in time that a search is about to ask."""

    def close(request: Request) -> None:
        import orjson

        held = orjson.loads(request.body)["pit"]["id"]
        if server.product.vendor.name == "elasticsearch":
            server.json("DELETE", "_pit", {"id": held})
        else:
            server.json("DELETE", "_search/point_in_time", {"pit_id": [held]})

    return do.first(close)


def _spoil(body: bytes) -> bytes:
    """Make the first number of events something that the mapping refuses."""
    return body.replace(b'"events":', b'"events":"many","x":', 1)


def _too_large(request: Request) -> bool:
    return writes_jobs(request) and len(request.body) > 60_000


FAULTS = (
    Fault(
        "lost bulks",
        "429 for a bulk request",
        "sent it again after a pause",
        "ingest", writes_jobs, _always(_FULL),
    ),
    Fault(
        "reading",
        "429 with `Retry-After: 1` for a search",
        "asked again after at least that second",
        "run", SEARCH, _always(_refusal(429, "es_rejected_execution_exception", retry_after="1")),
    ),
    Fault(
        "refused writes",
        "429 for every bulk request",
        "gave up after the repetitions, cleared its rows away",
        "ingest", writes_jobs, _always(_FULL), times=None, error="overloaded; run it again later",
    ),
    Fault(
        "reading",
        "503 for two searches in a row",
        "asked again, with a longer pause the second time",
        "run", SEARCH, _always(_refusal(503, "no_shard_available_action_exception")), skip=1, times=2,
    ),
    Fault(
        "failing runs",
        "503 or 400 `too_many_buckets_exception` for a search",
        "gave up at once, for it would come again",
        "run", SEARCH, _always(_refusal(503, "too_many_buckets_exception")), times=None,
        error="search.max_buckets",
    ),
    Fault(
        "switching",
        "502 in HTML from a proxy for the switch of the aliases",
        "sent it again",
        "run", SWITCH, _always(do.answers(502, HTML)),
    ),
    Fault(
        "failing runs",
        "502 in HTML for every search",
        "gave up after the repetitions",
        "run", SEARCH, _always(do.answers(502, HTML)), times=None, error="502 no JSON",
    ),
    Fault(
        "failing runs",
        "200 with an HTML page for every search",
        "gave up after the repetitions",
        "run", SEARCH, _always(do.answers(200, HTML)), times=None, error="no JSON.*check the address",
    ),
    Fault(
        "failing runs",
        "404 in HTML from a proxy for every question about an alias",
        "did not take it for an alias that is missing",
        "run", path("-factors-000001*/_alias", "GET"), _always(do.answers(404, HTML)), times=None,
        error="404 no JSON",
    ),
    Fault(
        "lost bulks",
        "connection reset before the cluster got a bulk request",
        "sent it again",
        "ingest", writes_jobs, _always(do.reset_before()),
    ),
    Fault(
        "lost answers",
        "connection reset after the cluster carried out a bulk request of jobs",
        "sent it again, recognised its own rows, counted each once",
        "ingest", writes_jobs, _always(do.reset_after()),
    ),
    Fault(
        "lost answers",
        "connection reset after the bulk request that replaces versions of jobs",
        "sent it again: the same changes",
        "ingest", writes_jobs, _always(do.reset_after()), skip=1,
    ),
    Fault(
        "switching",
        "connection reset after the cluster carried out a bulk request of results",
        "sent it again: the same ids",
        "run", FACTORS, _always(do.reset_after()),
    ),
    Fault(
        "reading",
        "connection reset in the middle of a page of rows",
        "asked for the page again, of the same snapshot",
        "run", PAGE, _always(do.cut()), skip=3,
    ),
    Fault(
        "reading",
        "half a page of rows that claims to be whole",
        "asked for the page again",
        "run", PAGE, _always(do.truncated()), skip=5,
    ),
    Fault(
        "reading",
        "no answer to a search before the time ran out",
        "asked again",
        "run", PAGE, _always(do.stalls(STALL_S, done=False)), skip=7, timeout_s=SHORT_S,
    ),
    Fault(
        "late answers",
        "a bulk request carried out, its answer later than the time allowed",
        "sent it again, recognised its own rows",
        "ingest", writes_jobs, _always(do.stalls(STALL_S, done=True)), timeout_s=SHORT_S,
    ),
    Fault(
        "lost answers",
        "connection reset after the right to write was given",
        "read back who holds it, and found itself",
        "ingest", LEASE, _always(do.reset_after()),
    ),
    Fault(
        "lost answers",
        "connection reset after the commit of a load",
        "sent it again, was told of a conflict, read back and found its own mark",
        "ingest", COMMIT, _always(do.reset_after()), skip=1,
    ),
    Fault(
        "refused writes",
        "connection reset before each commit of a load",
        "gave up after the repetitions, cleared its rows away",
        "ingest", COMMIT, _always(do.reset_before()), skip=1, times=3, error="cannot be reached",
    ),
    Fault(
        "switching",
        "connection reset after the aliases were switched",
        "sent it again: the same switch",
        "run", SWITCH, _always(do.reset_after()),
    ),
    Fault(
        "reading",
        "connection reset after the aliases were switched, also the repetitions",
        "read back what readers see, and found its own",
        "run", SWITCH, _always(do.reset_after()), times=3,
    ),
    Fault(
        "failing runs",
        "connection reset before the aliases were switched, each time",
        "gave up after the repetitions",
        "run", SWITCH, _always(do.reset_before()), times=None, error="cannot be reached",
    ),
    Fault(
        "switching",
        "429 for every deletion of rows that no reader sees any more",
        "left them to the next run; the results were switched before",
        "run", path("/_bulk", body=b'{"delete"'), _always(_FULL), times=None,
    ),
    Fault(
        "switching",
        "connection reset in the middle of a page of groups of jobs",
        "asked for the page again, of the same snapshot",
        "run", GROUPS, _always(do.cut()),
    ),
    Fault(
        "switching",
        "half a page of groups that claims to be whole",
        "asked for the page again",
        "run", GROUPS, _always(do.truncated()), skip=1,
    ),
    Fault(
        "failing runs",
        "404 in HTML from a proxy for every snapshot",
        "did not take it for an index that is missing",
        "run", opens_snapshot, _always(do.answers(404, HTML)), times=None, error="404 no JSON",
    ),
    Fault(
        "failing runs",
        "a point in time closed under a search for groups of jobs",
        "refused to go on with another snapshot",
        "run", GROUPS, _lose_snapshot, error="snapshot of the read has expired.*run it again",
    ),
    Fault(
        "failing runs",
        "a point in time closed under a search",
        "refused to go on with another snapshot",
        "run", SEARCH, _lose_snapshot, skip=1, error="snapshot of the read has expired.*run it again",
    ),
    Fault(
        "late answers",
        "413 for bulk requests above 60 kB",
        "halved them until they passed",
        "ingest", _too_large, _always(_refusal(413, "content_too_long_exception")), times=None,
    ),
    Fault(
        "lost bulks",
        "429 for one item of a bulk request",
        "sent this item again, it alone",
        "ingest", writes_jobs, _always(do.refuses_item(429, "es_rejected_execution_exception")),
    ),
    Fault(
        "refused writes",
        "503 for one item of each bulk request",
        "gave up after the repetitions, cleared its rows away",
        "ingest", writes_jobs, _always(do.refuses_item(503, "unavailable_shards_exception")), times=None,
        error="not ready; run it again later",
    ),
    Fault(
        "refused writes",
        "one job of a bulk request does not fit the mapping, the others do",
        "gave up at once, cleared the others away",
        "ingest", writes_jobs, _always(do.alters(_spoil)), error="refused a document for",
    ),
)  # fmt: skip

SCENES = {fault.scene: [each for each in FAULTS if each.scene == fault.scene] for fault in FAULTS}
"""Faults by scene, each scene of one step and one kind of end."""
