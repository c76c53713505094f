"""The server: where it listens, and for which names."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from esjobs.api.factory import embedded_file
from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import UsageError
from esjobs.core.extras import require
from esjobs.flags.answering.journal import Journal
from esjobs.flags.answering.links import links_of
from esjobs.flags.answering.settings import WebSettings
from esjobs.settings import Settings
from esjobs.web.access import Access
from esjobs.web.request import Acting

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from esjobs.web.app import Web

_MOST_CONNECTIONS = 256
_LONGEST_SILENCE_S = 10.0


def listen_on(text: str) -> tuple[str, int]:
    """Return host and port.

    >>> listen_on("127.0.0.1:8080"), listen_on("[::1]:80")
    (('127.0.0.1', 8080), ('::1', 80))
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise UsageError(
            f"'{text:.60}' is not an address to listen on; expected HOST:PORT, as 127.0.0.1:8080"
        )
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """True if only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(
    settings: Settings, listen: str, hosts: Sequence[str], *, public: bool, ready: Callable[[str], None]
) -> None:
    """Serve until interrupted; ``ready`` is called with the address.

    Raises :class:`UsageError` for an address that others reach, unless ``public``, and
    :class:`MissingExtraError` without the extra.
    """
    host, port = listen_on(listen)
    chosen = settings.section(WebSettings)
    if not public and not chosen.trusted_proxies and not is_loopback(host):
        raise UsageError(
            f"others reach {host}, and the pages name people: add --public to hide them, or set "
            "web.trusted_proxies to the proxy that asks who reads"
        )
    uvicorn: Any = require("uvicorn", extra="web", needed_by="esjobs web")
    require("starlette", extra="web", needed_by="esjobs web")
    web = web_of(settings, public=public)
    bound = _bound(host, port)
    ours = {
        "127.0.0.1",
        "localhost",
        "[::1]",
        host.lower(),
        f"[{host.lower()}]",
        *(each.lower() for each in hosts),
        urlsplit(chosen.base_url or "").hostname or "",
    } - {""}
    config = uvicorn.Config(
        web.application(ours),
        http=_prompt(),
        # whom to believe is a matter of :mod:`esjobs.web.access`
        proxy_headers=False,
        server_header=False,
        date_header=True,
        # addresses may hold names of people, and the tokens of links
        access_log=False,
        log_level="warning",
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=16_384,
    )
    ready(f"http://{listen}/")
    uvicorn.Server(config).run(sockets=[bound])


def web_of(settings: Settings, *, public: bool, clock: Clock = system_clock) -> "Web":
    """Return the application of some settings: sources, readers, and what is needed to enter something."""
    from esjobs.web.app import Web
    from esjobs.web.source import Source

    chosen = settings.section(WebSettings)
    path = chosen.journal_of(settings.location)
    acting = Acting(None if path is None else Journal(path), links_of(chosen, settings.location))
    access = Access(chosen, public=public, clock=clock)
    hides = public and not access.has_login
    has_file = embedded_file(settings) is not None
    hidden = Source(settings, hides_people=True, clock=clock) if access.has_login and has_file else None
    source = Source(settings, hides_people=hides, clock=clock)
    return Web(source, public=hides, hidden=hidden, access=access, acting=acting, base_url=chosen.base_url)


def _prompt() -> "type[H11Protocol]":
    """Connections that end where a peer sends no whole request, or does not read, for some seconds."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Prompt(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._last: object = None
            self.loop.call_later(_LONGEST_SILENCE_S, self._look)

        def _look(self) -> None:
            cycle: Any = self.cycle
            is_idle = cycle is None or cycle.response_complete
            # the same as at the look before: nothing was asked in between
            if is_idle and cycle is self._last:
                self.transport.abort()
            elif not self.transport.is_closing():
                self._last = cycle
                self.loop.call_later(_LONGEST_SILENCE_S, self._look)

    return Prompt


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # a restart need not wait until connections of the process before are forgotten
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise UsageError(
            f"cannot listen on {host} port {port}: {error.strerror}; use another address: --listen HOST:PORT"
        ) from error
    return bound
