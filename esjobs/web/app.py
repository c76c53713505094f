"""The application: addresses of the table, answers from the cache, errors as pages or problems."""

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from urllib.parse import quote, urlencode

from esjobs.core.errors import EsjobsError, NoJobsError, NoResultError, StoreError, UsageError
from esjobs.core.extras import require
from esjobs.web.answers import Answers, Key, OverloadedError, Reply
from esjobs.web.api import MEDIA
from esjobs.web.openapi import PROBLEM, description
from esjobs.web.pages import problem_page
from esjobs.web.request import AbsentError, GoneError, Request, Route
from esjobs.web.shield import Application, Shield
from esjobs.web.source import Shown, Source
from esjobs.web.table import PAGES, ROWS

require("starlette", extra="web", needed_by="esjobs web")

from starlette.applications import Starlette  # noqa: E402  only after it is known to be there
from starlette.concurrency import run_in_threadpool  # noqa: E402
from starlette.convertors import StringConvertor, register_url_convertor  # noqa: E402
from starlette.exceptions import HTTPException  # noqa: E402
from starlette.requests import Request as Incoming  # noqa: E402
from starlette.responses import Response  # noqa: E402
from starlette.routing import Route as Served  # noqa: E402

HTML = "text/html; charset=utf-8"
_WARMED, _MOST_COMPUTED = 64, 1000


class _AnyConvertor(StringConvertor):
    """The rest of a path, whatever characters a name has; ``path`` of Starlette admits no line ends."""

    regex = "(?s:.+)"


register_url_convertor("any", _AnyConvertor())


class NotAcceptableError(UsageError):
    """No format of an answer is acceptable."""


