"""Settings of a user: in a file (``esjobs.toml``), in the environment (``ESJOBS_...``), on the command line.

The command line wins over the environment, the environment over the file. Unknown keys are refused.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic_core import PydanticCustomError

from esjobs.core import environment
from esjobs.core.capability import Capability
from esjobs.core.errors import SettingsError
from esjobs.core.rules import CleaningRules, unusable
from esjobs.core.sections import Section
from esjobs.core.setting_types import Count, Number, no_flag
from esjobs.core.words import NOT_MEASURED, OF_LAUNCHES
from esjobs.store.elastic.transport.access import without_login
from esjobs.store.files.sharing import Share

_LIST_EXAMPLE = 'ESJOBS_FIT__METHODS=\'["gamma", "paper"]\''
# Sizes as DuckDB reads them: in steps of 1000 or, with an i, of 1024; or a share of the machine's memory.
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(?:([KMGT])(i?)B|B|bytes|(%))\s*", re.IGNORECASE)
# Bytes: with less DuckDB cannot open a store, and more is a slip of the keyboard.
_SMALLEST_MEMORY, _LARGEST_MEMORY = 16 * 10**6, 100 * 10**12


def _size(value: object) -> object:
    size = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if size is not None:
        share = float(size[1])
        fits = 0 < share <= 100 if size[4] else _SMALLEST_MEMORY <= _bytes(size) <= _LARGEST_MEMORY
        if fits:
            return value
    raise PydanticCustomError(
        "size", "expected a size from 16MB to 100TB, such as 1GB or 512MB, or a share such as 50%"
    )


def _bytes(size: re.Match[str]) -> float:
    step = 1024 if size[3] else 1000
    return float(size[1]) * float(step) ** " KMGT".index((size[2] or " ").upper())


def _rule_error(name: str, value: object, accepted: str) -> PydanticCustomError:
    return PydanticCustomError(
        "rule", "expected {accepted}", {"name": name, "value": value, "accepted": accepted}
    )


_Text = Annotated[str, Field(min_length=1)]
# Bytes of a settings file: reading TOML takes time that grows with the square of its keys.
_LARGEST_FILE = 64 << 10


class ClusterSettings(BaseModel):
    """Access to Elasticsearch or OpenSearch, if the store is an address of one."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")] = "esjobs"
    """Prefix of the names of all indices of esjobs."""
    jobs_index: _Text | None = None
    """Index, alias or pattern of others that holds the jobs; not set: our own."""
    field_map: _Text | None = None
    """Map from foreign fields to those of the catalogue: a bundled map, or a file (``....toml``)."""
    read_at_most: Annotated[int, BeforeValidator(no_flag), Field(ge=0)] | None = 5_000_000
    """Documents of a jobs index of others that one question may read individually; ``--yes``: any number."""
    addresses: tuple[_Text, ...] = ()
    """Further addresses of the same cluster."""
    proxy: SecretStr | None = None
    """Forward proxy, ``http://[USER:PASSWORD@]HOST:PORT``; not set: from the environment."""
    product: Literal["elasticsearch", "opensearch"] | None = None
    """Client to use; not set: detected."""
    api_key: SecretStr | None = None
    """API key (Elasticsearch), encoded."""
    api_key_file: Path | None = None
    """File whose first line is the key; likewise the other files."""
    token: SecretStr | None = None
    """Bearer token."""
    token_file: Path | None = None
    user: _Text | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    aws_region: _Text | None = None
    """Region of an OpenSearch at AWS; needs the extra ``aws``."""
    ca_file: Path | None = None
    """Certificates to trust, PEM; not set: the system's."""
    certificate: Path | None = None
    """Certificate of the client, PEM."""
    key: Path | None = None
    """Private key of the client's certificate, PEM."""
    verify: bool = True
    """True if the cluster's certificate is checked."""
    timeout_s: Annotated[float, BeforeValidator(no_flag), Field(gt=0, le=86_400)] = 60.0
    retries: Annotated[int, BeforeValidator(no_flag), Field(ge=0, le=100)] = 3
    shards: Annotated[int, BeforeValidator(no_flag), Field(ge=1, le=100)] = 1
    """Of new indices of months."""
    replicas: Annotated[int, BeforeValidator(no_flag), Field(ge=0, le=10)] | None = None
    """Of new indices; not set: one if a second node exists."""
    template_priority: Annotated[int, BeforeValidator(no_flag), Field(ge=0, le=2**31 - 1)] = 500
    """Of the index templates of ``esjobs setup``."""


