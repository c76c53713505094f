"""What a cluster needs before the first write: templates, indices, aliases; and the least role."""

import json
from collections.abc import Collection, Iterator

from esjobs.core.identity import content_id
from esjobs.core.tables import Table
from esjobs.store.elastic.indices import ensure_index, outdated_fields, require_layout
from esjobs.store.elastic.layout import LAYOUT, Names, jobs_index, rows_index, state_index
from esjobs.store.elastic.results.aliases import ensure_aliases, missing_aliases
from esjobs.store.elastic.transport.cluster import Body, Cluster, RefusedError, ask

_FORBIDDEN = 403


def set_up(cluster: Cluster, names: Names, tables: Collection[Table], *, dry_run: bool) -> list[str]:
    """Make what is missing, or only say what; a line for each template, index and alias.

    esjobs itself needs none of it: each index is made when it is first written to. Dashboards want all of
    them, also the empty ones; templates keep an index that something else makes under such a name from
    having another layout. A user who may not make templates goes without.
    """
    done = []
    verb = "would make" if dry_run else "made"
    for name, pattern, layout in _indices(names, tables):
        done += _set_up_template(cluster, name, cluster.index_template(pattern, layout), dry_run=dry_run)
    for name, _, layout in _indices(names, tables):
        if not require_layout(cluster, name):
            if not dry_run:
                ensure_index(cluster, name, layout)
            done.append(f"{verb} index {name}")
        elif outdated := outdated_fields(cluster, name, layout):
            done.append(
                f"index {name} stays as an earlier version made it: tables of a dashboard cannot show its "
                f"texts, and no time lies after 2262 ({len(outdated)} fields, such as {outdated[0]}); "
                "under another prefix (cluster.prefix) it is made as it is now"
            )
    for table in tables:
        missing = missing_aliases(cluster, names, table)
        if missing and not dry_run:
            ensure_aliases(cluster, names, table)
        done += [f"{verb} alias {alias}" for alias in missing]
    return done


def _set_up_template(cluster: Cluster, name: str, template: Body, *, dry_run: bool) -> list[str]:
    meta = {"layout": LAYOUT, "digest": content_id(dict(template))}
    try:
        answer = ask(cluster, f"/_index_template/{name}")
        stored = answer["index_templates"][0]["index_template"] if answer else {}
        if stored.get("_meta") == meta:
            return []
        if not dry_run:
            cluster.call("PUT", f"/_index_template/{name}", {**template, "_meta": meta})
    except RefusedError as error:
        if error.status != _FORBIDDEN:
            raise
        return [f"no template {name}: this user may not manage index templates"]
    return [f"{'would make' if dry_run else 'made'} template {name}"]


def _indices(names: Names, tables: Collection[Table]) -> Iterator[tuple[str, str, Body]]:
    """Every index, the pattern of names that shall look like it, and its layout."""
    yield names.jobs, names.jobs, jobs_index()
    yield names.state, names.state, state_index()
    for table in tables:
        yield names.rows(table), f"{names.alias(table)}-0*", rows_index(table)


def role(product: str, names: Names, jobs_index: str | None = None) -> str:
    """The least that esjobs must be allowed, as the security API of the product takes it.

    ``jobs_index``: indices of others that it reads.
    """
    own = f"{names.prefix}-*"
    others = jobs_index.split(",") if jobs_index is not None else []
    if product == "elasticsearch":
        indices = [{"names": [own], "privileges": ["manage", "read", "write"]}]
        indices += [{"names": others, "privileges": ["read"]}] if others else []
        return json.dumps({"cluster": ["monitor"], "indices": indices}, indent=2)
    permissions = [{"index_patterns": [own], "allowed_actions": ["indices_all"]}]
    permissions += [{"index_patterns": others, "allowed_actions": ["read"]}] if others else []
    cluster = ["cluster_monitor", "cluster_composite_ops"]
    return json.dumps({"cluster_permissions": cluster, "index_permissions": permissions}, indent=2)


def lacking_rights(cluster: Cluster, names: Names, jobs_index: str | None = None) -> list[str]:
    """What the printed role has and this user has not; nothing where a cluster cannot tell.

    Only Elasticsearch with security on can be asked.
    """
    if cluster.product != "elasticsearch":
        return []
    least_role = json.loads(role(cluster.product, names, jobs_index))
    privileges = {"cluster": least_role["cluster"], "index": least_role["indices"]}
    try:
        answer = cluster.call("POST", "/_security/user/_has_privileges", privileges)
    except RefusedError:
        return []  # security is off, or not to be asked
    lacking = [name for name, granted in answer["cluster"].items() if not granted]
    for pattern, rights in answer["index"].items():
        lacking += [f"{name} on {pattern}" for name, granted in rights.items() if not granted]
    return lacking
