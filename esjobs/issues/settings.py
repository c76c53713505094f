"""Settings of tags, detectors and issues."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from esjobs.core.setting_types import Count, no_flag

Severity = Literal["info", "minor", "major", "critical"]


class RunningSettings(BaseModel):
    """Running jobs, which ``esjobs serve`` looks at."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    every: Literal["5m", "10m", "15m", "30m"]
    """Interval of the looks."""
    jobs: str
    """File with ``sacct --parsable2 --state=RUNNING`` of now."""
    fill: tuple[str, ...] = ()
    """``FIELD=VALUE`` of this file, such as ``timezone=Europe/Berlin``."""
    series: Annotated[tuple[str, ...], Field(min_length=1)]
    """Files, or patterns, with samples of the last hours, in the format ``series``."""
    map: Path | None = None
    """Their map."""
    hook: tuple[str, ...] = ()
    """Command after a warning, a list of words; ``{job_id}`` and ``{rule}`` are replaced."""
    hook_after_minutes: Count = 60
    """Time from the warning to the command."""
    hook_timeout_s: Annotated[float, BeforeValidator(no_flag), Field(gt=0, le=600)] = 10.0
    """Time that the command may take."""


class DetectSettings(BaseModel):
    """Rules of issues, and notification of users and projects."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: tuple[Path, ...] = ()
    """Rule files that add to the default rules or change them; later ones win."""
    block_values: Annotated[int, BeforeValidator(no_flag), Field(ge=10_000, le=10**9)] = 8_000_000
    """Values of time series in memory at a time; 4 bytes each, several copies."""
    nightly: bool | None = None
    """Find issues every night; not set: only in our own jobs."""
    told_from: Severity = "major"
    """Notify of users and projects with issues of at least this severity."""
    quiet_days: Count = 14
    """Days until a further notice about a user or project that still has such issues."""
    running: RunningSettings | None = None
    """Looks at running jobs; without it none."""
