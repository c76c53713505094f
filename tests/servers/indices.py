"""What a test leaves behind in a shared server."""

from tests.servers.server import Server

_TOGETHER = 20
"""Indices named in one address, which has room for 4096 characters."""


def remove_all(server: Server, prefix: str) -> None:
    """Remove all indices, their aliases and the templates whose names begin with a prefix.

    Indices by their names, for the servers refuse to remove them by a wildcard; many in one request, for each
    request changes the state of the cluster.
    """
    found = server.json("GET", f"_resolve/index/{prefix}*?expand_wildcards=all")
    names = [index["name"] for index in found["indices"]]
    for start in range(0, len(names), _TOGETHER):
        server.json("DELETE", ",".join(names[start : start + _TOGETHER]))
    for kind, plural in (
        ("_index_template", "index_templates"),
        ("_component_template", "component_templates"),
    ):
        answer = server.request("GET", f"{kind}/{prefix}*")
        if answer.status == 200 and answer.json[plural]:
            server.json("DELETE", f"{kind}/{prefix}*")
