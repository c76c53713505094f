"""Settings of the pages over HTTP; nights and mails read them, too."""

import ipaddress
from datetime import date
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from esjobs.core.setting_types import Count


def _origin(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or value.count("/") != 2 or "@" in value:
        raise PydanticCustomError("origin", "expected https://HOST or https://HOST:PORT without a path")
    return value.lower()


def _network(value: str) -> str:
    try:
        ipaddress.ip_network(value)
    except ValueError:
        raise PydanticCustomError("network", "expected a network such as 10.1.2.0/24 or ::1") from None
    return value


class WebRole(BaseModel):
    """Role of a group of readers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    group: Annotated[str, Field(min_length=1, max_length=200)]
    """Group as the proxy names it."""
    role: Literal["site", "support", "coordinator", "admin"]
    """Role of its members."""
    sites: tuple[str, ...] = ()
    """Sites and queues that role site may see."""


class WebToken(BaseModel):
    """Token of a program: ``esjobs web --new-token NAME``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Name of the program."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Digest of the token."""
    until: date
    """Last day."""
    role: Literal["site", "support"] = "support"
    """Role."""
    sites: tuple[str, ...] = ()
    """Sites and queues of role site."""


class WebSettings(BaseModel):
    """Pages over HTTP: where they listen, who reads them, and how sites answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: str = ""
    """Address, as ``127.0.0.1:8080``, on which ``esjobs serve`` shows pages; empty: none."""
    hosts: tuple[str, ...] = ()
    """Names of the pages, beside those of this machine."""
    public: bool = False
    """Show pages without names of people to everybody."""
    base_url: Annotated[str, AfterValidator(_origin)] | None = None
    """Address in links, as ``https://grid.example``."""
    key_file: Path | None = None
    """File of keys that sign links, one a line: the last signs, all verify; not set: no links."""
    link_days: Count = 60
    """Days for which a link is valid."""
    journal: Path | None = None
    """File of entries; default: beside the embedded store; a cluster requires it."""
    trusted_proxies: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """Networks of proxies that say who reads."""
    user_header: str = "X-Forwarded-User"
    """Header with the name of the reader."""
    groups_header: str = "X-Forwarded-Groups"
    """Header with the reader's groups."""
    roles: tuple[WebRole, ...] = ()
    tokens: tuple[WebToken, ...] = ()

    def journal_of(self, location: str) -> Path | None:
        """Return the journal of a store at ``location``; None without one."""
        kind, _, path = location.partition(":")
        if self.journal is not None:
            return self.journal.expanduser()
        if kind != "duckdb" or path == ":memory:":
            return None
        return Path(f"{Path(path).expanduser()}.entered.jsonl")