class Web:
    """Requests, answered from a source. ``public``: addresses that name people lead nowhere."""

    def __init__(self, source: Source, *, public: bool = False) -> None:
        self._source = source
        self._public = public
        self._answers = Answers()
        self._computed: dict[Key, Callable[[Shown], Reply]] = {}
        source.warm = self._warm

    def application(self, hosts: Collection[str]) -> Application:
        """Return the whole as an ASGI application for requests to these hosts."""
        openapi = Route("/api/v1/openapi.json", _document, "This description.", forms=("json",))
        routes = [each for each in (*PAGES, *ROWS, openapi) if not (self._public and each.people)]
        served = [Served(each.pattern, partial(self._serve, each), methods=["GET"]) for each in routes]
        inner = Starlette(
            routes=served, lifespan=self._lifespan, exception_handlers={HTTPException: self._lost}
        )
        inner.router.redirect_slashes = False
        return Shield(inner, hosts)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        self._answers.close()
        self._source.close()

    async def _serve(self, route: Route, incoming: Incoming) -> Response:
        try:
            form = _form(route, incoming)
            values = _values(route, incoming)
            shown = await run_in_threadpool(self._source.taken)
        except EsjobsError as error:
            return self._problem(incoming, *_status(error))
        try:
            etag = f'W/"{shown.version}.{"public" if self._public else "all"}.{form}"'
            if _matches(incoming.headers.get("if-none-match", ""), etag):
                return Response(status_code=304, headers=self._headers(etag))
            path = quote(incoming.scope["path"], safe="/:@!$&'()*+,;=~-._")
            query = urlencode([(name, each) for name in sorted(values) for each in values[name]])
            key = (shown.version, f"{path}?{query}", form)
            compute = partial(self._compute, route, path, dict(incoming.path_params), values, form)
            reply = await self._answers.get(key, partial(self._remembered, key, compute, shown))
            return self._response(incoming, reply, etag)
        except EsjobsError as error:
            return self._problem(incoming, *_status(error))
        finally:
            shown.release()

    def _compute(
        self,
        route: Route,
        path: str,
        parts: Mapping[str, str],
        values: Mapping[str, tuple[str, ...]],
        form: str,
        shown: Shown,
    ) -> Reply:
        now = self._source.now()
        shown.take()
        try:
            return route.handler(Request(shown, shown.session, now, path, parts, values, form, self._public))
        finally:
            shown.release()

    def _remembered(self, key: Key, compute: Callable[[Shown], Reply], shown: Shown) -> Reply:
        self._computed[key] = compute
        while len(self._computed) > _MOST_COMPUTED:
            self._computed.pop(next(iter(self._computed)), None)
        return compute(shown)

    def _warm(self, shown: Shown) -> None:
        """Compute the answers used last for the next state, before it is shown."""
        computed, self._computed = self._computed, {}
        for key in self._answers.last_used(_WARMED):
            if key not in computed:
                continue
            renewed = (shown.version, *key[1:])
            try:
                self._answers.keep(renewed, computed[key](shown))
            except EsjobsError:
                continue
            self._computed[renewed] = computed[key]

    def _response(self, incoming: Incoming, reply: Reply, etag: str) -> Response:
        headers = (
            {"cache-control": "public, max-age=31536000, immutable"} if reply.lasting else self._headers(etag)
        )
        if reply.status != HTTPStatus.OK:
            headers = {"cache-control": "no-store"}
        if reply.next:
            headers["link"] = f'<{reply.next}>; rel="next"'
        body = reply.body
        if reply.packed is not None and "gzip" in incoming.headers.get("accept-encoding", ""):
            body = reply.packed
            headers["content-encoding"] = "gzip"
        headers["vary"] = "Accept, Accept-Encoding"
        return _reading(incoming, body, reply.status, headers, reply.media)

    def _headers(self, etag: str) -> dict[str, str]:
        control = "public, max-age=60" if self._public else "private, no-cache"
        return {"etag": etag, "cache-control": control, "vary": "Accept, Accept-Encoding"}

    async def _lost(self, incoming: Incoming, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return self._problem(incoming, status, "This address leads nowhere.")

    def _problem(self, incoming: Incoming, status: int, sentence: str) -> Response:
        title = HTTPStatus(status).phrase
        headers = {"cache-control": "no-store"}
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers["retry-after"] = "2"
        if incoming.url.path.startswith(("/api/", "/health")):
            problem = {"type": "about:blank", "title": title, "status": status, "detail": sentence}
            return _reading(incoming, json.dumps(problem).encode(), status, headers, PROBLEM)
        return _reading(incoming, problem_page(title, sentence).encode(), status, headers, HTML)


def _document(_request: Request) -> Reply:
    return Reply(json.dumps(description(ROWS)).encode(), MEDIA["json"])


def _reading(incoming: Incoming, body: bytes, status: int, headers: dict[str, str], media: str) -> Response:
    """A response; to HEAD without the body, whose length it tells."""
    headers["content-length"] = str(len(body))
    return Response(b"" if incoming.method == "HEAD" else body, status, headers, media)


def _values(route: Route, incoming: Incoming) -> dict[str, tuple[str, ...]]:
    """The parameters of a request. Raises :class:`UsageError` for one that the address does not have."""
    accepted = {each.name: each for each in route.parameters}
    values: dict[str, tuple[str, ...]] = {}
    for name, value in incoming.query_params.multi_items():
        if name == "format" and len(route.forms) > 1:
            continue
        if name not in accepted:
            names = ", ".join(accepted) or "none"
            raise UsageError(f"unknown parameter '{name:.40}'; parameters here: {names}")
        if name in values and not accepted[name].many:
            raise UsageError(f"'{name}' stands twice; give it once")
        if accepted[name].choices and value not in ("", *accepted[name].choices):
            raise UsageError(f"{name} must be one of {', '.join(accepted[name].choices)}; got '{value:.40}'")
        values[name] = (*values.get(name, ()), value)
    return values


def _form(route: Route, incoming: Incoming) -> str:
    """The format of an answer: the parameter, else the best accepted one."""
    named = incoming.query_params.getlist("format")
    if named and len(route.forms) > 1:
        if len(named) > 1 or named[0] not in route.forms:
            raise UsageError(f"format must be one of {', '.join(route.forms)}, once; got '{named[0]:.40}'")
        return named[0]
    if len(route.forms) == 1:
        return route.forms[0]
    accept = incoming.headers.get("accept", "*/*")
    found = max(route.forms, key=lambda form: _quality(accept, MEDIA[form].partition(";")[0]))
    if _quality(accept, MEDIA[found].partition(";")[0]) <= 0:
        raise NotAcceptableError(f"acceptable types here: {', '.join(MEDIA[form] for form in route.forms)}")
    return found


def _quality(accept: str, media: str) -> float:
    """Preference for a type, from 0 to 1; the most exact range decides.

    >>> _quality("text/csv, */*;q=0.1", "text/csv"), _quality("text/*;q=0.5", "text/csv")
    (1.0, 0.5)
    >>> _quality("text/html", "text/csv"), _quality("*/*;q=much", "text/csv")
    (0.0, 0.0)
    """
    ranges = (media, f"{media.partition('/')[0]}/*", "*/*")
    found: dict[str, float] = {}
    for each in accept.lower().split(","):
        name, *parameters = (part.strip() for part in each.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            found[name] = float(quality)
        except ValueError:
            found[name] = 0.0
    return next((found[name] for name in ranges if name in found), 0.0)


def _matches(header: str, etag: str) -> bool:
    """True if a header names an entity tag, compared weakly."""
    tags = [each.strip().removeprefix("W/") for each in header.split(",")]
    return "*" in tags or etag.removeprefix("W/") in tags


_STATUS: tuple[tuple[type[EsjobsError], int], ...] = (
    (AbsentError, 404),
    (GoneError, 410),
    (NotAcceptableError, 406),
    (OverloadedError, 503),
    (NoResultError, 404),
    (NoJobsError, 404),
    (UsageError, 400),
)


def _status(error: EsjobsError) -> tuple[int, str]:
    """Status and sentence of an error; those of a store name files and servers, and stay in the log."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status, str(error)
    if isinstance(error, StoreError):
        return 503, "The store cannot be read at the moment; ask again soon."
    return 500, "The server failed; its log says why."
