"""Spaces of Kibana: part of the path of a request. A server takes imports into one that does not exist."""

import re

from dashboards.servers.client import Client
from dashboards.servers.product import Server
from esjobs.core.errors import DashboardsError, UsageError

_NAME = re.compile(r"[a-z0-9_-]{1,200}")


def path_of(client: Client, server: Server, space: str | None) -> str:
    """Return the path prefix of requests into a space; empty for the default space.

    Raises :class:`UsageError` for a space that no server could have or a product without spaces,
    :class:`DashboardsError` when the server does not have it.
    """
    if space is None:
        return ""
    if not server.kibana:
        raise UsageError(f"{server} has no spaces; omit --space (the user's role selects a tenant)")
    if not _NAME.fullmatch(space):
        raise UsageError(
            f"'{space}' is not a valid id of a space; use small letters, digits, _ and - (--space)"
        )
    if space == "default":
        return ""
    answer = client.ask("GET", "/api/spaces/space", headers=server.headers)
    # the plugin of spaces is switched off
    if answer.status == 404:
        raise DashboardsError(f"{client.url} has no spaces; omit --space")
    found = answer.json()
    if answer.status != 200 or not isinstance(found, list):
        raise client.refusal(answer, "the list of spaces")
    names = sorted(str(one.get("id")) for one in found if isinstance(one, dict))
    if space not in names:
        raise DashboardsError(
            f"{client.url} has no space '{space}', or this user may not see it; use one of: "
            f"{', '.join(names)}"
        )
    return f"/s/{space}"
