"""What a user can set: in a file (``esjobs.toml``), in the environment (``ESJOBS_...``), on the command line.

The command line wins over the environment, the environment over the file. Unknown keys are refused.
"""

import dataclasses
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError as SourceError

from esjobs.core.errors import SettingsError
from esjobs.core.rules import CleaningRules
from esjobs.core.words import DEVIATION_LIMIT, Method
from esjobs.store.elastic.access import without_login

_LIST_EXAMPLE = 'ESJOBS_FIT__METHODS=\'["gamma", "paper"]\''
_SIZE = r"(?i)^\s*\d+(\.\d+)?\s*([KMGT]i?B|B|bytes|%)\s*$"
"""Sizes as DuckDB reads them."""


class FitSettings(BaseModel):
    """What enters the fits and when a name gets a verdict."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    methods: Annotated[tuple[Method, ...], Field(min_length=1)] = ("gamma", "paper")
    """Methods to fit, headline first."""
    min_bucket_jobs: Annotated[int, Field(ge=1)] = 20
    """Jobs a task must have at a queue (or on a CPU model) to enter the fit."""
    min_name_jobs: Annotated[int, Field(ge=1)] = 50
    """Jobs a name needs for a verdict."""
    deviation_limit: Annotated[float, Field(gt=0, lt=1)] = DEVIATION_LIMIT
    """Relative deviation that matters."""


class ClusterSettings(BaseModel):
    """How to reach Elasticsearch or OpenSearch, when the store is an address of one."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")] = "esjobs"
    """What the names of all indices of esjobs begin with."""
    jobs_index: str | None = None
    """Index, alias or pattern of others in which the jobs are; not set: what ``esjobs ingest`` put there."""
    field_map: str | None = None
    """Which foreign field stands for which of the catalogue: a bundled map, or a file (``....toml``)."""
    product: Literal["elasticsearch", "opensearch"] | None = None
    """Which client to use; found out by asking when not set."""
    api_key: SecretStr | None = None
    """API key (Elasticsearch), as the cluster gave it out, encoded."""
    token: SecretStr | None = None
    """Bearer token."""
    user: str | None = None
    password: SecretStr | None = None
    ca_file: Path | None = None
    """Certificates to trust, PEM; the system's when not set."""
    certificate: Path | None = None
    """Certificate of the client, PEM."""
    key: Path | None = None
    """Private key of the client's certificate, PEM."""
    verify: bool = True
    """Whether the cluster's certificate is checked."""
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    retries: Annotated[int, Field(ge=0)] = 3


class Settings(BaseSettings):
    """All settings, validated and frozen."""

    model_config = SettingsConfigDict(
        env_prefix="ESJOBS_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    store: str = Field(default_factory=lambda: f"duckdb:{default_store_path()}", repr=False)
    """Where jobs and results live: ``duckdb:PATH``, ``duckdb::memory:``, or the address of a cluster."""
    memory: Annotated[str, Field(pattern=_SIZE)] = "1GB"
    """How much memory the embedded store may use before it spills to disk."""
    cluster: ClusterSettings = ClusterSettings()
    fit: FitSettings = FitSettings()
    rules: CleaningRules = CleaningRules()

    @property
    def place(self) -> str:
        """The store as messages show it: an address without user and password."""
        return self.store if self.store.startswith("duckdb:") else without_login(self.store)

    def __repr_args__(self) -> Iterable[tuple[str | None, object]]:
        return [("store", self.place), *super().__repr_args__()]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over what :func:`load` passes from the file."""
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings


def secret(text: str) -> SecretStr:
    """A text that no message shows."""
    return SecretStr(text)


def default_store_path() -> Path:
    """The embedded store in the user's data directory; nothing is created here."""
    return user_data_path("esjobs") / "jobs.duckdb"


def load(
    config: Path | None = None,
    store: str | None = None,
    *,
    jobs_index: str | None = None,
    field_map: str | None = None,
) -> Settings:
    """Read settings from the file (if named) and the environment; what else is given overrides both.

    Raises :class:`SettingsError` in one line that names the file, the key, the value and what is accepted.
    """
    values: dict[str, object] = {}
    if config is not None:
        try:
            values = tomllib.loads(config.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise SettingsError(f"no configuration file {config}; create it or leave --config out") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"cannot read the configuration file {config}: {error}") from error
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{config} is not TOML: {error}") from error
    where = str(config) if config is not None else "the environment (ESJOBS_...)"
    _refuse_unknown(values, where)
    _refuse_unknown(_named_in_environment(), "the environment (ESJOBS_...)")
    try:
        settings = Settings(**values)  # type: ignore[arg-type]
    except ValidationError as error:
        raise _unaccepted(error, config) from error
    except SourceError as error:
        raise SettingsError(
            f"a setting in {where} cannot be read ({error}); lists are written as JSON, "
            f"such as {_LIST_EXAMPLE}"
        ) from error
    given = {"jobs_index": jobs_index, "field_map": field_map}
    chosen = {name: value for name, value in given.items() if value is not None}
    cluster = settings.cluster.model_copy(update=chosen)
    return settings.model_copy(update={"cluster": cluster} | ({} if store is None else {"store": store}))


def _unaccepted(error: ValidationError, config: Path | None) -> SettingsError:
    """The first value that is not accepted, by the name that it was set under, and what is accepted."""
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    variable = "ESJOBS_" + "__".join(parts[:2]).upper()
    if parts[0] == "cluster":  # may be a secret
        return SettingsError(f"setting '{'.'.join(parts)}' ({variable}) is not accepted: {first['msg']}")
    if variable in os.environ:
        what, where = f"{variable}={os.environ[variable]}", "the environment"
    else:
        what, where = f"setting '{'.'.join(parts)}'", str(config) if config else "the settings"
    accepted = first["msg"]
    if first["type"] in ("tuple_type", "list_type"):
        accepted = f"expected a list as JSON, such as {_LIST_EXAMPLE}"
    elif first["type"] == "string_pattern_mismatch":
        accepted = "expected a size such as 1GB or 512MB"
    return SettingsError(f"{what} in {where}: {accepted}, found {first['input']!r}")


def _refuse_unknown(values: Mapping[str, object], where: str) -> None:
    """Name an unknown key and the keys that exist: a misspelt setting must not be passed over."""
    sections: dict[str, Iterable[str]] = {
        "": Settings.model_fields,
        "cluster": ClusterSettings.model_fields,
        "fit": FitSettings.model_fields,
        "rules": (field.name for field in dataclasses.fields(CleaningRules)),
    }
    for section, known in sections.items():
        found = values if not section else values.get(section)
        if isinstance(found, Mapping):
            names = list(known)
            prefix = f"{section}." if section else ""
            for key in found:
                if key not in names:
                    accepted = ", ".join(prefix + name for name in names)
                    raise SettingsError(f"no setting '{prefix}{key}', found in {where}; there are {accepted}")


def _named_in_environment() -> dict[str, object]:
    """The settings that environment variables name, nested by two underscores; values are not read here."""
    found: dict[str, object] = {}
    for variable in os.environ:
        if variable.startswith("ESJOBS_"):
            section, _, key = variable.removeprefix("ESJOBS_").lower().partition("__")
            if key:
                inner = found.setdefault(section, {})
                if isinstance(inner, dict):
                    inner[key] = None
            else:
                found.setdefault(section, None)
    return found
