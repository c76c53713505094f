"""A real SMTP server and a real HTTP listener on this machine, which fail as they are told to."""

# names and arguments of methods are those of aiosmtpd and http.server
# ruff: noqa: ARG002, N802

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "esjobs-mailer", "staple-of-the-mail"


@dataclass
class MailServer:
    """What was accepted, and what goes wrong.

    ``refuse_address``: answers to RCPT by address, such as ``550 no such user``. ``answers``: to one message
    after the other, before it is accepted; ``drop``: the connection ends after the message was taken, so many
    times. ``slow_s``: before a message is answered. ``on_address``, ``after_taken``: called before and after.
    """

    host: str = "127.0.0.1"
    port: int = 0
    taken: list[tuple[str, EmailMessage]] = field(default_factory=list)
    refuse_address: dict[str, str] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    drop: int = 0
    slow_s: float = 0.0
    slow_for: str = ""
    on_address: Callable[[], None] = lambda: None
    after_taken: Callable[[], None] = lambda: None
    connections: int = 0
    logins: list[str] = field(default_factory=list)

    def settings(self, **given: Any) -> dict[str, Any]:
        """Settings of a client."""
        return {"host": "localhost", "port": self.port, "sender": "esjobs@grid.example", **given}

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.connections += 1
        session.host_name = hostname
        return responses

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.on_address()
        if address in self.refuse_address:
            return self.refuse_address[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.slow_s and self.slow_for in ("", envelope.rcpt_tos[0]):
            await asyncio.sleep(self.slow_s)
        if self.answers:
            answer = self.answers.pop(0)
            if not answer.startswith("2"):
                return answer
        mail = message_from_bytes(cast("bytes", envelope.content), policy=default)
        self.taken.append((envelope.rcpt_tos[0], mail))
        self.after_taken()
        if self.drop:
            self.drop -= 1
            assert server.transport is not None
            server.transport.close()
        return "250 OK"

    def authenticate(self, _: Any, __: Any, ___: Any, mechanism: str, data: Any) -> AuthResult:
        """The one login that there is."""
        good = isinstance(data, LoginPassword) and (data.login, data.password) == (
            USER.encode(),
            PASSWORD.encode(),
        )
        self.logins.append(mechanism)
        # not handled: the server itself is to answer 535
        return AuthResult(success=good, handled=good)


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def mail_server(
    *, starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None, login: bool = False
) -> Iterator[MailServer]:
    """A running server; ``starttls`` or ``tls``: how it speaks TLS. ``login``: nobody else may send."""
    made = MailServer(port=free_port())
    controller = Controller(
        made,
        hostname="127.0.0.1",
        port=made.port,
        ssl_context=tls,
        ready_timeout=20,
        tls_context=starttls,
        require_starttls=starttls is not None,
        authenticator=made.authenticate,
        auth_required=login,
        auth_require_tls=starttls is not None,
        timeout=60,
    )
    controller.start()
    try:
        yield made
    finally:
        controller.stop()


@dataclass(frozen=True)
class Posted:
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Listener:
    """What was posted, and how it answers: ``answers`` one after the other, then 200.

    An answer is a status, with headers; None: the connection is closed without one. ``drip_s``: a byte of the
    answer each so many seconds, for ever.
    """

    url: str = ""
    posted: list[Posted] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], bytes] | None] = field(default_factory=list)
    drip_s: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def listener(tls: ssl.SSLContext | None = None) -> Iterator[Listener]:
    """A running listener."""
    made = Listener()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            made.posted.append(Posted(self.path, headers, body))
            if made.drip_s:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                with contextlib.suppress(OSError):
                    while not made.ended.wait(made.drip_s):
                        self.wfile.write(b"x-more: 1\r\n")
                        self.wfile.flush()
                return
            answer = made.answers.pop(0) if made.answers else (200, {}, b"ok")
            if answer is None:
                self.close_connection = True
                self.connection.close()
                return
            status, extra, content = answer
            self.send_response(status)
            for name, value in {"content-length": str(len(content)), **extra}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            del request, client_address

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    made.url = f"{'https' if tls else 'http'}://localhost:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
