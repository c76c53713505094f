"""Settings of flags."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from esjobs.core.setting_types import Count, no_flag


class WatchSettings(BaseModel):
    """Conditions that open and close flags."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    margin: Annotated[float, BeforeValidator(no_flag), Field(ge=0, lt=1)] = 0.05
    """By so much the interval must lie inside the accepted deviation before a flag is closed."""
    quiet_nights: Count = 7
    """A candidate is withdrawn after so many nights in a row without a deviation."""
    absent_nights: Count = 7
    """After so many nights in a row without a comparison this is said once; a candidate is withdrawn."""
    replay_nights: Count = 23
    """Nights that can be run again; older ones are settled."""
