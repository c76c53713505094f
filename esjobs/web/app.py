"""The application: addresses of the table, answers from the cache, errors as pages or problems."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, urlencode

from esjobs.core.errors import EsjobsError, NoJobsError, NoResultError, StoreError, UsageError
from esjobs.core.extras import require
from esjobs.flags.answering.settings import WebSettings
from esjobs.web.access import (
    Access,
    ForbiddenError,
    Limits,
    Reader,
    TooManyError,
    UnauthorizedError,
    require_own_form,
)
from esjobs.web.answers import Answers, Key, OverloadedError, Reply
from esjobs.web.api import MEDIA
from esjobs.web.openapi import PROBLEM, description
from esjobs.web.pages import problem_page
from esjobs.web.request import AbsentError, Acting, GoneError, Request, Route
from esjobs.web.scope import scoped
from esjobs.web.shield import Application, Shield
from esjobs.web.source import Shown, Source
from esjobs.web.table import ACTS, PAGES, ROWS

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
_LONGEST_BODY_S, _MOST_FIELDS = 10.0, 20


class _AnyConvertor(StringConvertor):
    """The rest of a path, whatever characters a name has; ``path`` of Starlette admits no line ends."""

    regex = "(?s:.+)"


register_url_convertor("any", _AnyConvertor())


class NotAcceptableError(UsageError):
    """No format of an answer is acceptable."""


class _Shelf:
    """A source with the answers about it, which are never those about another."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.answers = Answers()
        self._computed: dict[Key, Callable[[Shown], Reply]] = {}
        source.warm = self._warm

    def close(self) -> None:
        """End computations and close the source."""
        self.answers.close()
        self.source.close()

    def remembered(self, key: Key, compute: Callable[[Shown], Reply], shown: Shown) -> Reply:
        """Compute an answer, and remember how for the next state."""
        self._computed[key] = compute
        while len(self._computed) > _MOST_COMPUTED:
            self._computed.pop(next(iter(self._computed)), None)
        return compute(shown)

    def _warm(self, shown: Shown) -> None:
        """Compute the answers used last for the next state, before it is shown."""
        computed, self._computed = self._computed, {}
        for key in self.answers.last_used(_WARMED):
            if key not in computed:
                continue
            renewed = (shown.version, *key[1:])
            try:
                self.answers.keep(renewed, computed[key](shown))
            # what was asked before may have no answer in the next state
            except EsjobsError:
                continue
            self._computed[renewed] = computed[key]


