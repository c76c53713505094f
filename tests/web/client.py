"""Requests to the application in this process."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import unquote, urlencode

from esjobs.web.shield import Application


@dataclass(frozen=True)
class Got:
    """A response. ``headers``: names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Client:
    """Sends requests to an application, one loop for all of them."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.peer = "127.0.0.1"
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def get(self, address: str, method: str = "GET", body: str = "", **headers: str) -> Got:
        """Send one request; headers with ``_`` for ``-``."""
        return self._runner.run(self.ask(address, method, body.encode(), headers))

    def send(self, address: str, fields: Mapping[str, str], **headers: str) -> Got:
        """Send a form as a browser does from the page itself."""
        usual = {"content_type": "application/x-www-form-urlencoded", "sec_fetch_site": "same-origin"}
        return self.get(address, "POST", urlencode(fields), **{**usual, **headers})

    def together(self, addresses: list[str]) -> list[Got]:
        """Send several requests at a time."""

        async def all_of_them() -> list[Got]:
            return await asyncio.gather(*(self.ask(each, "GET", b"", {}) for each in addresses))

        return self._runner.run(all_of_them())

    async def ask(self, address: str, method: str, body: bytes, headers: Mapping[str, str]) -> Got:
        """Send one request."""
        path, _, query = address.partition("?")
        named = {"host": "localhost", **{name.replace("_", "-"): text for name, text in headers.items()}}
        if body:
            named["content-length"] = str(len(body))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), text.encode()) for name, text in named.items()],
            "client": (self.peer, 1),
            "server": ("127.0.0.1", 8080),
        }
        messages: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        await self.application(scope, receive, send)
        start = messages[0]
        told = {name.decode().lower(): text.decode() for name, text in start["headers"]}
        return Got(start["status"], told, b"".join(each.get("body", b"") for each in messages[1:]))
