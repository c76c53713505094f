"""A forward proxy on this machine: whole addresses and tunnels, to one server whatever host is named."""

import base64
import contextlib
import http.client
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

_HOP = {"transfer-encoding", "connection", "proxy-authorization", "proxy-connection", "content-length"}


class ForwardingProxy:
    """Listens on a free port; ``login``: what it demands, ``user:password``; ``asked``: methods and hosts."""

    def __init__(self, target: str, login: str | None = None) -> None:
        self.target = urlsplit(target)
        self.login = login
        self.asked: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def place(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def admits(self, header: str | None) -> bool:
        """True if a request brings the login."""
        if self.login is None:
            return True
        return header == f"Basic {base64.b64encode(self.login.encode()).decode()}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(proxy: ForwardingProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _admitted(self, host: str) -> bool:
            proxy.asked.append((self.command, host))
            if proxy.admits(self.headers.get("proxy-authorization")):
                return True
            self.send_error(407)
            return False

        def do_CONNECT(self) -> None:
            if not self._admitted(self.path):
                return
            with socket.create_connection((str(proxy.target.hostname), int(proxy.target.port or 0))) as other:
                self.send_response(200)
                self.end_headers()
                back = threading.Thread(target=_pump, args=(other, self.connection), daemon=True)
                back.start()
                _pump(self.connection, other)
                back.join()
            self.close_connection = True

        def _forward(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if not self._admitted(parts.netloc):
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            connection = http.client.HTTPConnection(proxy.target.netloc, timeout=60)
            with contextlib.closing(connection):
                place = f"{parts.path}?{parts.query}" if parts.query else parts.path
                connection.request(self.command, place, body or None, headers)
                answer = connection.getresponse()
                content = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _forward  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    return Handler


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while content := source.recv(1 << 16):
            sink.sendall(content)
        sink.shutdown(socket.SHUT_WR)
