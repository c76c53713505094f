"""Settings of the descriptions of clusters."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class ClustersSettings(BaseModel):
    """Files that describe the machines that jobs ran on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: tuple[Path, ...] = ()
    """TOML, or ClusterCockpit's ``cluster.json``; a later file wins where two describe the same part."""
    applications: Path | None = None
    """File of applications that come before those of the package."""
