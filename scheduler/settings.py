"""Settings of nights: times, windows, retries."""

from itertools import pairwise
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from esjobs.core.sections import Sections
from esjobs.core.setting_types import no_flag

_LONGEST_WINDOW = 3_660  # Days: ten years


def _ascending(days: tuple[int, ...]) -> tuple[int, ...]:
    if any(a >= b for a, b in pairwise(days)):
        raise PydanticCustomError("ascending", "expected different lengths in ascending order")
    return days


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise PydanticCustomError(
            "zone", "expected the name of a time zone, such as Europe/Zurich or UTC"
        ) from error
    return name


_Days = Annotated[int, BeforeValidator(no_flag), Field(ge=1, le=_LONGEST_WINDOW)]
_Text = Annotated[str, Field(min_length=1)]


class NightlyFiles(BaseModel):
    """Files that every night reads before it aggregates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: _Text
    """As ``esjobs ingest`` names it: panda, jobs, corepower, cric."""
    files: Annotated[tuple[_Text, ...], Field(min_length=1)]
    """Names or patterns; ``{night}`` stands for the day, as 2018-08-31."""
    fill: tuple[_Text, ...] = ()
    """``FIELD=VALUE``: fills a field where it is missing."""
    map: _Text | None = None
    """File that maps columns and metrics of the format series, or a shipped map: dcgm, jobstats, likwid."""

    @property
    def identity(self) -> list[str]:
        """Way in which a file is read: format, fills and map."""
        return [self.format, *self.fill, *([] if self.map is None else [f"map {self.map}"])]


class NightsSettings(BaseModel):
    """Windows, retention, retries and times of the nightly service."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    windows: Annotated[tuple[_Days, ...], Field(min_length=1), AfterValidator(_ascending)] = (7, 30, 90)
    """Lengths of the sliding windows, days."""
    headline: _Days = 30
    """Default window of results, one of these lengths."""
    late_days: Annotated[int, BeforeValidator(no_flag), Field(ge=0, le=_LONGEST_WINDOW)] = 7
    """Days before a night that are checked for late records."""
    rerun_frac: Annotated[float, BeforeValidator(no_flag), Field(ge=0, le=1)] = 0.01
    """Share of late jobs on a day of 10,000 jobs or more below which its night is not run again."""
    backfill_jobs: Annotated[int, BeforeValidator(no_flag), Field(ge=0)] = 5_000_000
    """Jobs of older days that a night aggregates, newest first; 0: none."""
    catch_up: Annotated[int, BeforeValidator(no_flag), Field(ge=0, le=1_000)] = 7
    """Missing nights that one trigger runs, oldest first."""
    deadline_h: Annotated[float, BeforeValidator(no_flag), Field(ge=0, le=240)] = 4.0
    """Hours for which a failed night is tried again."""
    backoff_s: Annotated[float, BeforeValidator(no_flag), Field(gt=0, le=3_600)] = 30.0
    """First pause before a repetition; each further one is twice as long."""
    longest_pause_s: Annotated[float, BeforeValidator(no_flag), Field(gt=0, le=86_400)] = 900.0
    """Longest pause."""
    cron: _Text = "30 3 * * *"
    """Start of ``esjobs serve``: minute, hour, day, month, day of the week."""
    time_zone: Annotated[_Text, AfterValidator(_zone)] = "UTC"
    """Zone of these times. Days of jobs are UTC."""
    ingest: tuple[NightlyFiles, ...] = ()
    """Files that every night reads first; nothing: jobs come by other ways."""
    ingest_stopped_h: Annotated[float, BeforeValidator(no_flag), Field(gt=0, le=10_000)] = 36.0
    """Hours without a finished job that raise an alert."""
    listen: Literal["metrics", "nothing"] = "metrics"
    """``metrics``: serve metrics and health."""
    host: _Text = "127.0.0.1"
    """Address it listens on."""
    port: Annotated[int, BeforeValidator(no_flag), Field(ge=0, le=65_535)] = 9464
    """Its port; 0: any free one."""

    metrics_file: str = ""
    """File for node_exporter's textfile collector, ``*.prom``."""
    push_to: str = ""
    """Prometheus Pushgateway: ``https://HOST:9091``."""

    @model_validator(mode="after")
    def _headline_is_a_window(self) -> "NightsSettings":
        if self.headline not in self.windows:
            raise PydanticCustomError(
                "headline",
                "expected headline to be one of the windows: {windows}",
                {"windows": ", ".join(map(str, self.windows))},
            )
        return self


def headline(settings: Sections) -> int:
    """Return the length of the default window in days."""
    return settings.section(NightsSettings).headline