class Web:
    """Requests, answered from a source.

    ``public``: no reader without a role sees names of people. ``hidden``: the source without these names, for
    readers who may not see them; None: ``source`` is one, or there is none. ``access``: who reads.
    """

    def __init__(
        self,
        source: Source,
        *,
        public: bool = False,
        hidden: Source | None = None,
        access: Access | None = None,
        acting: Acting = Acting(),  # noqa: B008  frozen
        base_url: str | None = None,
    ) -> None:
        self._public = public
        self._shelf = _Shelf(source)
        self._hidden = None if hidden is None else _Shelf(hidden)
        self._access = access or Access(WebSettings(), public=public)
        self._acting = acting
        self._base_url = base_url
        self._limits = Limits()

    def application(self, hosts: Collection[str]) -> Application:
        """Return the whole as an ASGI application for requests to these hosts."""
        openapi = Route("/api/v1/openapi.json", _document, "This description.", forms=("json",))
        routes: dict[str, dict[str, Route]] = {}
        for each in (*PAGES, *ACTS, *ROWS, openapi):
            routes.setdefault(each.pattern, {})[each.method] = each
        served = [
            Served(pattern, partial(self._routed, by_method), methods=list(by_method))
            for pattern, by_method in routes.items()
        ]
        inner = Starlette(
            routes=served, lifespan=self._lifespan, exception_handlers={HTTPException: self._lost}
        )
        inner.router.redirect_slashes = False
        return Shield(inner, hosts)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        for each in filter(None, (self._shelf, self._hidden)):
            each.close()

    async def _routed(self, by_method: Mapping[str, Route], incoming: Incoming) -> Response:
        route = by_method["POST" if incoming.method == "POST" else "GET"]
        try:
            reader = self._access.reader(incoming.scope)
            self._require(route, reader, incoming)
            form = _form(route, incoming)
            sent = incoming.query_params.multi_items() if route.method == "GET" else await _sent(incoming)
            values = _values(route, sent)
            shelf = self._shelf_of(route, reader)
            shown = await run_in_threadpool(shelf.source.taken)
        except EsjobsError as error:
            return self._problem(incoming, *_status(error))
        try:
            return await self._answer(route, incoming, reader, values, form, shelf, shown)
        except EsjobsError as error:
            return self._problem(incoming, *_status(error))
        finally:
            shown.release()

    def _require(self, route: Route, reader: Reader, incoming: Incoming) -> None:
        """Raise an error for a request that is not admitted. Acts and links are counted per peer."""
        if route.private:
            self._limits.take(self._access.peer(incoming.scope), time.monotonic())
        if not reader.may(route.role):
            # nobody can become more here: the page does not exist
            if not self._access.has_login and not reader.name:
                raise AbsentError("This address leads nowhere.")
            raise ForbiddenError(f"this page requires the role {route.role}; yours is {reader.role}")
        if route.method == "POST":
            require_own_form(incoming.scope, self._base_url)

    def _shelf_of(self, route: Route, reader: Reader) -> _Shelf:
        """The answers that a reader may see; a page behind a link chooses what it shows itself."""
        if reader.may("support") or self._public or route.role == "nobody":
            return self._shelf
        if self._hidden is None:
            raise ForbiddenError("names of people cannot be hidden here; this requires the role support")
        return self._hidden

    async def _answer(
        self,
        route: Route,
        incoming: Incoming,
        reader: Reader,
        values: Mapping[str, tuple[str, ...]],
        form: str,
        shelf: _Shelf,
        shown: Shown,
    ) -> Response:
        path = quote(incoming.scope["path"], safe="/:@!$&'()*+,;=~-._")
        compute = partial(self._compute, shelf, route, reader, path, dict(incoming.path_params), values, form)
        if route.private:
            reply = await shelf.answers.once(partial(compute, shown))
            return self._response(incoming, reply, "")
        journal = self._acting.journal
        # pages with entries change between two states, too
        acts = f".{journal.size()}" if route.acts and journal is not None else ""
        scope = f"{reader.scope}{acts}.{form}"
        etag = f'W/"{shown.version}.{scope}"'
        if _matches(incoming.headers.get("if-none-match", ""), etag):
            return Response(status_code=304, headers=self._headers(etag))
        # the order of parameters makes no other answer
        query = urlencode([(name, each) for name in sorted(values) for each in values[name]])
        key = (shown.version, f"{path}?{query}", scope)
        reply = await shelf.answers.get(key, partial(shelf.remembered, key, compute, shown))
        return self._response(incoming, reply, etag)

    def _compute(
        self,
        shelf: _Shelf,
        route: Route,
        reader: Reader,
        path: str,
        parts: Mapping[str, str],
        values: Mapping[str, tuple[str, ...]],
        form: str,
        shown: Shown,
    ) -> Reply:
        now = shelf.source.now()
        # the computation may go on after its reader has given up and let go of the state
        shown.take()
        try:
            session = shown.session
            if reader.role == "site":
                session = shown.once(f"of {reader.scope}", partial(scoped, shown, reader.sites))
            hides = self._public or not reader.may("support")
            request = Request(shown, session, now, path, parts, values, form, hides, reader, self._acting)
            return route.handler(request)
        finally:
            shown.release()

    def _response(self, incoming: Incoming, reply: Reply, etag: str) -> Response:
        headers = (
            {"cache-control": "public, max-age=31536000, immutable"} if reply.lasting else self._headers(etag)
        )
        # a copy of a redirect or of a page behind a link must not outlive it
        if reply.status != HTTPStatus.OK or not etag:
            headers = {"cache-control": "no-store"}
        if reply.next:
            headers["link"] = f'<{reply.next}>; rel="next"'
        if reply.location:
            headers["location"] = reply.location
        body = reply.body
        if reply.packed is not None and "gzip" in incoming.headers.get("accept-encoding", ""):
            body = reply.packed
            headers["content-encoding"] = "gzip"
        headers["vary"] = "Accept, Accept-Encoding"
        return _reading(incoming, body, reply.status, headers, reply.media)

    def _headers(self, etag: str) -> dict[str, str]:
        # a shared cache may keep only what all readers see alike
        everybody = self._public and not self._access.has_login
        control = "public, max-age=60" if everybody else "private, no-cache"
        return {"etag": etag, "cache-control": control, "vary": "Accept, Accept-Encoding"}

    async def _lost(self, incoming: Incoming, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        allowed = (getattr(error, "headers", None) or {}).get("Allow", "")
        said = "This address leads nowhere." if status == HTTPStatus.NOT_FOUND else "Nothing is entered here."
        response = self._problem(incoming, status, said)
        if allowed:
            response.headers["allow"] = ", ".join(sorted(allowed.split(", ")))
        return response

    def _problem(self, incoming: Incoming, status: int, sentence: str) -> Response:
        title = HTTPStatus(status).phrase
        headers = {"cache-control": "no-store"}
        if status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS):
            headers["retry-after"] = "2"
        if status == HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = "Bearer"
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


async def _sent(incoming: Incoming) -> list[tuple[str, str]]:
    """The fields of a form. Raises :class:`UsageError` for another body, or one that comes too slowly."""
    if incoming.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise UsageError("a form is application/x-www-form-urlencoded")
    try:
        async with asyncio.timeout(_LONGEST_BODY_S):
            body = await incoming.body()
    except TimeoutError:
        raise UsageError("the form came too slowly; send it again") from None
    try:
        text = body.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise UsageError("the form cannot be read; its text must be UTF-8") from None


def _values(route: Route, sent: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The parameters of a request. Raises :class:`UsageError` for one that the address does not have."""
    accepted = {each.name: each for each in route.parameters}
    # read by :func:`_form`
    ignored = ("format",) if len(route.forms) > 1 else ()
    values: dict[str, tuple[str, ...]] = {}
    for name, value in sent:
        if name in ignored:
            continue
        found = accepted.get(name)
        if found is None:
            names = ", ".join(accepted) or "none"
            raise UsageError(f"unknown parameter '{name:.40}'; parameters here: {names}")
        if name in values and not found.many:
            raise UsageError(f"'{name}' occurs twice; use it once")
        if found.choices and value not in ("", *found.choices):
            raise UsageError(f"{name} must be one of {', '.join(found.choices)}; got '{value:.40}'")
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
    # of equal ones the first: what the address usually answers
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
    (UnauthorizedError, 401),
    (ForbiddenError, 403),
    (TooManyError, 429),
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
