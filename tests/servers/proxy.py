"""A proxy between a client and a server that does to chosen requests what networks and clusters do.

    with Proxy(server.url) as proxy:
        lost = proxy.on(path("/_bulk"), reset_after(), times=1)
        ...                       # talk to proxy.url
        assert lost.hits == 1

The first rule that matches a request, and has not done its work yet, decides about it; all others pass.
"""

import contextlib
import http.client
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

_UPSTREAM_TIMEOUT_S = 60.0
_PATIENCE_S = 5.0
_HOP = {"transfer-encoding", "connection", "content-length", "keep-alive"}


@dataclass(frozen=True)
class Request:
    """What came from the client; ``path`` without its query."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """What goes back; ``promised``: the length that the head tells, when it is not that of the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    promised: int | None = None


Predicate = Callable[[Request], bool]
Forward = Callable[[Request], Reply]
Action = Callable[[Request, Forward], Reply | None]
"""Deals with a request; None: the connection is reset."""


@dataclass
class Rule:
    """What is done to which requests: after ``skip`` of them, ``times`` times (None: always)."""

    when: Predicate
    do: Action
    skip: int = 0
    times: int | None = 1
    seen: int = 0
    at: list[float] = field(default_factory=list)
    done: list[Reply | None] = field(default_factory=list)
    """What it answered, as far as it has."""

    @property
    def hits(self) -> int:
        """How many requests it dealt with."""
        return len(self.at)

    def takes(self, request: Request) -> bool:
        """Whether it deals with this request; counts it."""
        if (self.times is not None and self.hits >= self.times) or not self.when(request):
            return False
        self.seen += 1
        if self.seen <= self.skip:
            return False
        self.at.append(time.monotonic())
        return True


