"""Settings of predicted scores."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from esjobs.core.setting_types import Count, no_flag

_Distance = Annotated[float, BeforeValidator(no_flag), Field(ge=0, le=1e6)]
_Fraction = Annotated[float, BeforeValidator(no_flag), Field(ge=0, le=1)]


class SimilarSettings(BaseModel):
    """Prediction of scores; limits that are not set follow from the knowledge base."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nightly: bool = False
    """Predict missing scores every night."""
    approach: Literal["combined-1", "combined-2", "dynamic"] = "dynamic"
    """Choice of neighbours: docs/similar.md#predicted-scores."""
    aggregation: Literal["softmax", "median", "mean"] = "softmax"
    """Aggregation of the scores of neighbours."""
    programs: Literal["tf-idf", "doc2vec"] = "tf-idf"
    """Comparison of programs: docs/similar.md#by-program. ``doc2vec`` needs an extra."""
    static: _Fraction | None = None
    """Least program similarity of similar programs."""
    distance_limit_a: _Distance | None = None
    """Largest distance of similar jobs of similar programs."""
    distance_limit_b: _Distance | None = None
    """Largest distance of any other similar jobs, much smaller."""
    metrics: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Metrics compared; none: those of four of five jobs of the knowledge base."""
    most_jobs: Count = 20_000
    """Largest knowledge base, of the newest jobs: 2,000 bytes per job and metric."""

    @field_validator("metrics")
    @classmethod
    def _each_once(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(metrics)) < len(metrics):
            raise PydanticCustomError("metrics", "expected each metric once")
        return metrics

    @model_validator(mode="after")
    def _b_within_a(self) -> "SimilarSettings":
        limit_a, limit_b = self.distance_limit_a, self.distance_limit_b
        if limit_a is not None and limit_b is not None and limit_b > limit_a:
            raise PydanticCustomError(
                "distance_limit_b", "expected distance_limit_b (limit for any jobs) up to distance_limit_a"
            )
        return self
