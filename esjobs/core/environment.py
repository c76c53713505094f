"""Settings in environment variables: ``ESJOBS_SECTION__KEY``, nested by two underscores."""

import contextlib
import dataclasses
import json
from collections.abc import Collection, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

PREFIX = "ESJOBS_"


def read(variables: Mapping[str, str], model: type, ignored: Collection[str] = ()) -> dict[str, object]:
    """Return the settings of variables, nested as in a file; names in any case.

    Lists and tables are JSON; other values stay text for the pydantic ``model`` to check. A variable of one
    key overrides that of its section.

    >>> from esjobs.core.rules import CleaningRules
    >>> read({"ESJOBS_MIN_EVENTS": "3", "ESJOBS_FINISHED_STATES": '["done"]'}, CleaningRules)
    {'min_events': '3', 'finished_states': ['done']}
    """
    values: dict[str, object] = {}
    # sections before their keys: the variable of a key overrides that of its section
    for variable in sorted(variables, key=lambda each: each.count("__")):
        name = variable.upper()
        if not name.startswith(PREFIX) or name in ignored:
            continue
        *sections, key = path = name.removeprefix(PREFIX).lower().split("__")
        inner: object = values
        for section in sections:
            inner = inner.setdefault(section, {}) if isinstance(inner, dict) else inner
        # a section that is not a table stays as it is, and is refused
        if isinstance(inner, dict):
            inner[key] = _value(variables[variable], _annotation(model, path))
    return values


def merged(values: Mapping[str, object], winning: Mapping[str, object]) -> dict[str, object]:
    """Return nested values, overridden table by table by the second mapping."""
    result = dict(values)
    for name, value in winning.items():
        before = result.get(name)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        result[name] = merged(before, value) if both else value  # type: ignore[arg-type]
    return result


def keys_of(kind: Any) -> dict[str, Any]:
    """Return annotations of a model or dataclass by key; empty for anything else."""
    if hasattr(kind, "model_fields"):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return {}


def _annotation(kind: Any, path: Collection[str]) -> Any:
    for key in path:
        # of an optional section, the member of the union that has the key
        tables = (keys_of(each) for each in _options(kind))
        kind = next((keys[key] for keys in tables if key in keys), None)
    return kind


def _options(annotation: Any) -> list[Any]:
    """Return the members of a union, or the type itself."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _options(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [option for each in get_args(annotation) for option in _options(each)]
    return [annotation]


def _value(text: str, annotation: Any) -> object:
    """Return a parsed list or table where one is expected and the text is JSON, else the text."""
    expected = any(get_origin(each) in (tuple, list, dict) or keys_of(each) for each in _options(annotation))
    if expected:
        # not JSON: pydantic refuses the text and says what it expects
        with contextlib.suppress(ValueError):
            return json.loads(text)
    return text
