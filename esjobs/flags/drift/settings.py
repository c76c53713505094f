"""Settings of drift."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from esjobs.core.sections import Sections
from esjobs.core.setting_types import no_flag


class DriftSettings(BaseModel):
    """Period and significance of the search for change points."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    days: Annotated[int, BeforeValidator(no_flag), Field(ge=10, le=366)] = 60
    """Days of factors before the window's end."""
    significance: Annotated[float, BeforeValidator(no_flag), Field(ge=3, le=20)] = 3.5
    """Least change in errors; false alarms: docs/method.md."""
    smallest: Annotated[float, BeforeValidator(no_flag), Field(ge=0, lt=1)] = 0.05
    """Relative change that must be exceeded by two errors."""


def limits(settings: Sections) -> tuple[float, float]:
    """Return significance and smallest size of reported changes."""
    section = settings.section(DriftSettings)
    return section.significance, section.smallest
