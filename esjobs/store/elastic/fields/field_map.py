"""Field maps: foreign fields of a jobs index for the fields of the catalogue.

A TOML file with ``time`` (the end time), ``texts`` (suffix of groupable texts, such as ``.keyword``) and
``[fields]``: a name, a list of names in order of preference, or a table with ``field``, ``factor`` (to base
units), ``unset`` (number for not measured), ``values`` (foreign to canonical), ``absent`` (``"missing"`` or
``"refuse"``), or a ``constant``.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from esjobs.core import fields
from esjobs.core.errors import SettingsError, UsageError

_BUNDLED = files("esjobs.store.elastic.fields") / "field_maps"
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Source:
    """Source of the values of a field."""

    names: tuple[str, ...] = ()
    constant: str | bool | None = None
    factor: float = 1.0
    unset: float | None = None
    values: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    absent: Literal["missing", "refuse"] = "missing"


@dataclass(frozen=True)
class FieldMap:
    """Sources by stored field; fields that are not listed are missing.

    ``texts``: suffix of groupable texts for dashboards; steps ask the index itself.
    """

    name: str
    description: str
    sources: Mapping[str, Source]
    texts: str = ""

    @property
    def time(self) -> str:
        """Time field of the index."""
        return self.sources["end_time"].names[0]


def bundled() -> tuple[str, ...]:
    """Return the names of the bundled maps.

    >>> bundled()
    ('atlas-panda', 'cms-htcondor', 'esjobs', 'rubin-panda')
    """
    names = [entry.name for entry in _BUNDLED.iterdir() if entry.name.endswith(".toml")]
    return tuple(sorted(name.removesuffix(".toml") for name in names))


def load_field_map(name: str) -> FieldMap:
    """Load a map by name or by path (``.toml``).

    Raises :class:`UsageError` for an unknown name, :class:`SettingsError` for an invalid file.
    """
    # names first: a file called like a bundled map is reached by its path
    if name in bundled():
        return _parsed(name, name, (_BUNDLED / f"{name}.toml").read_text(encoding="utf-8"))
    path = Path(name).expanduser()
    if path.suffix != ".toml":
        raise UsageError(
            f"unknown field map '{name}'; use one of {', '.join(bundled())}, or the path of a .toml file"
        )
    try:
        return _parsed(path.stem, str(path), path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(
            f"field map {path} not found; create it, or use one of {', '.join(bundled())}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read field map {path}: {error}") from error


def _parsed(name: str, where: str, text: str) -> FieldMap:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{where} is not valid TOML: {error}") from error
    time, named = found.get("time"), found.get("fields", {})
    unknown = sorted(set(found) - {"time", "fields", "description", "texts"})
    if unknown:
        raise SettingsError(f"{where}: unknown key '{unknown[0]}'; use time, fields, description, texts")
    texts = found.get("texts", "")
    if not isinstance(texts, str):
        raise SettingsError(f"{where}: texts must be the suffix of text fields, such as .keyword")
    if not isinstance(time, str) or not time or not isinstance(named, dict):
        raise SettingsError(f'{where} has no time field; add time = "..." before [fields]')
    sources = {"end_time": Source((time,), absent="refuse")}
    for canonical, value in named.items():
        if canonical not in _STORED:
            raise SettingsError(f"{where}: '{canonical}' is not a stored field; list fields: esjobs fields")
        if canonical == "end_time":
            raise SettingsError(f"{where}: end_time is the field of 'time'; omit it in [fields]")
        sources[canonical] = _source(canonical, value, where)
    for canonical in fields.REQUIRED:
        if canonical not in sources:
            raise SettingsError(f"{where} has no entry for {canonical}, which each job requires")
    return FieldMap(name, str(found.get("description", "")), sources, texts)


_STORED = frozenset(item.name for item in fields.JOB_FIELDS)
_KEYS = {"field", "constant", "factor", "unset", "values", "absent"}


def _source(canonical: str, value: Any, where: str) -> Source:
    entries = dict(value) if isinstance(value, dict) else {"field": value}
    kind = fields.field(canonical).type
    names = entries.get("field", [])
    names = [names] if isinstance(names, str) else names
    wrong = _wrong_field(entries, names, kind) or _wrong_values(entries, kind)
    if wrong is not None:
        raise SettingsError(f"{where}: {canonical}: {wrong}")
    # without these no document is a job
    usual = "refuse" if canonical in fields.REQUIRED else "missing"
    return Source(
        tuple(names),
        entries.get("constant"),
        float(entries.get("factor", 1)),
        entries.get("unset"),
        MappingProxyType(entries.get("values", {})),
        entries.get("absent", usual),
    )


def _wrong_field(entries: Mapping[str, Any], names: Any, kind: str) -> str | None:
    """Return the fault of the keys, or of the field and constant; None without one."""
    constant = entries.get("constant")
    if unknown := sorted(set(entries) - _KEYS):
        return f"unknown key '{unknown[0]}'; use one of: {', '.join(sorted(_KEYS))}"
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        return "field must be a name or a list of names"
    if (constant is None) == (not names):
        return "specify either a field or a constant"
    if constant is not None and not _can_be_constant(kind, constant):
        return "only text can be constant, and true or false for boolean fields"
    return None


def _wrong_values(entries: Mapping[str, Any], kind: str) -> str | None:
    """Return the fault of the translation of values; None without one."""
    factor, unset, values = entries.get("factor", 1), entries.get("unset"), entries.get("values", {})
    numeric = kind in ("integer", "number")
    if not _is_number(factor) or factor <= 0 or (factor != 1 and not numeric):
        return "factor must be a positive number, and only for numeric fields"
    if unset is not None and not (_is_number(unset) and numeric):
        return "unset must be a number, and only for numeric fields"
    if not isinstance(values, dict) or (values and kind != "keyword"):
        return "values must be a table of texts, and only for text fields"
    if not all(isinstance(item, str) for item in values.values()):
        return "values must be a table of texts"
    if entries.get("absent", "missing") not in ("missing", "refuse"):
        return 'absent must be "missing" or "refuse"'
    return None


def _can_be_constant(kind: str, constant: object) -> bool:
    return isinstance(constant, {"keyword": str, "boolean": bool}.get(kind, ()))


def _is_number(value: object) -> bool:
    # true is an integer to Python
    return isinstance(value, int | float) and not isinstance(value, bool)
