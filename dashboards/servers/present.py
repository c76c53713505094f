"""Search for our objects in a server."""

from collections.abc import Iterable
from typing import Any

from dashboards.servers.bundle import SavedObject
from dashboards.servers.client import Client
from dashboards.servers.product import Server


def present(
    client: Client, server: Server, path: str, objects: Iterable[SavedObject]
) -> set[tuple[str, str]]:
    """Type and id of those of the objects that are there.

    By asking for their export, the one question about many objects that all products and versions answer: it
    names those that it does not find. Raises :class:`DashboardsError` when it is refused.
    """
    # each round asks for fewer objects, so this ends
    requested = {one.key for one in objects}
    unknown: set[tuple[str, str]] = set()
    while requested:
        answer = client.ask(
            "POST",
            f"{path}/api/saved_objects/_export",
            headers=server.headers,
            body={
                "objects": [{"type": type_, "id": id_} for type_, id_ in sorted(requested)],
                "includeReferencesDeep": False,
                "excludeExportDetails": True,
            },
        )
        if answer.status == 200:
            return requested
        missing = _missing(answer.json()) & requested
        unsupported = _unsupported(answer.message(), requested)
        if answer.status != 400 or not (missing or unsupported):
            raise client.refusal(answer, "the list of objects")
        # an export stops at the first kind of objects that it cannot give: asked again without them
        unknown |= missing | unsupported
        requested -= unknown
    return requested


def _missing(found: Any) -> set[tuple[str, str]]:
    attributes = found.get("attributes") if isinstance(found, dict) else None
    objects = attributes.get("objects") if isinstance(attributes, dict) else None
    if not isinstance(objects, list):
        return set()
    return {
        (str(one.get("type")), str(one.get("id")))
        for one in objects
        if isinstance(one, dict) and "error" in one
    }


def _unsupported(message: str, requested: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Objects of types that a product does not have: it refuses and names them, or only the types."""
    if "non-exportable" not in message and "not support" not in message:
        return set()
    return {key for key in requested if key[0] in message}
