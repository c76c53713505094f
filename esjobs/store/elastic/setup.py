"""Set-up of a cluster: templates, indices, aliases; and the least role."""

import json
from collections.abc import Collection, Mapping

from esjobs.core.tables import Table
from esjobs.store.elastic.indices import ensure_index, require_layout
from esjobs.store.elastic.jobs.months import JobMonths
from esjobs.store.elastic.layout import USUAL, IndexSettings, Names
from esjobs.store.elastic.results.aliases import missing_aliases
from esjobs.store.elastic.templates import described, set_up_template
from esjobs.store.elastic.transport.cluster import Body, Cluster, RefusedError


def set_up(
    cluster: Cluster,
    names: Names,
    tables: Collection[Table],
    templates: Mapping[str, Body],
    how: IndexSettings = USUAL,
    *,
    jobs: bool = True,
    dry_run: bool,
) -> list[str]:
    """Create missing templates and indices, or report them; return a line each.

    Optional: writes create indices on demand. Dashboards need all of them; templates protect the layout.
    ``templates``: all of ours by name. ``jobs``: jobs of our own are expected.
    """
    done = []
    verb = "would create" if dry_run else "created"
    for name, template in templates.items():
        done += set_up_template(cluster, name, template, dry_run=dry_run)
    for one in described(names, tables, how, jobs=jobs):
        # the index of jobs is made with its alias, by the writer of jobs
        if one.name != "jobs" and not require_layout(cluster, one.index):
            if not dry_run:
                ensure_index(cluster, one.index, one.layout)
            done.append(f"{verb} index {one.index}")
    for table in tables:
        done += [f"{verb} alias {alias}" for alias in missing_aliases(cluster, names, table)]
    return done


def set_up_jobs(cluster: Cluster, names: Names, how: IndexSettings, *, dry_run: bool) -> list[str]:
    """Create the index with the alias of jobs."""
    months = JobMonths(cluster, names, how)
    index = names.jobs_of()
    if index in months.indices():
        return []
    if not dry_run:
        months.ensure()
    verb = "would create" if dry_run else "created"
    return [f"{verb} index {index}", f"{verb} alias {names.jobs}"]


def role(product: str, names: Names, jobs_index: str | None = None) -> str:
    """Return the least role in the syntax of the product; ``jobs_index``: foreign indices to read."""
    own = f"{names.prefix}-*"
    others = jobs_index.split(",") if jobs_index is not None else []
    if product == "elasticsearch":
        # manage covers creation, aliases, mappings and refresh of our own indices
        indices = [{"names": [own], "privileges": ["manage", "read", "write"]}]
        indices += [{"names": others, "privileges": ["read"]}] if others else []
        return json.dumps({"cluster": ["monitor"], "indices": indices}, indent=2)
    permissions = [{"index_patterns": [own], "allowed_actions": ["indices_all"]}]
    permissions += [{"index_patterns": others, "allowed_actions": ["read"]}] if others else []
    cluster = ["cluster_monitor", "cluster_composite_ops"]
    return json.dumps({"cluster_permissions": cluster, "index_permissions": permissions}, indent=2)


def lacking_rights(cluster: Cluster, names: Names, jobs_index: str | None = None) -> list[str]:
    """Return the rights of the role that this user lacks; empty if unknown.

    Only Elasticsearch with security enabled can tell.
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
