"""A real HTTP server that refuses everything and repeats what it was sent, in any form of quoting."""

# names of methods are those of http.server
# ruff: noqa: N815

import base64
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Echo:
    """The address of the server, and the form in which it repeats headers, logins, path and body."""

    host: str = ""
    form: Callable[[str], str] = str
    status: int = 500
    media: str = "text/plain"
    requests: list[str] = field(default_factory=list)


@contextlib.contextmanager
def echo() -> Iterator[Echo]:
    """A running server."""
    made = Echo()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            sent = self.headers.get("authorization", "")
            kind, _, credentials = sent.partition(" ")
            parts = [credentials, sent, self.path]
            if kind == "Basic":
                login = base64.b64decode(credentials).decode("utf-8", "replace")
                parts = [login.partition(":")[2], login, *parts]
            parts += [*self.headers.values(), body.decode("utf-8", "replace")]
            made.requests.append(sent or self.path)
            said = " ".join(made.form(part) for part in parts).encode("utf-8", "replace")
            self.send_response(made.status)
            self.send_header("content-type", made.media)
            self.send_header("content-length", str(len(said)))
            self.send_header("x-elastic-product", "Elasticsearch")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(said)

        do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
