"""Plain HTTP with JSON, so that tests of the servers depend on nobody's client."""

import base64
import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Body = Mapping[str, Any] | Sequence[Any] | str | None
Login = tuple[str, str] | None


@dataclass(frozen=True)
class Answer:
    """Status and body; ``json`` is the parsed body, or its text when it is no JSON."""

    status: int
    json: Any


def call(
    method: str, url: str, path: str, body: Body = None, *, login: Login = None, timeout_s: float = 30.0
) -> Answer:
    """Send one request on a connection of its own; a text as body is sent as NDJSON.

    Raises ``OSError`` or ``http.client.HTTPException`` when nobody answers.
    """
    headers = {}
    if login is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()
    if body is not None:
        headers["Content-Type"] = "application/x-ndjson" if isinstance(body, str) else "application/json"
    data = body if isinstance(body, str) or body is None else json.dumps(body)
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=timeout_s)
    try:
        connection.request(method, f"/{path.removeprefix('/')}", data and data.encode(), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    try:
        return Answer(answer.status, json.loads(text))
    except json.JSONDecodeError:
        return Answer(answer.status, text)
