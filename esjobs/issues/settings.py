"""Settings of tags, detectors and issues."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from esjobs.core.setting_types import Count, no_flag

Severity = Literal["info", "minor", "major", "critical"]


class DetectSettings(BaseModel):
    """Rules of issues, and notification of users and projects."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: tuple[Path, ...] = ()
    """Rule files that add to the default rules or change them; later ones win."""
    block_values: Annotated[int, BeforeValidator(no_flag), Field(ge=10_000, le=10**9)] = 8_000_000
    """Values of time series in memory at a time; 4 bytes each, a few times over while detectors work."""
    nightly: bool | None = None
    """Find issues every night. Not set: of our own jobs, not of those in indices of others."""
    told_from: Severity = "major"
    """Notify of users and projects with issues of at least this severity."""
    quiet_days: Count = 14
    """Re-notify after this number of days without such an issue."""
