"""What a cluster needs before the first write: indices, aliases, and a role of the needed rights alone."""

import json
from collections.abc import Iterator

from esjobs.core.tables import TABLES
from esjobs.store.elastic.cluster import Body, Cluster
from esjobs.store.elastic.indices import ensure_index, require_layout
from esjobs.store.elastic.layout import Names, jobs_index, rows_index, state_index
from esjobs.store.elastic.results import ensure_alias, has_alias


def set_up(cluster: Cluster, names: Names, *, dry_run: bool) -> list[str]:
    """Make what is missing, or only say what; a line for each index and alias.

    esjobs itself needs none of it: each index is made when it is first written to. Dashboards want all of
    them, also the empty ones.
    """
    done = []
    verb = "would make" if dry_run else "made"
    for name, layout in _indices(names):
        if not require_layout(cluster, name):
            if not dry_run:
                ensure_index(cluster, name, layout)
            done.append(f"{verb} index {name}")
    for table in TABLES:
        if not has_alias(cluster, names, table):
            if not dry_run:
                ensure_alias(cluster, names, table)
            done.append(f"{verb} alias {names.alias(table)}")
    return done


def _indices(names: Names) -> Iterator[tuple[str, Body]]:
    yield names.jobs, jobs_index()
    yield names.state, state_index()
    for table in TABLES:
        yield names.rows(table), rows_index(table)


def role(product: str, names: Names) -> str:
    """The least that esjobs must be allowed, as the security API of the product takes it."""
    own = f"{names.prefix}-*"
    if product == "elasticsearch":
        return json.dumps(
            {
                "cluster": ["monitor"],
                "indices": [{"names": [own], "privileges": ["manage", "read", "write"]}],
            },
            indent=2,
        )
    return json.dumps(
        {
            "cluster_permissions": ["cluster_monitor", "cluster_composite_ops"],
            "index_permissions": [
                {"index_patterns": [own], "allowed_actions": ["indices_all"]},
            ],
        },
        indent=2,
    )
