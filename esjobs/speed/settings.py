"""Settings of the speed factors."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from esjobs.core.setting_types import Count, no_flag
from esjobs.core.words import DEVIATION_LIMIT, Method


def _distinct(methods: tuple[Method, ...]) -> tuple[Method, ...]:
    if len(set(methods)) < len(methods):
        raise PydanticCustomError("distinct", "expected each method once")
    return methods


class FitSettings(BaseModel):
    """Settings of fits and verdicts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    methods: Annotated[tuple[Method, ...], Field(min_length=1), AfterValidator(_distinct)] = (
        "gamma",
        "paper",
    )
    """Methods to fit, headline first."""
    min_bucket_jobs: Count = 1
    """Jobs a task must have at a queue (or on a CPU model) to enter the fit; `paper` needs 20 or more."""
    min_name_jobs: Count = 50
    """Jobs a name needs for a verdict."""
    deviation_limit: Annotated[float, BeforeValidator(no_flag), Field(gt=0, lt=1)] = DEVIATION_LIMIT
    """Relative deviation that matters."""
    by_type: bool = True
    """Fit each processing type, too."""
    cost_prior: bool = True
    """Use the start-up times that earlier windows found; `false`: each window alone."""
    nightly: Annotated[bool, Field(exclude=True)] = True
    """Fit every night."""
