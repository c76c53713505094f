"""What a user can set about tags, detectors and the issues of jobs."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from esjobs.core.setting_types import Count, no_flag

Severity = Literal["info", "minor", "major", "critical"]


class DetectSettings(BaseModel):
    """Which rules jobs are judged by, and whom the nightly service tells."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: tuple[Path, ...] = ()
    """Files of rules that add to those that come with esjobs, or change them; a later one wins."""
    block_values: Annotated[int, BeforeValidator(no_flag), Field(ge=10_000, le=10**9)] = 8_000_000
    """Values of time series in memory at a time; 4 bytes each, a few times over while detectors work."""
    nightly: bool = True
    """Whether nights look for issues of the jobs of their days."""
    told_from: Severity = "major"
    """Users and projects with issues of at least this severity are told of by the nightly service."""
    quiet_days: Count = 14
    """Who had no such issue for so many days is told of again."""
