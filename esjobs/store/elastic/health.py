"""What somebody has done to our indices that keeps esjobs from working: closed, blocked, other templates."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from esjobs.store.base import Ailment
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError, ask

_CLOSED = "4"
"""Number of the block of a closed index."""


def ailments(cluster: Cluster, names: Names, priority: int) -> Iterator[Ailment]:
    """What is wrong with indices and templates; ``priority``: that of our templates."""
    path = f"/_cluster/state/metadata,blocks/{names.prefix}-*"
    state = cluster.call("GET", path, params={"filter_path": "blocks", "expand_wildcards": "all"})
    for index, blocks in sorted(((state or {}).get("blocks", {}).get("indices", {})).items()):
        if _CLOSED in blocks:
            yield Ailment(f"index {index}", "closed", f"POST /{index}/_open")
            continue
        said = ", ".join(block["description"] for block in blocks.values())
        yield Ailment(f"index {index}", f"blocked: {said}", f"lift it (index.blocks in /{index}/_settings)")
    yield from _templates(cluster, names, priority)


def _templates(cluster: Cluster, names: Names, priority: int) -> Iterator[Ailment]:
    """Templates of others that win over ours."""
    try:
        answer = ask(cluster, "/_index_template") or {}
    except RefusedError:
        return  # this user may not see them
    for each in answer.get("index_templates", []):
        name, template = each["name"], each["index_template"]
        theirs = template.get("priority", 0)
        matches = any(
            fnmatchcase(index, pattern)
            for pattern in template["index_patterns"]
            for index in (names.state, names.jobs_of(), f"{names.prefix}-buckets-000001")
        )
        if matches and theirs > priority and not name.startswith(f"{names.prefix}."):
            yield Ailment(
                f"template {name}",
                f"its priority {theirs} wins over {priority} of ours: new indices get its settings",
                "raise cluster.template_priority, or narrow its patterns",
            )