class DashboardSettings(BaseModel):
    """Dashboards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    days: Annotated[int, BeforeValidator(no_flag), Field(ge=1, le=36_500)] = 30
    """Days shown."""
    refresh_s: Annotated[int, BeforeValidator(no_flag), Field(ge=0, le=86_400)] = 300
    """Between refreshes; 0: never."""


class RetentionSettings(BaseModel):
    """Runs that ``esjobs prune`` keeps, by kind, length of window and restriction; buckets; loads.

    Only ``prune`` removes anything. The defaults leave every night of two months, one a week of a year and
    one a month of ten years. Buckets stay.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_newest: Number = 10
    """Newest runs to keep, whatever their days."""
    keep_daily: Number = 60
    """Days of which the latest run is kept."""
    keep_weekly: Number = 52
    """The same of weeks."""
    keep_monthly: Number = 120
    """The same of months."""
    keep_bucket_months: Count | None = None
    """Newest months of daily results to keep; not set: all."""
    undo_days: Number = 7
    """Days for which a load that has replaced jobs can be undone."""


class Settings(BaseModel):
    """All settings, validated and frozen; :func:`with_sections` adds the sections of ``capabilities``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=True)

    capabilities: ClassVar[tuple[Capability, ...]] = ()

    store: str = Field(default_factory=lambda: f"duckdb:{default_store_path()}", repr=False)
    """Store of jobs and results: ``duckdb:PATH``, ``duckdb::memory:``, or the address of a cluster."""
    memory: Annotated[str, BeforeValidator(_size)] = "1GB"
    """Memory that the embedded store may use before it spills to disk."""
    wait_s: Annotated[float, BeforeValidator(no_flag), Field(ge=0, le=86_400)] = 10.0
    """Time to wait for the file of an embedded store, which has one writer at a time."""
    share: Share = "nobody"
    """Readers of the files that are made, beside their owner: ``nobody``, the ``group``, or ``all``."""
    cluster: ClusterSettings = ClusterSettings()
    dashboards: DashboardSettings = DashboardSettings()
    rules: CleaningRules = CleaningRules()
    retention: RetentionSettings = RetentionSettings()

    # typed so: keywords of the sections that capabilities add are not fields of this class
    def __init__(self, **values: Any) -> None:
        super().__init__(**values)

    def section(self, kind: type[Section]) -> Section:
        """Return the section of a type, such as ``FitSettings``."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, kind):
                return value
        raise LookupError(f"no section of type {kind.__name__}")

    @property
    def memory_bytes(self) -> float:
        """The bytes that ``memory`` means here; a share is one of what the machine has."""
        size = _SIZE.fullmatch(self.memory)
        assert size is not None, "checked when the file was read"  # noqa: S101
        if size[4]:
            return float(size[1]) / 100 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return _bytes(size)

    @field_validator("rules", mode="before")
    @classmethod
    def _as_written(cls, rules: object) -> object:
        if not isinstance(rules, Mapping):
            return rules
        for name, value in rules.items():
            if isinstance(value, bool):
                raise _rule_error(name, value, "neither true nor false")
        return rules

    @field_validator("rules")
    @classmethod
    def _usable(cls, rules: CleaningRules) -> CleaningRules:
        if (problem := unusable(rules)) is not None:
            raise _rule_error(*problem)
        return rules

    @property
    def location(self) -> str:
        """The store as messages show it: an address without user and password."""
        return self.store if self.store.startswith("duckdb:") else without_login(self.store)

    def __repr_args__(self) -> Iterable[tuple[str | None, object]]:
        return [("store", self.location), *super().__repr_args__()]


@cache
def with_sections(capabilities: tuple[Capability, ...]) -> type[Settings]:
    """Return the class of settings that have the sections of some capabilities."""
    sections = {name: model.load() for each in capabilities for name, model in each.sections}
    fields: dict[str, Any] = {name: (model, model()) for name, model in sections.items()}
    # a class per set of capabilities: an unknown section is an unknown key, and refused
    made = create_model("Settings", __base__=Settings, **fields)
    made.capabilities = capabilities
    return made


def secret(text: str) -> SecretStr:
    """A text that no message shows."""
    return SecretStr(text)


def default_store_path() -> Path:
    """The embedded store in the user's data directory; nothing is created here."""
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "esjobs" / "jobs.duckdb"


