"""Removals: the objects of our bundles, by their ids, and nothing else."""

from collections.abc import Iterable
from urllib.parse import quote

from dashboards.servers.bundle import SavedObject
from dashboards.servers.client import Client
from dashboards.servers.outcome import Outcome
from dashboards.servers.present import present
from dashboards.servers.product import Server
from dashboards.servers.spaces import path_of

# Users before what they use: a removal that breaks off leaves no dashboard with broken panels
_ORDER = ("dashboard", "links", "lens", "visualization", "search", "tag", "index-pattern")


def plan_removal(
    client: Client, server: Server, objects: Iterable[SavedObject], space: str | None = None
) -> list[Outcome]:
    """Return the outcomes of a removal, without any change."""
    wanted = _ordered(objects)
    existing = present(client, server, path_of(client, server, space), wanted)
    return [Outcome(one, "removed" if one.key in existing else "absent") for one in wanted]


def remove_bundle(
    client: Client, server: Server, objects: Iterable[SavedObject], space: str | None = None
) -> list[Outcome]:
    """Remove the objects that are there, each by its own request; what is refused is said, the rest goes on.

    Raises :class:`DashboardsError` when the server does not say what it has, or stops answering.
    """
    path = path_of(client, server, space)
    wanted = _ordered(objects)
    existing = present(client, server, path, wanted)
    outcomes = []
    for one in wanted:
        if one.key not in existing:
            outcomes.append(Outcome(one, "absent"))
            continue
        answer = client.ask(
            "DELETE",
            f"{path}/api/saved_objects/{quote(one.type, safe='')}/{quote(one.id, safe='')}",
            headers=server.headers,
        )
        if answer.status == 200:
            outcomes.append(Outcome(one, "removed"))
        # somebody else was faster, or the reader may not see it
        elif answer.status == 404:
            outcomes.append(Outcome(one, "absent"))
        # an object shared by several spaces is not deleted in one
        elif answer.status == 400:
            said = answer.message() or "HTTP 400"
            outcomes.append(Outcome(one, "failed", f"{said}; remove it from its other spaces first"))
        else:
            outcomes.append(Outcome(one, "failed", str(client.refusal(answer, "the removal"))))
    return outcomes


def _ordered(objects: Iterable[SavedObject]) -> list[SavedObject]:
    def order(one: SavedObject) -> tuple[int, str]:
        return (_ORDER.index(one.type) if one.type in _ORDER else len(_ORDER), one.id)

    return sorted({one.key: one for one in objects}.values(), key=order)
