"""Settings of delivered work."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class DeliveredSettings(BaseModel):
    """Outages of sites."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    services: Path | None = None
    """File of service types that run jobs."""
