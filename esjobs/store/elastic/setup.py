"""Set-up of a cluster: templates, indices, aliases; and the least role."""

import json
from collections.abc import Collection, Sequence

from esjobs.core.tables import Table
from esjobs.store.elastic.indices import ensure_index, missing_fields, outdated_fields, require_layout
from esjobs.store.elastic.jobs.months import JobMonths
from esjobs.store.elastic.layout import USUAL, IndexSettings, Names, is_monthly, jobs_index, month_of
from esjobs.store.elastic.results.aliases import aliases_of, missing_aliases, published_in
from esjobs.store.elastic.state import State
from esjobs.store.elastic.templates import Described, described, set_up_template
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError, ask
from esjobs.store.lease import Lease


def set_up(
    cluster: Cluster,
    names: Names,
    tables: Collection[Table],
    how: IndexSettings = USUAL,
    *,
    jobs: bool = True,
    dry_run: bool,
) -> list[str]:
    """Create missing templates and indices, or report them; return a line each.

    Optional: writes create indices on demand. Dashboards need all of them; templates protect the layout.
    ``jobs``: jobs of our own are expected.
    """
    done = []
    verb = "would make" if dry_run else "made"
    all_indices = list(described(names, tables, how, jobs=jobs))
    for one in all_indices:
        done += _remove_template_of_before(cluster, one, dry_run=dry_run)
    for one in all_indices:
        template = cluster.index_template(one.patterns, one.template_layout, how.template_priority)
        done += set_up_template(cluster, names.template(one.name), template, dry_run=dry_run)
    for one in all_indices:
        if one.name != "jobs" and not require_layout(cluster, one.index):
            if not dry_run:
                ensure_index(cluster, one.index, one.layout)
            done.append(f"{verb} index {one.index}")
        elif outdated := outdated_fields(cluster, one.index, one.layout):
            done.append(
                f"index {one.index} stays as an earlier version made it: tables of a dashboard cannot show "
                f"its texts, and no time lies after 2262 ({len(outdated)} fields, such as {outdated[0]}); "
                "under another prefix (cluster.prefix) it is made as it is now"
            )
    for table in tables:
        missing = missing_aliases(cluster, names, table)
        done += [f"{verb} alias {alias}" for alias in missing]
        done += _of_before(cluster, names, table)
    return done


def set_up_jobs(
    cluster: Cluster, names: Names, state: State, how: IndexSettings, *, dry_run: bool
) -> list[str]:
    """Create the index with the alias of jobs, or move an older one behind it.

    Adds missing fields to monthly indices. Raises :class:`StoreBusyError` while jobs are written.
    """
    months = JobMonths(cluster, names, how)
    index = names.jobs_of()
    if months.of_before:
        if not dry_run:
            with Lease(state, cluster.location, request_s=cluster.longest_s()).turn():
                months.move()
        verb = "would move" if dry_run else "moved"
        return [f"{verb} index {names.jobs} to {index}, behind an alias of its name"]
    if index in months.indices():
        return _fields_of_now(cluster, months.indices(), how, dry_run=dry_run)
    if not dry_run:
        months.ensure()
    verb = "would make" if dry_run else "made"
    return [f"{verb} index {index}", f"{verb} alias {names.jobs}"]


def _fields_of_now(
    cluster: Cluster, indices: Sequence[str], how: IndexSettings, *, dry_run: bool
) -> list[str]:
    """Add missing fields to indices of jobs."""
    done = []
    layout = jobs_index(how, monthly=True)
    for index in indices:
        if lacking := missing_fields(cluster, index, layout):
            if not dry_run:
                ensure_index(cluster, index, layout)
            verb = "would add" if dry_run else "added"
            done.append(f"{verb} {len(lacking)} fields to index {index}, such as {lacking[0]}")
    return done


def _of_before(cluster: Cluster, names: Names, table: Table) -> list[str]:
    """Return a line about days in the undated index of an earlier version."""
    if not is_monthly(table):
        return []
    first = names.rows(table)
    published = published_in(aliases_of(cluster, names, table), names, table)
    days = sorted(day for day, place in published.items() if place.index == first and month_of(day))
    if not days:
        return []
    return [
        f"index {first} has {len(days)} days of before there were months, {days[0]} to {days[-1]}: they "
        "stay readable, and a day moves to its month when it is made again (esjobs aggregate --rebuild)"
    ]


def _remove_template_of_before(cluster: Cluster, one: Described, *, dry_run: bool) -> list[str]:
    """Remove templates named like their indices, as earlier versions made them."""
    try:
        answer = ask(cluster, f"/_index_template/{one.index}")
        meta = answer["index_templates"][0]["index_template"].get("_meta", {}) if answer else {}
        if meta.keys() != {"layout", "digest"}:
            return []
        if not dry_run:
            cluster.call("DELETE", f"/_index_template/{one.index}")
    except RefusedError as error:
        if not error.forbidden:
            raise
        return []  # said of the template that comes in its place
    return [f"{'would remove' if dry_run else 'removed'} template {one.index}, which has another name now"]


def role(product: str, names: Names, jobs_index: str | None = None) -> str:
    """Return the least role in the syntax of the product; ``jobs_index``: foreign indices to read."""
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
