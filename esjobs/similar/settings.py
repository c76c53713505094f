"""What a user can set about scores that are predicted from similar jobs."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from esjobs.core.setting_types import Count, no_flag

_Distance = Annotated[float, BeforeValidator(no_flag), Field(ge=0, le=1e6)]
_Fraction = Annotated[float, BeforeValidator(no_flag), Field(ge=0, le=1)]


class SimilarSettings(BaseModel):
    """How scores are predicted. What is not set of the limits follows from the knowledge base."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nightly: bool = False
    """Whether every night predicts the scores that the jobs of its days lack, once it has scored them."""
    approach: Literal["combined-1", "combined-2", "dynamic"] = "dynamic"
    """Which jobs a score is predicted from: docs/similar.md#predicted-scores."""
    aggregation: Literal["softmax", "median", "mean"] = "softmax"
    """What is made of their scores."""
    programs: Literal["tf-idf", "doc2vec"] = "tf-idf"
    """How programs are compared by their symbols: docs/similar.md#by-program. The second needs an extra."""
    static: _Fraction | None = None
    """Programs are alike from this static similarity on."""
    coarse: _Distance | None = None
    """Jobs of programs that are alike are similar up to this distance."""
    fine: _Distance | None = None
    """Any other jobs are similar up to this distance, much the smaller one."""
    metrics: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """In which jobs are compared; none: in all that four of five jobs of the knowledge base have."""
    most_jobs: Count = 20_000
    """Jobs of the knowledge base at most, the newest: 2,000 bytes each and metric."""

    @field_validator("metrics")
    @classmethod
    def _each_once(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(metrics)) < len(metrics):
            raise PydanticCustomError("metrics", "expected each metric once; twice it would weigh twice")
        return metrics

    @model_validator(mode="after")
    def _fine_within_coarse(self) -> "SimilarSettings":
        if self.fine is not None and self.coarse is not None and self.fine > self.coarse:
            raise PydanticCustomError("fine", "expected fine, the limit of any jobs, up to coarse")
        return self
