"""Limits and headers around the whole application, also around its errors."""

import logging
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger(__name__)

# Content security policy of every answer
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
# Headers of every answer; pages behind a link never tell where a reader comes from
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NO_REFERRER = (b"referrer-policy", b"no-referrer")
_LONGEST_ADDRESS = 8192
_LARGEST_BODY = {"POST": 64 << 10}
_MOST_AT_A_TIME = 200


class Shield:
    """Application that admits short requests for our own names.

    ``hosts``: names that a request may be for, in lower case and without ports. Others would let a page of
    somebody else reach a reader's own machine by a name of theirs.
    """

    def __init__(self, inner: Application, hosts: Collection[str]) -> None:
        self._inner = inner
        self._hosts = frozenset(hosts)
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        began, ours = False, dict(HEADERS)
        if scope["path"].startswith("/a/"):
            ours |= [_NO_REFERRER]

        async def protected(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                others = [each for each in message.get("headers", ()) if each[0].lower() not in ours]
                message = {**message, "headers": [*others, *ours.items()]}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refuse(protected, *refusal)
            return
        self._running += 1
        try:
            await self._inner(scope, receive, protected)
        except Exception as error:  # the last place where a reader can still be answered
            # addresses may hold names of people
            _log.error("a request failed: %s", type(error).__name__, exc_info=error)
            if not began:
                await refuse(protected, 500, "The server failed; its log says why.")
        finally:
            self._running -= 1

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and sentence for a request that is not admitted."""
        headers = dict(scope["headers"])
        if _host(headers.get(b"host", b"")) not in self._hosts:
            return 421, "This name leads elsewhere; the operator can allow it: esjobs web --host NAME."
        length = headers.get(b"content-length", b"0")
        if (
            # a body in chunks does not say how long it becomes
            b"transfer-encoding" in headers
            or not length.isdigit()
            or int(length) > _LARGEST_BODY.get(scope["method"], 0)
        ):
            return 413, "The body of this request is too long, or it may have none."
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _LONGEST_ADDRESS:
            return 414, "The address is too long."
        if self._running >= _MOST_AT_A_TIME:
            return 503, "Too many requests at a time; ask again in a moment."
        return None


async def refuse(send: Send, status: int, sentence: str) -> None:
    """Send a short text."""
    body = f"{sentence}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers.append((b"cache-control", b"no-store"))
    if status == 503:
        headers.append((b"retry-after", b"2"))
    # its body stays unread, so nothing can follow on this connection
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _host(header: bytes) -> str:
    """The name of a host without its port.

    >>> _host(b"Grid.example:8080"), _host(b"[::1]:8080"), _host(b"")
    ('grid.example', '[::1]', '')
    """
    text = header.decode("latin-1").lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]
