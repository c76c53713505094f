"""Settings of flags."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from esjobs.core.setting_types import Count, no_flag


class WatchSettings(BaseModel):
    """Conditions that open and close flags."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    margin: Annotated[float, BeforeValidator(no_flag), Field(ge=0, lt=1)] = 0.05
    """Distance of the interval from the limit at which a flag closes."""
    quiet_nights: Count = 7
    """Nights in a row without a deviation after which a candidate is withdrawn."""
    absent_nights: Count = 7
    """Nights in a row without a comparison after which a candidate is withdrawn."""
    replay_nights: Count = 23
    """Nights that can be run again; older ones are settled."""
