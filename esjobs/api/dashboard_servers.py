"""Kibana or OpenSearch Dashboards at an address: bundles go there with the credentials of the cluster."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from dashboards.pages import HEADLINE
from dashboards.servers import (
    Bundle,
    Client,
    Login,
    Outcome,
    Server,
    plan_import,
    plan_removal,
    read_bundle,
    recognise,
    remove_rules,
    renamed,
    rules,
    set_rules,
)
from dashboards.servers import import_bundle as import_into
from dashboards.servers import remove_bundle as remove_from
from esjobs.api.factory import access_to
from esjobs.core.errors import UsageError
from esjobs.render.bundles import TARGETS, bundle_of
from esjobs.settings import Settings
from esjobs.store.elastic.transport.access import login_of, without_login

_PREFIX = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")

OUTCOME = ("type", "id", "title", "outcome", "reason")
"""Columns of what commands about servers print."""


def import_dashboards(
    settings: Settings,
    url: str,
    *,
    target: str = "auto",
    space: str | None = None,
    prefix: str | None = None,
    dry_run: bool = False,
) -> tuple[str, list[Outcome]]:
    """Bring the bundle that a server takes into it: what the server is, and what became of each object.

    ``prefix``: what the ids of the objects begin with, when it is not that of the indices.

    Raises :class:`UsageError` for a target that the server does not take, :class:`DashboardsError` when the
    server refuses the whole.
    """
    with _server(settings, url) as (client, server):
        chosen = server.target if target == "auto" else target
        if chosen == "kibana":
            server.require_lens()
        bundle = _bundle(chosen, settings, prefix)
        work = plan_import if dry_run else import_into
        return f"{server}, bundle '{chosen}'", work(client, server, bundle, space)


def remove_dashboards(
    settings: Settings,
    url: str,
    *,
    space: str | None = None,
    prefix: str | None = None,
    dry_run: bool = False,
) -> tuple[str, list[Outcome]]:
    """Take the objects of all bundles and our rules out of a server, and nothing else.

    Raises :class:`DashboardsError` when the server does not say what it has.
    """
    objects = [one for target in TARGETS for one in _bundle(target, settings, prefix).objects]
    with _server(settings, url) as (client, server):
        work = plan_removal if dry_run else remove_from
        outcomes = work(client, server, objects, space)
        of_rules = remove_rules(
            client, server, rules(HEADLINE), prefix=_checked(prefix, settings), space=space, dry_run=dry_run
        )
        return str(server), [*outcomes, *of_rules]


def set_alerting_rules(
    settings: Settings,
    url: str,
    *,
    space: str | None = None,
    prefix: str | None = None,
    dry_run: bool = False,
) -> tuple[str, list[Outcome]]:
    """Make our rules in Kibana, or bring them up to date: what the server is, what became of each.

    Raises :class:`UsageError` for a server that has no such rules.
    """
    with _server(settings, url) as (client, server):
        outcomes = set_rules(
            client,
            server,
            rules(HEADLINE),
            prefix=_checked(prefix, settings),
            indices=settings.cluster.prefix,
            space=space,
            dry_run=dry_run,
        )
        return str(server), outcomes


def outcome_rows(outcomes: Sequence[Outcome]) -> pa.Table:
    """Outcomes as rows, those that failed first."""
    ordered = sorted(outcomes, key=lambda one: one.state != "failed")
    rows = [(one.object.type, one.object.id, one.object.title, one.state, one.reason) for one in ordered]
    return pa.table(
        {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(OUTCOME)}
    )


def summary(outcomes: Sequence[Outcome], *, dry_run: bool) -> str:
    """Return the number of objects per outcome, in one line."""
    states = [one.state for one in outcomes]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return f"no changes; it would be: {counts}" if dry_run else counts


def _checked(prefix: str | None, settings: Settings) -> str:
    if prefix in (None, settings.cluster.prefix):
        return settings.cluster.prefix
    if not _PREFIX.fullmatch(str(prefix)):
        raise UsageError(f"'{prefix}' is not a valid prefix; use small letters, digits, - and _ (--prefix)")
    return str(prefix)


def _bundle(target: str, settings: Settings, prefix: str | None) -> Bundle:
    bundle = read_bundle(bundle_of(target, settings).encode(), f"the bundle '{target}'")
    old, new = settings.cluster.prefix, _checked(prefix, settings)
    return bundle if new == old else renamed(bundle, old, new)


@contextmanager
def _server(settings: Settings, url: str) -> Iterator[tuple[Client, Server]]:
    user, password = login_of(url)
    if user is None and settings.store.startswith(("http://", "https://")):
        user, password = login_of(settings.store)
    access = access_to(settings, without_login(url), user, password)
    verify = access.ca_file or True if access.verify else False
    certificate = (access.certificate, access.key) if access.certificate and access.key else None
    login = Login(access.headers(), verify, certificate)
    with Client(url, login, timeout_s=max(access.timeout_s, 120.0)) as client:
        yield client, recognise(client)
