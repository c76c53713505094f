"""A server that answers as Kibana 8.12.2 and OpenSearch Dashboards 2.8.0 were seen to answer, on loopback.

Live servers are asked elsewhere; this one can be made to fail in every way that an operator may meet.
"""

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Reply = tuple[int, dict[str, str], bytes]


_OF_A_RULE = {"name", "tags", "schedule", "throttle", "params", "actions", "notify_when"}
"""What a change of a rule may name."""


@dataclass
class StandIn:
    """What the server is, has, and does wrong. ``requests``: method, path, headers, body of each."""

    name: str = "kbn"
    version: str = "8.12.2"
    url: str = ""
    spaces: tuple[str, ...] | None = ("default", "grid")
    objects: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    refuses: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    moves: dict[tuple[str, str], str] = field(default_factory=dict)
    forgets: set[tuple[str, str]] = field(default_factory=set)
    unnamed: set[tuple[str, str]] = field(default_factory=set)
    faults: dict[str, Reply | Callable[[], Reply]] = field(default_factory=dict)
    drips: bool = False
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def has(self, space: str = "default") -> set[tuple[str, str]]:
        """Type and id of what is there."""
        return self.objects.setdefault(space, set())

    def reply(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        self.requests.append((method, target, headers, body))
        parts = urlsplit(target)
        match = re.match(r"(?:/s/([^/]+))?(/.*)", parts.path)
        assert match is not None
        space, path = match[1] or "default", match[2]
        for beginning, fault in self.faults.items():
            if f"{method} {path}".startswith(beginning):
                return fault() if callable(fault) else fault
        if method != "GET" and f"{self.name}-xsrf" not in headers:
            return self.error(400, f"Request must contain a {self.name}-xsrf header.")
        if path == "/api/status":
            return self.json(200, {"version": {"number": self.version}, "status": {}})
        if path == "/api/spaces/space" and self.spaces is not None:
            return self.json(200, [{"id": one} for one in self.spaces])
        if path == "/api/saved_objects/_export":
            return self._export(space, json.loads(body))
        if path == "/api/saved_objects/_import":
            assert parse_qs(parts.query) == {"overwrite": ["true"]}
            return self._import(space, _uploaded(headers, body))
        if method == "DELETE" and (found := re.fullmatch(r"/api/saved_objects/([^/]+)/([^/]+)", path)):
            key = unquote(found[1]), unquote(found[2])
            if key not in self.has(space):
                return self.error(404, f"Saved object [{key[0]}/{key[1]}] not found")
            self.has(space).discard(key)
            return self.json(200, {})
        if found := re.fullmatch(r"/api/alerting/rule/([^/]+)", path):
            return self._rule(method, unquote(found[1]), body)
        return self.error(404, "Not Found")

    def _rule(self, method: str, id_: str, body: bytes) -> Reply:
        there = self.rules.get(id_)
        if method == "POST" and there is None:
            self.rules[id_] = json.loads(body)
            return self.json(200, {"id": id_, **self.rules[id_]})
        if there is None:
            return self.error(404, f"Saved object [alert/{id_}] not found")
        if method == "PUT":
            given = json.loads(body)
            unknown = set(given) - _OF_A_RULE
            if unknown:
                return self.error(400, f"[request body.{min(unknown)}]: definition for this key is missing")
            there.update(given)
        if method == "DELETE":
            del self.rules[id_]
            return 204, {}, b""
        return self.json(200, {"id": id_, **there})

    def error(self, status: int, message: str, **more: Any) -> Reply:
        return self.json(status, {"statusCode": status, "error": "x", "message": message} | more)

    def json(self, status: int, content: Any) -> Reply:
        return status, {"content-type": "application/json"}, json.dumps(content).encode()

    def _export(self, space: str, asked: Any) -> Reply:
        keys = [(one["type"], one["id"]) for one in asked["objects"]]
        unknown = [key for key in keys if self.name == "osd" and key[0] in ("lens", "links", "tag")]
        if unknown:
            names = ", ".join(f"{type_}:{id_}" for type_, id_ in unknown)
            return self.error(400, f"Trying to export object(s) with non-exportable types: {names}")
        missing = [key for key in keys if key not in self.has(space)]
        if missing:
            entries = [
                {"type": type_, "id": id_, "error": {"statusCode": 404, "message": "not found"}}
                for type_, id_ in missing
            ]
            return self.error(400, "Error fetching objects to export", attributes={"objects": entries})
        return 200, {"content-type": "application/ndjson"}, b"\n".join(b"{}" for _ in keys)

    def _import(self, space: str, lines: list[dict[str, Any]]) -> Reply:
        good: list[dict[str, Any]] = []
        bad: list[dict[str, Any]] = []
        for line in lines:
            key = line["type"], line["id"]
            entry = {"type": key[0], "id": key[1], "meta": {"title": "t"}}
            if key in self.refuses:
                bad.append(entry | {"error": self.refuses[key]})
                continue
            if key in self.moves:
                entry["destinationId"] = self.moves[key]
                self.has(space).add((key[0], self.moves[key]))
            elif key not in self.forgets:
                self.has(space).add(key)
            if key not in self.unnamed:
                good.append(entry)
        answer: dict[str, Any] = {"success": not bad, "successCount": len(good), "successResults": good}
        return self.json(200, answer | ({"errors": bad} if bad else {}))


@contextmanager
def standing_in(server: StandIn) -> Iterator[StandIn]:
    """Run the server; its address is in ``url``."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, sent, content = server.reply(self.command, self.path, headers, body)
            self.send_response(status)
            for name, value in ({f"{server.name}-name": "host"} | sent).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # who asked has given up
                if not server.drips:
                    self.wfile.write(content)
                for byte in content if server.drips else b"":
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.05)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - names of the standard library

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.url = f"http://127.0.0.1:{httpd.server_port}"
    try:
        yield server
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


def late(seconds: float) -> Callable[[], Reply]:
    """An answer that comes too late."""

    def reply() -> Reply:
        time.sleep(seconds)
        return 200, {}, b"{}"

    return reply


def _uploaded(headers: dict[str, str], body: bytes) -> list[dict[str, Any]]:
    """The lines of the file in the form field ``file``."""
    message = BytesParser(policy=HTTP).parsebytes(
        b"content-type: " + headers["content-type"].encode() + b"\r\n\r\n" + body
    )
    (part,) = message.iter_parts()
    assert part.get_param("name", header="content-disposition") == "file"
    assert str(part.get_filename()).endswith(".ndjson")
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    return [json.loads(line) for line in content.splitlines() if line.strip()]