class Proxy:
    """Listens on a free port of this machine and passes requests on to ``target``.

    ``tls``: how it speaks TLS with clients, None for plain HTTP; ``host``: the name that clients call it by.
    """

    def __init__(self, target: str, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.target = target
        self.host = host
        self.seen: list[tuple[float, Request]] = []
        self.rules: list[Rule] = []
        self._lock = threading.Lock()
        self._server = _Listener(("127.0.0.1", 0), _handler(self))
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.guard(tls)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://{self.host}:{self._server.server_address[1]}"

    def on(self, when: Predicate, do: Action, *, skip: int = 0, times: int | None = 1) -> Rule:
        """From now on, do this to such requests."""
        rule = Rule(when, do, skip, times)
        with self._lock:
            self.rules.append(rule)
        return rule

    def heal(self) -> None:
        """From now on everything passes."""
        with self._lock:
            self.rules.clear()

    def requests(self, when: Predicate) -> list[float]:
        """When such requests came."""
        with self._lock:
            return [at for at, request in self.seen if when(request)]

    def deal(self, request: Request) -> Reply | None:
        """The reply to a request, by the first rule that takes it."""
        with self._lock:
            self.seen.append((time.monotonic(), request))
            rule = next((rule for rule in self.rules if rule.takes(request)), None)
        if rule is None:
            return self.forward(request)
        reply = rule.do(request, self.forward)
        rule.done.append(reply)
        return reply

    def forward(self, request: Request) -> Reply:
        """The server's own reply."""
        connection = http.client.HTTPConnection(urlsplit(self.target).netloc, timeout=_UPSTREAM_TIMEOUT_S)
        try:
            place = f"{request.path}?{request.query}" if request.query else request.path
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
            connection.request(request.method, place, request.body or None, headers)
            answer = connection.getresponse()
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
            return Reply(answer.status, kept, answer.read())
        finally:
            connection.close()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def guard(self, tls: ssl.SSLContext) -> None:
        """Speak TLS; hands are shaken by the thread of the connection."""
        self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection, once both sides trust each other."""
        if isinstance(request, ssl.SSLSocket):
            try:
                request.do_handshake()
            except OSError:
                _hear_out(request)
                return
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to talk about."""


def _hear_out(refused: ssl.SSLSocket) -> None:
    """Let a client read why it was refused; what it has sent and nobody reads would reset the connection."""
    with contextlib.suppress(OSError), socket.socket(fileno=refused.detach()) as bare:
        bare.settimeout(_PATIENCE_S)
        bare.shutdown(socket.SHUT_WR)
        while bare.recv(1 << 16):
            pass


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            place, _, query = self.path.partition("?")
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            try:
                reply = proxy.deal(Request(self.command, place, query, headers, body))
            except (OSError, http.client.HTTPException):  # the server is gone
                reply = None
            if reply is None:
                self._reset()
                return
            self.send_response_only(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            promised = len(reply.body) if reply.promised is None else reply.promised
            self.send_header("content-length", str(promised))
            self.end_headers()
            self.wfile.write(reply.body)
            self.wfile.flush()
            if promised != len(reply.body):
                self._reset()

        def _reset(self) -> None:
            self.close_connection = True
            # closing with no patience sends a reset, not a friendly end
            with contextlib.suppress(OSError):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    return Handler


def path(end: str, method: str | None = None, body: bytes = b"") -> Predicate:
    """Requests whose path ends so, of a method, and whose body contains something."""

    def matches(request: Request) -> bool:
        return request.path.endswith(end) and method in (None, request.method) and body in request.body

    return matches


def answers(status: int, body: object, headers: Mapping[str, str] | None = None) -> Action:
    """The server never gets it; something before it answers: a text as HTML, anything else as JSON."""
    html = isinstance(body, str)
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    kind = {"content-type": "text/html" if html else "application/json"}

    def act(_: Request, __: Forward) -> Reply:
        return Reply(status, {**kind, **(headers or {})}, content)

    return act


def reset_before() -> Action:
    """The connection breaks before the server gets the request."""
    return lambda _, __: None


def reset_after() -> Action:
    """The server does it, and the connection breaks before the answer arrives."""

    def act(request: Request, forward: Forward) -> None:
        forward(request)

    return act


def cut() -> Action:
    """The connection breaks in the middle of the answer."""

    def act(request: Request, forward: Forward) -> Reply:
        reply = forward(request)
        return Reply(reply.status, reply.headers, reply.body[: len(reply.body) // 2], len(reply.body))

    return act


def truncated() -> Action:
    """A part of the answer, up to some brace, arrives as if it were all."""

    def act(request: Request, forward: Forward) -> Reply:
        reply = forward(request)
        end = reply.body.rindex(b"}", 0, len(reply.body) - 1) + 1
        return Reply(reply.status, reply.headers, reply.body[:end])

    return act


def stalls(seconds: float, *, done: bool) -> Action:
    """No answer for so long, then a reset; ``done``: the server has done it at once, else never does."""

    def act(request: Request, forward: Forward) -> None:
        if done:
            forward(request)
        time.sleep(seconds)

    return act


def late(seconds: float) -> Action:
    """The server gets it after so long, when nobody waits for the answer any more."""

    def act(request: Request, forward: Forward) -> None:
        time.sleep(seconds)
        forward(request)

    return act


def first(do: Callable[[Request], object]) -> Action:
    """Something happens to the server, then the request goes on to it."""

    def act(request: Request, forward: Forward) -> Reply:
        do(request)
        return forward(request)

    return act


def then(do: Callable[[Request], object]) -> Action:
    """The server does it, then something happens to the server, and the answer is lost."""

    def act(request: Request, forward: Forward) -> None:
        forward(request)
        do(request)

    return act


def alters(change: Callable[[bytes], bytes]) -> Action:
    """The server gets another body."""

    def act(request: Request, forward: Forward) -> Reply:
        return forward(
            Request(request.method, request.path, request.query, request.headers, change(request.body))
        )

    return act


def refuses_item(status: int, kind: str) -> Action:
    """The server gets a bulk request without its first item, which is answered with an error in its place."""

    def act(request: Request, forward: Forward) -> Reply:
        left, right = next(_items(request.body))
        head = json.loads(request.body[left:right].split(b"\n")[0])
        ((verb, place),) = head.items()
        error = {"type": kind, "reason": "no room"}
        item = {verb: {**place, "status": status, "error": error}}
        rest = request.body[right:]
        if not rest:
            answer: dict[str, Any] = {"took": 0, "items": []}
            headers: Mapping[str, str] = {"content-type": "application/json"}
        else:
            reply = forward(Request(request.method, request.path, request.query, request.headers, rest))
            answer, headers = json.loads(reply.body), reply.headers
        answer["errors"] = True
        answer["items"].insert(0, item)
        return Reply(200, headers, json.dumps(answer).encode())

    return act


def _items(body: bytes) -> Iterator[tuple[int, int]]:
    """Where each item of a bulk request begins and ends."""
    at = 0
    while at < len(body):
        end = body.index(b"\n", at) + 1
        if not body.startswith(b'{"delete"', at):
            end = body.index(b"\n", end) + 1
        yield at, end
        at = end
