"""Settings of the daily watch."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from esjobs.core.setting_types import Count, no_flag

_Positive = Annotated[float, BeforeValidator(no_flag), Field(gt=0)]
_Share = Annotated[float, BeforeValidator(no_flag), Field(ge=0, le=1)]


class TodaySettings(BaseModel):
    """Conditions that open and close incidents."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nightly: bool = True
    """Watch the sites every night."""
    every: Literal["1h", "2h", "3h", "6h"] | None = None
    """Interval at which ``esjobs serve`` also judges the running day."""
    efficiency_surprise: _Positive = 3.75
    """Least surprise of a site's efficiency, in standard deviations."""
    failures_surprise: _Positive = 5.0
    """The same of failures."""
    night_cost: _Share = 0.003
    """Least cost of one night, as a share of the site's week."""
    total_cost: _Share = 0.005
    """Least cost of two or three nights, as a share of the site's week."""
    failed_jobs: _Share = 0.05
    """Share of jobs failed beyond the expected that is reported at any cost."""
    quiet_nights: Count = 2
    """Nights in a row without an incident after which it is over."""
    noticed_nights: Count = 3
    """The same of a noticed one."""
    reopen_nights: Count = 7
    """Nights within which an incident of the same place and cause is reopened."""
