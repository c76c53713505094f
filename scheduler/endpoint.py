"""Metrics and health over HTTP, bounded: no peer can exhaust the service.

A connection lasts a few seconds at most and takes one of a few slots. If all are taken, the oldest one is
ended, so that a prompt request is answered during a flood. A few slots are reserved for this machine.
"""

import contextlib
import errno
import ipaddress
import json
import logging
import os
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from prometheus_client import CONTENT_TYPE_LATEST

from esjobs.core.errors import StoreError
from scheduler.metrics import Metrics

_log = logging.getLogger(__name__)

_SLOTS = 32
_OF_OTHERS = 28  # Slots, of all, that peers from elsewhere may have
_LASTS_S = 5.0  # A connection is ended after this time, whatever it sends
_LOOKED_AFTER_S = 0.25
_GIVES_WAY_S = 0.5  # Longest wait of a new connection for the slot of the oldest one
_RESERVE = 4  # Descriptors that are kept, to turn connections away when there are no others
_LACKING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_LOGGED_EVERY_S = 3600.0  # A flood must not fill the log

# True if the service is well, with details; answers at once, from memory
Health = Callable[[], tuple[bool, dict[str, Any]]]


class Endpoint:
    """Server of ``/metrics`` and ``/health`` (503 if the service is not well) on one address.

    There is no login: it listens on this machine alone by default. Raises :class:`StoreError` if the address
    is taken.
    """

    def __init__(self, host: str, port: int, metrics: Metrics, health: Health) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = _LASTS_S

            def do_GET(self) -> None:
                path = self.path.split("?")[0]
                if path == "/metrics":
                    self._answer(200, CONTENT_TYPE_LATEST, metrics.text())
                elif path == "/health":
                    well, details = health()
                    body = json.dumps(details, default=str).encode()
                    self._answer(200 if well else 503, "application/json", body)
                else:
                    self._answer(404, "text/plain", b"there are /metrics and /health\n")

            def _answer(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the library's own name
                """Questions are not logged."""

        try:
            self._server = _Server((host, port), Handler, metrics)
        except OSError as error:
            raise StoreError(
                f"cannot listen on {host}:{port}: {error.strerror}; use a different nights.port, or set "
                'nights.listen = "nothing"'
            ) from error
        self._threads = [
            threading.Thread(target=run, daemon=True)
            for run in (self._server.serve_forever, self._server.look)
        ]

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(_LASTS_S)


@dataclass(frozen=True)
class _Connection:
    socket: socket.socket
    until: float
    is_near: bool


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    # threads of slow peers neither hold up the end of the process nor that of the server
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True  # a restart need not wait for TIME_WAIT
    request_queue_size = 64  # the default of 5 drops prompt requests in a flood

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], metrics: Metrics
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._metrics = metrics
        self._connections: dict[int, _Connection] = {}
        self._changed = threading.Condition()
        self._is_closed = threading.Event()
        self._logged: float | None = None
        self._reserve: list[int] = []
        super().__init__(address, handler)
        self._keep_reserve()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; without a free descriptor it is closed at once, not left in the backlog."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _LACKING:
                self._turn_away()
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a slot and a thread, or close it."""
        if not self._take_slot(request, client_address):
            self._refuse(request, "slots")
            return
        try:
            super().process_request(request, client_address)
        # no memory, or no more threads
        except (RuntimeError, MemoryError):
            self._refuse(request, "threads")

    def shutdown_request(self, request: Any) -> None:
        """Close a connection and free its slot."""
        with self._changed:
            self._connections.pop(id(request), None)
            self._changed.notify_all()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a defect; a client that disconnects is not an error."""
        del request, client_address
        if not isinstance(sys.exception(), OSError):
            self._say("a request failed", exc_info=True)

    def server_close(self) -> None:
        """Close the port, the connections and the reserve."""
        super().server_close()
        self._is_closed.set()
        with self._changed:
            for connection in self._connections.values():
                _end(connection)
        while self._reserve:
            os.close(self._reserve.pop())

    def look(self) -> None:
        """End connections past their time, until the server is closed."""
        while not self._is_closed.wait(_LOOKED_AFTER_S):
            now = time.monotonic()
            with self._changed:
                for connection in self._connections.values():
                    if connection.until < now:
                        self._metrics.refused("time")
                        _end(connection)

    def _take_slot(self, request: socket.socket, client_address: Any) -> bool:
        is_near = _is_near(client_address)
        with self._changed:
            if not self._has_slot(is_near):
                self._let_oldest_go(is_near)
                if not self._changed.wait_for(lambda: self._has_slot(is_near), _GIVES_WAY_S):
                    return False
            self._connections[id(request)] = _Connection(request, time.monotonic() + _LASTS_S, is_near)
        return True

    def _has_slot(self, is_near: bool) -> bool:
        n_others = sum(not connection.is_near for connection in self._connections.values())
        return len(self._connections) < _SLOTS and (is_near or n_others < _OF_OTHERS)

    def _let_oldest_go(self, is_near: bool) -> None:
        # Any peer may go for one of this machine, else only remote ones.
        may_go = [each for each in self._connections.values() if is_near or not each.is_near]
        if may_go:
            self._metrics.refused("slots")
            _end(min(may_go, key=lambda each: each.until))

    def _refuse(self, request: Any, reason: str) -> None:
        self._metrics.refused(reason)
        self.shutdown_request(request)

    def _turn_away(self) -> None:
        self._metrics.refused("descriptors")
        self._say("out of file descriptors; connections are refused")
        if self._reserve:
            os.close(self._reserve.pop())
        # the descriptor just closed takes the connection, so that its peer is not left to wait
        with contextlib.suppress(OSError):
            self.socket.accept()[0].close()
        self._keep_reserve()
        # the port stays readable: without a pause this would take a processor
        time.sleep(0.05)

    def _keep_reserve(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._reserve) < _RESERVE:
                self._reserve.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def _say(self, text: str, *, exc_info: bool = False) -> None:
        now = time.monotonic()
        if self._logged is None or now - self._logged > _LOGGED_EVERY_S:
            self._logged = now
            _log.error("metrics and health: %s", text, exc_info=exc_info)


def _end(connection: _Connection) -> None:
    # The connection's thread alone closes the socket: its number is reused.
    with contextlib.suppress(OSError):
        connection.socket.shutdown(socket.SHUT_RDWR)


def _is_near(client_address: Any) -> bool:
    # a link-local address names its interface: fe80::1%eth0
    found = ipaddress.ip_address(str(client_address[0]).partition("%")[0])
    # on a dual-stack socket 127.0.0.1 arrives as ::ffff:127.0.0.1, no loopback address for Python 3.11
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback
