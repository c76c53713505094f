"""Field maps: which foreign field of a jobs' index stands for which field of the catalogue.

A map is a TOML file, one of the package's or the user's own: ``time``, the index's time field, which is the
``end_time`` of a job, ``texts``, the end of the names by which texts are grouped (``.keyword``), where they
have such a field beside them, and under ``[fields]``, for each field of the catalogue that the index knows,

- the name of the foreign field, or several, the first that a document has being taken, or
- a table: ``field`` (one or several names), ``factor`` (foreign value x factor = base unit), ``unset`` (the
  number that means not measured), ``values`` (foreign value -> the catalogue's), ``absent`` (``"missing"``,
  or ``"refuse"`` where nothing makes sense without it), or ``constant``, the same text or truth value for
  every job. A field that is a map (``counters``) is an object with a number a name.
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
    """Where the values of a field of the catalogue come from."""

    names: tuple[str, ...] = ()
    constant: str | bool | None = None
    factor: float = 1.0
    unset: float | None = None
    values: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    absent: Literal["missing", "refuse"] = "missing"


@dataclass(frozen=True)
class FieldMap:
    """Sources by the names of the catalogue's stored fields; what a map does not name is missing.

    ``texts``: what stands behind the name of a text where it can be grouped by (``.keyword``); the steps ask
    the index itself, dashboards are written without one.
    """

    name: str
    description: str
    sources: Mapping[str, Source]
    texts: str = ""

    @property
    def time(self) -> str:
        """The index's time field."""
        return self.sources["end_time"].names[0]


def bundled() -> tuple[str, ...]:
    """The names of the maps that come with the package.

    >>> bundled()
    ('atlas-panda', 'cms-htcondor', 'esjobs', 'rubin-panda')
    """
    names = [entry.name for entry in _BUNDLED.iterdir() if entry.name.endswith(".toml")]
    return tuple(sorted(name.removesuffix(".toml") for name in names))


def load_field_map(name: str) -> FieldMap:
    """A map by its name, or by the path of the user's own file (``.toml``).

    Raises :class:`UsageError` for a name that nobody knows, :class:`SettingsError` for a file that is no map.
    """
    if name in bundled():
        return _parsed(name, name, (_BUNDLED / f"{name}.toml").read_text(encoding="utf-8"))
    path = Path(name).expanduser()
    if path.suffix != ".toml":
        raise UsageError(f"no field map '{name}'; there are {', '.join(bundled())}, or name a file ....toml")
    try:
        return _parsed(path.stem, str(path), path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"no field map {path}; create it, or use {', '.join(bundled())}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the field map {path}: {error}") from error


def _parsed(name: str, where: str, text: str) -> FieldMap:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{where} is not TOML: {error}") from error
    time, named = found.get("time"), found.get("fields", {})
    unknown = sorted(set(found) - {"time", "fields", "description", "texts"})
    if unknown:
        raise SettingsError(f"{where}: no key '{unknown[0]}'; there are time, fields, description, texts")
    texts = found.get("texts", "")
    if not isinstance(texts, str):
        raise SettingsError(f"{where}: texts is what stands behind the name of a text, such as .keyword")
    if not isinstance(time, str) or not time or not isinstance(named, dict):
        raise SettingsError(f'{where} names no time field; add time = "..." before [fields]')
    sources = {"end_time": Source((time,), absent="refuse")}
    for canonical, value in named.items():
        if canonical not in _STORED:
            raise SettingsError(
                f"{where}: '{canonical}' is no stored field of the catalogue; see: esjobs fields"
            )
        if canonical == "end_time":
            raise SettingsError(f"{where}: end_time is what 'time' names; leave it out of [fields]")
        sources[canonical] = _source(canonical, value, where)
    for canonical in fields.REQUIRED:
        if canonical not in sources:
            raise SettingsError(f"{where} names nothing for {canonical}, which every job needs")
    return FieldMap(name, str(found.get("description", "")), sources, texts)


_STORED = frozenset(item.name for item in fields.JOB_FIELDS)
_KEYS = {"field", "constant", "factor", "unset", "values", "absent"}


def _source(canonical: str, value: Any, where: str) -> Source:
    given = dict(value) if isinstance(value, dict) else {"field": value}
    required = canonical in fields.REQUIRED
    kind = fields.field(canonical).type
    numeric = kind in ("integer", "number")
    names = given.get("field", [])
    names = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list) else None
    constant, values = given.get("constant"), given.get("values", {})
    factor, unset, absent = (
        given.get("factor", 1),
        given.get("unset"),
        given.get("absent", "refuse" if required else "missing"),
    )
    wrong = None
    if unknown := sorted(set(given) - _KEYS):
        wrong = f"no key '{unknown[0]}'; there are {', '.join(sorted(_KEYS))}"
    elif names is None or not all(isinstance(name, str) and name for name in names):
        wrong = "field is a name or a list of names"
    elif (constant is None) == (not names):
        wrong = "give a field or a constant, one of them"
    elif constant is not None and not _can_be_constant(kind, constant):
        wrong = "only texts can be constant, and true or false where that is asked for"
    elif not _is_number(factor) or factor <= 0 or (factor != 1 and not numeric):
        wrong = "factor is a positive number, and only for numbers"
    elif unset is not None and not (_is_number(unset) and numeric):
        wrong = "unset is a number, and only for numbers"
    elif not isinstance(values, dict) or (values and kind != "keyword"):
        wrong = "values is a table of texts, and only for texts"
    elif not all(isinstance(item, str) for item in values.values()):
        wrong = "values is a table of texts"
    elif absent not in ("missing", "refuse"):
        wrong = 'absent is "missing" or "refuse"'
    if wrong is not None or names is None:
        raise SettingsError(f"{where}: {canonical}: {wrong}")
    return Source(names, constant, float(factor), unset, MappingProxyType(values), absent)


def _can_be_constant(kind: str, constant: object) -> bool:
    return isinstance(constant, {"keyword": str, "boolean": bool}.get(kind, ()))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