def load(
    config: Path | None = None,
    store: str | None = None,
    *,
    kind: type[Settings] = Settings,
    jobs_index: str | None = None,
    field_map: str | None = None,
    read_all: bool = False,
    wait_s: float | None = None,
) -> Settings:
    """Read settings from the file and the environment; the other arguments override both.

    ``kind``: the class of the settings. Raises :class:`SettingsError` that names file, key, value and what is
    accepted.
    """
    values: dict[str, object] = {}
    if config is not None:
        try:
            values = tomllib.loads(_text(config))
        except FileNotFoundError:
            raise SettingsError(
                f"configuration file {config} not found; create it or omit --config"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"cannot read configuration file {config}: {error}") from error
        except ValueError as error:
            raise SettingsError(f"{config} is not valid TOML: {error}") from error
        except RecursionError as error:
            raise SettingsError(
                f"{config} is nested too deeply; each section of the settings is one table"
            ) from error
    where = str(config) if config is not None else "the environment (ESJOBS_...)"
    variable, off = NOT_MEASURED
    ignored = {*OF_LAUNCHES, *([variable] if os.environ.get(variable) == off else [])}
    named = environment.read(os.environ, kind, ignored)
    _refuse_unknown(kind, values, where)
    _refuse_unknown(kind, named, "the environment (ESJOBS_...)")
    try:
        # validated together: the environment may complete a section of the file
        settings = kind.model_validate(environment.merged(values, named))
    except ValidationError as error:
        raise _unaccepted(error, config) from error
    overrides = {"jobs_index": jobs_index, "field_map": field_map}
    chosen: dict[str, object] = {name: value for name, value in overrides.items() if value is not None}
    if read_all:
        chosen["read_at_most"] = None
    # options of the command line were checked by the command
    cluster = settings.cluster.model_copy(update=chosen)
    plain = {name: value for name, value in {"store": store, "wait_s": wait_s}.items() if value is not None}
    return settings.model_copy(update={"cluster": cluster} | plain)


def _text(config: Path) -> str:
    with config.open("rb") as stream:
        content = stream.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise SettingsError(f"{config} is larger than {_LARGEST_FILE >> 10} KiB; use a settings file")
    return content.decode("utf-8")


def _unaccepted(error: ValidationError, config: Path | None) -> SettingsError:
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    value, accepted = first["input"], first["msg"]
    if first["type"] == "rule":
        parts.append(first["ctx"]["name"])
        value = first["ctx"]["value"]
    if first["type"] in ("tuple_type", "list_type"):
        accepted = f"expected a list as JSON, such as {_LIST_EXAMPLE}"
    key = ".".join(parts[:2])
    variables = ("ESJOBS_" + "__".join(parts[:2]).upper(), "ESJOBS_" + parts[0].upper())
    variable = next((name for name in os.environ if name.upper() in variables), None)
    if parts[0] == "notify":  # any value may be a secret, also one that stands in a wrong place
        return SettingsError(f"setting '{_dotted(parts)}' is not accepted: {accepted}")
    if parts[0] == "store" or (parts[0] == "cluster" and key not in _SHOWN):  # may be, or contain, a secret
        return SettingsError(f"setting '{key}' ({variables[0]}) is not accepted: {accepted}")
    if variable is not None and variable.upper() == variables[0]:
        what, where = f"{variable}={os.environ[variable]}", "the environment"
    else:
        what = f"setting '{key}'"
        where = f"the environment ({variable})" if variable else str(config) if config else "the settings"
    return SettingsError(f"{what} in {where}: {accepted}, found {_short(value)}")


def _dotted(parts: Iterable[str]) -> str:
    # tables of a list are counted from 1
    return ".".join(f"[{int(part) + 1}]" if part.isdecimal() else part for part in parts).replace(".[", "[")


# Settings of a cluster that a message may show; all others may be secrets.
_SHOWN = {
    f"cluster.{name}"
    for name in (
        *("prefix", "product", "verify", "timeout_s", "retries", "jobs_index", "field_map"),
        *("shards", "replicas", "template_priority"),
    )
}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"


def _refuse_unknown(kind: type[Settings], values: Mapping[str, object], where: str) -> None:
    # a misspelt setting must not be passed over
    existing = environment.keys_of(kind)
    _refuse_unknown_of("", existing, values, where)
    for section, annotation in existing.items():
        inner, keys = values.get(section), environment.keys_of(annotation)
        if keys and isinstance(inner, Mapping):
            _refuse_unknown_of(f"{section}.", keys, inner, where)


def _refuse_unknown_of(prefix: str, existing: Iterable[str], values: Iterable[str], where: str) -> None:
    for key in values:
        if key not in existing:
            accepted = ", ".join(prefix + name for name in existing)
            raise SettingsError(f"unknown setting '{prefix}{key}' in {where}; use one of: {accepted}")
