"""Kibana or OpenSearch Dashboards at an address: bundles go there with the credentials of the cluster."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from dashboards import servers
from dashboards.pages import HEADLINE
from esjobs.api.factory import access_to
from esjobs.core.errors import UsageError
from esjobs.render.bundles import TARGETS, bundle_of
from esjobs.settings import Settings
from esjobs.store.elastic.transport.access import login_of, without_login

_PREFIX = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")

OUTCOME = ("type", "id", "title", "outcome", "reason")
"""Columns of the output of commands about servers."""


def import_dashboards(
    settings: Settings,
    url: str,
    *,
    target: str = "auto",
    space: str | None = None,
    prefix: str | None = None,
    dry_run: bool = False,
) -> tuple[str, list[servers.Outcome]]:
    """Import the bundle that fits a server; return the server and the outcome of each object.

    ``prefix``: of the ids of the objects, if it is not that of the indices. Raises :class:`UsageError` for a
    target that the server does not take, :class:`DashboardsError` if it refuses the import.
    """
    with _server(settings, url) as (client, server):
        chosen = server.target if target == "auto" else target
        if chosen == "kibana":
            server.require_lens()
        bundle = _bundle(chosen, settings, prefix)
        work = servers.plan_import if dry_run else servers.import_bundle
        return f"{server}, bundle '{chosen}'", work(client, server, bundle, space)


def remove_dashboards(
    settings: Settings,
    url: str,
    *,
    space: str | None = None,
    prefix: str | None = None,
    dry_run: bool = False,
) -> tuple[str, list[servers.Outcome]]:
    """Remove the objects of all bundles and our rules, nothing else; the result is that of an import.

    Raises :class:`DashboardsError` if the server does not list its objects.
    """
    # of all targets: the server does not say which bundle was imported
    objects = [one for target in TARGETS for one in _bundle(target, settings, prefix).objects]
    with _server(settings, url) as (client, server):
        work = servers.plan_removal if dry_run else servers.remove_bundle
        outcomes = work(client, server, objects, space)
        rules, checked = servers.rules(HEADLINE), _checked(prefix, settings)
        of_rules = servers.remove_rules(client, server, rules, prefix=checked, space=space, dry_run=dry_run)
        return str(server), [*outcomes, *of_rules]


def set_alerting_rules(
    settings: Settings,
    url: str,
    *,
    space: str | None = None,
    prefix: str | None = None,
    dry_run: bool = False,
) -> tuple[str, list[servers.Outcome]]:
    """Create or update our rules in Kibana; the result is that of an import.

    Raises :class:`UsageError` for a server without such rules.
    """
    with _server(settings, url) as (client, server):
        outcomes = servers.set_rules(
            client,
            server,
            servers.rules(HEADLINE),
            prefix=_checked(prefix, settings),
            indices=settings.cluster.prefix,
            space=space,
            dry_run=dry_run,
        )
        return str(server), outcomes


def outcome_rows(outcomes: Sequence[servers.Outcome]) -> pa.Table:
    """Outcomes as rows, those that failed first."""
    # stable: otherwise in the order of the bundle
    ordered = sorted(outcomes, key=lambda one: one.state != "failed")
    rows = [(one.object.type, one.object.id, one.object.title, one.state, one.reason) for one in ordered]
    return pa.table(
        {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(OUTCOME)}
    )


def summary(outcomes: Sequence[servers.Outcome], *, dry_run: bool) -> str:
    """Return the number of objects per outcome, in one line."""
    states = [one.state for one in outcomes]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return f"no changes; it would be: {counts}" if dry_run else counts


def _checked(prefix: str | None, settings: Settings) -> str:
    # already checked with the settings
    if prefix in (None, settings.cluster.prefix):
        return settings.cluster.prefix
    if not _PREFIX.fullmatch(str(prefix)):
        raise UsageError(f"'{prefix}' is not a valid prefix; use small letters, digits, - and _ (--prefix)")
    return str(prefix)


def _bundle(target: str, settings: Settings, prefix: str | None) -> servers.Bundle:
    # made for this installation: names of indices and spans of time are in it
    bundle = servers.read_bundle(bundle_of(target, settings).encode(), f"the bundle '{target}'")
    old, new = settings.cluster.prefix, _checked(prefix, settings)
    return bundle if new == old else servers.renamed(bundle, old, new)


@contextmanager
def _server(settings: Settings, url: str) -> Iterator[tuple[servers.Client, servers.Server]]:
    # a server of dashboards usually knows the accounts of its cluster
    user, password = login_of(url)
    if user is None and settings.store.startswith(("http://", "https://")):
        user, password = login_of(settings.store)
    access = access_to(settings, without_login(url), user, password)
    verify = access.ca_file or True if access.verify else False
    certificate = (access.certificate, access.key) if access.certificate and access.key else None
    login = servers.Login(access.headers(), verify, certificate)
    # importing all objects takes longer than a question to the cluster
    with servers.Client(url, login, timeout_s=max(access.timeout_s, 120.0)) as client:
        yield client, servers.recognise(client)
