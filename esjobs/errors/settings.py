"""Settings of lost work and nodes."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from esjobs.records.errors.nodes import SERVER_HOSTS


class ErrorsSettings(BaseModel):
    """Error codes, and hosts that are not nodes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: Path | None = None
    """File of categories that win over those of the package."""
    server_hosts: tuple[str, ...] = SERVER_HOSTS
    """Patterns of their names."""
