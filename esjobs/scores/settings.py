"""Settings of scores."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from esjobs.core.setting_types import Count, no_flag

_Weight = Annotated[float, BeforeValidator(no_flag), Field(ge=0, le=1)]


class EfficiencySettings(BaseModel):
    """Score settings: weights of issues, default node size."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nightly: bool | None = None
    """Score jobs every night; otherwise on demand by ``esjobs score``. Not set: our own jobs, not those in
    indices of others."""
    issues: Literal["product", "sum"] = "product"
    """Formula of ``score_mpi`` and ``score_io``: 100 x (1 - prod(1 - weight x share of the job's time)),
    or 100 x the sum of weight x share, 100 at most."""
    weight_critical: _Weight = 1.0
    """Weight of an issue of this severity."""
    weight_major: _Weight = 0.6
    weight_minor: _Weight = 0.3
    weight_info: _Weight = 0.0
    cores_per_node: Count = 64
    """Cores of a node if record, cluster description and CPU string have none."""

    own_rows: Count = 5_000
    """Rows of a day for jobs without scores, those of most idle core-hours; further jobs share rows."""

    @property
    def weights(self) -> dict[str, float]:
        names = ("critical", "major", "minor", "info")
        return {name: float(getattr(self, f"weight_{name}")) for name in names}
