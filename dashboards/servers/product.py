"""Recognition of the product and version of a server, and of the bundle for it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dashboards.servers.client import Answer, Client
from esjobs.core.errors import DashboardsError, UsageError

Target = Literal["portable", "kibana"]

# Kibana below refuses a dashboard with the stamp 8.9.0
_PORTABLE_FROM = (8, 9)
# Kibana below has no links panels as the bundle writes them
_LENS_FROM = (8, 12)
_OPENSEARCH_FROM = (2, 0)


@dataclass(frozen=True)
class Server:
    """A recognised server. ``xsrf`` is the header without which it changes nothing."""

    title: str
    version: tuple[int, ...]
    xsrf: str
    kibana: bool

    @property
    def target(self) -> Target:
        """The bundle that shows most on this server."""
        return "kibana" if self.kibana and self.version >= _LENS_FROM else "portable"

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of requests that change objects."""
        return {self.xsrf: "esjobs"}

    def __str__(self) -> str:
        return f"{self.title} {'.'.join(map(str, self.version))}"

    def require_lens(self) -> None:
        """Raise :class:`UsageError` when this server cannot take the bundle ``kibana``."""
        if self.target != "kibana":
            raise UsageError(
                f"{self} does not support the bundle 'kibana', which requires Kibana 8.12 or newer; omit "
                "--target"
            )


def recognise(client: Client) -> Server:
    """Ask a server what it is.

    Raises :class:`DashboardsError` when it is neither Kibana nor OpenSearch Dashboards, is too old for any
    bundle, or does not say.
    """
    answer = client.ask("GET", "/api/status")
    # both answer every request with a header of their own, also a refusal
    opensearch = "osd-name" in answer.headers
    if not opensearch and "kbn-name" not in answer.headers:
        raise _other(client, answer)
    # a server that is starting or degraded answers 503, and tells its version all the same
    if answer.status >= 400 and answer.status != 503:
        raise client.refusal(answer, "the request for its version")
    version = _version(answer)
    if not version:
        raise DashboardsError(
            f"{client.url} shows its version to users only; add credentials: user and password in the "
            "address, or those of the cluster (ESJOBS_CLUSTER__...)"
        )
    if opensearch:
        server = Server("OpenSearch Dashboards", version, "osd-xsrf", kibana=False)
        oldest = _OPENSEARCH_FROM
    else:
        server = Server("Kibana", version, "kbn-xsrf", kibana=True)
        oldest = _PORTABLE_FROM
    if version < oldest:
        raise DashboardsError(
            f"{client.url} is {server}, which is too old; the dashboards require Kibana 8.9 or OpenSearch "
            "Dashboards 2.0, or newer"
        )
    return server


def _version(answer: Answer) -> tuple[int, ...]:
    found = answer.json()
    version = found.get("version") if isinstance(found, dict) else None
    number = version.get("number") if isinstance(version, dict) else None
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", number) if isinstance(number, str) else None
    return tuple(map(int, match.groups())) if match else ()


def _other(client: Client, answer: Answer) -> DashboardsError:
    # these statuses are those of a server that has no such address
    is_refusal = answer.status >= 400 and answer.status not in (400, 404, 405)
    if is_refusal or answer.body.lstrip()[:1] == b"<":
        return client.refusal(answer, "the request for its version")
    return DashboardsError(
        f"{client.url} is neither Kibana nor OpenSearch Dashboards; use the address that people open in "
        "their browser, not that of the cluster"
    )
