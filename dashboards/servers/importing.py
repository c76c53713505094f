"""Imports: what would happen, and what happened, object by object."""

from collections.abc import Iterator, Mapping
from typing import Any

from dashboards.servers.bundle import Bundle, SavedObject
from dashboards.servers.client import Answer, Client
from dashboards.servers.outcome import Outcome
from dashboards.servers.present import present
from dashboards.servers.product import Server
from dashboards.servers.spaces import path_of
from esjobs.core.errors import DashboardsError
from esjobs.core.redact import excerpt

_IMPORT = "/api/saved_objects/_import"


def plan_import(client: Client, server: Server, bundle: Bundle, space: str | None = None) -> list[Outcome]:
    """Return the outcomes of an import, in the order of the bundle, without any change.

    Raises :class:`DashboardsError` when the server does not say what it has.
    """
    existing = present(client, server, path_of(client, server, space), bundle.objects)
    return [Outcome(one, "replaced" if one.key in existing else "new") for one in bundle.objects]


def import_bundle(client: Client, server: Server, bundle: Bundle, space: str | None = None) -> list[Outcome]:
    """Write all objects of a bundle, in place of those with the same ids, and say what became of each.

    An object counts as written when the server names it as written under its own id and has it afterwards.
    Asked again, an import gives the same objects.

    Raises :class:`DashboardsError` when the whole import is refused; nothing was written then.
    """
    path = path_of(client, server, space)
    before = present(client, server, path, bundle.objects)
    answer = client.ask(
        "POST",
        path + _IMPORT,
        headers=server.headers,
        # without it an object that exists is a conflict, and a second import fails
        params={"overwrite": "true"},
        upload=("esjobs.ndjson", bundle.content),
    )
    if answer.status != 200:
        raise _refused(client, server, answer)
    found = answer.json()
    if not isinstance(found, dict) or "success" not in found:
        raise client.refusal(answer, "the import")
    failures = dict(_failures(found, server))
    written = dict(_written(found))
    # servers name objects as written that they dropped: asked again
    after = present(client, server, path, bundle.objects)
    outcomes = []
    for one in bundle.objects:
        reason = failures.get(one.key) or _lost(one, written, after)
        state = "failed" if reason else "replaced" if one.key in before else "new"
        outcomes.append(Outcome(one, state, reason))  # type: ignore[arg-type]
    return outcomes


def _refused(client: Client, server: Server, answer: Answer) -> DashboardsError:
    said = answer.message()
    # the stamp of an object is newer than the server
    if answer.status == 422:
        return DashboardsError(
            f"{client.url} rejected the whole import (HTTP 422: {said}): {server} is older than the objects; "
            "import --target portable, or a bundle of an older esjobs"
        )
    if answer.status == 500:
        return DashboardsError(
            f"{client.url} failed to import (HTTP 500: {said or 'no reason'}) and wrote nothing; see its "
            "log, and try --target portable"
        )
    return client.refusal(answer, "the import")


def _written(found: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """By object: the id under which it was written."""
    for one in _entries(found, "successResults"):
        yield (str(one.get("type")), str(one.get("id"))), str(one.get("destinationId") or one.get("id"))


def _failures(found: Mapping[str, Any], server: Server) -> Iterator[tuple[tuple[str, str], str]]:
    """By object: why it was not written, and what to do."""
    for one in _entries(found, "errors"):
        error = one.get("error")
        yield (
            (str(one.get("type")), str(one.get("id"))),
            _sentence(error if isinstance(error, dict) else {}, server),
        )


def _entries(found: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    entries = found.get(key)
    return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []


def _sentence(error: Mapping[str, Any], server: Server) -> str:
    kind = error.get("type")
    if kind == "missing_references":
        names = ", ".join(f"{one.get('type')}/{one.get('id')}" for one in _entries(error, "references"))
        return f"refers to {names}, which was not written either; see the reason there"
    if kind == "unsupported_type":
        return f"{server} does not support such objects; import --target portable"
    if kind in ("conflict", "ambiguous_conflict"):
        return "another space has an object with this id; import into one space, or use a different --prefix"
    said = excerpt(str(error.get("message") or kind or "no reason given"), 300)
    return f"{said}; see the log of {server}, or import --target portable"


def _lost(one: SavedObject, written: Mapping[tuple[str, str], str], after: set[tuple[str, str]]) -> str:
    """Return objects that the server omitted from its list of failures."""
    id_ = written.get(one.key)
    if id_ is None:
        return "not in the response; check whether it exists, and import again"
    # an id is unique over all spaces: a server gives the second object a new one and says so here only
    if id_ != one.id:
        return (
            f"got another id ({id_}) because another space has this one, so links to it are broken; import "
            "into one space, or use a different --prefix"
        )
    if one.key not in after:
        return "reported as written but missing; check the rights of this user"
    return ""
