"""What a test leaves behind in a shared server."""

from tests.servers.server import Server


def remove_all(server: Server, prefix: str) -> None:
    """Remove all indices, their aliases and the templates whose names begin with a prefix.

    One by one: the servers refuse to remove by a wildcard.
    """
    found = server.json("GET", f"_resolve/index/{prefix}*?expand_wildcards=all")
    for index in found["indices"]:
        server.json("DELETE", index["name"])
    for kind, plural in (
        ("_index_template", "index_templates"),
        ("_component_template", "component_templates"),
    ):
        answer = server.request("GET", f"{kind}/{prefix}*")
        for template in answer.json[plural] if answer.status == 200 else []:
            server.json("DELETE", f"{kind}/{template['name']}")
