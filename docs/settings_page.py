"""Page of the settings: sections, keys, defaults and meanings, from the models and their sources."""

import ast
import dataclasses
import inspect
import json
import textwrap
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from esjobs.entry import load

_HEAD = """# Settings

{note}
The command line wins over the environment, the environment over the file (`--config esjobs.toml`, TOML).
A key in the environment is `ESJOBS_SECTION__KEY` in upper case, lists as JSON:
`ESJOBS_FIT__METHODS='["gamma", "paper"]'`. Unknown keys and impossible values are refused. Defaults
stand in parentheses.
"""
_REQUIRED = object()


class _Key(NamedTuple):
    """A key of a section; ``default``: ``_REQUIRED`` where it must be given."""

    name: str
    annotation: object
    default: object


def settings_page(note: str) -> str:
    """Return the page: the keys of the file itself, then section by section."""
    root = type(load(None, "duckdb::memory:"))
    keys = [key for key in _keys(root) if not _sections(key)]
    lines = [_HEAD.format(note=note), "## The file itself\n", *_lines(keys, root)]
    for key in _keys(root):
        for section in _sections(key):
            lines += _section(key.name, section, key)
    return "\n".join(lines) + "\n"


def _section(name: str, model: type, key: _Key) -> list[str]:
    listed = "tuple" in str(key.annotation)
    keys = _keys(model)
    lines = [f"\n## {f'[[{name}]]' if listed else f'[{name}]'}\n", _sentence(inspect.getdoc(model) or ""), ""]
    lines += _lines([each for each in keys if not _sections(each)], model)
    for each in keys:
        for section in _sections(each):
            lines += _section(f"{name}.{each.name}", section, each)
    return lines


def _keys(model: Any) -> list[_Key]:
    if issubclass(model, BaseModel):
        return [
            _Key(name, field.annotation, _REQUIRED if field.is_required() else field.default)
            for name, field in model.model_fields.items()
        ]
    hints = get_type_hints(model)
    return [_Key(each.name, hints[each.name], each.default) for each in dataclasses.fields(model)]


def _sections(key: _Key) -> list[type]:
    """Return the classes of settings that the annotation of a key holds."""
    return list(_inside(key.annotation))


def _inside(annotation: object) -> Iterator[type]:
    if inspect.isclass(annotation) and (
        issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)
    ):
        yield annotation
    for argument in get_args(annotation):
        yield from _inside(argument)


def _lines(keys: list[_Key], model: type) -> list[str]:
    texts = _texts(model)
    lines = []
    for key in keys:
        meaning = _sentence(texts.get(key.name, ""))
        accepted = [f"`{word}`" for word in _words(key.annotation)]
        if not all(word in meaning for word in accepted):
            meaning = f"{meaning} Accepted: {', '.join(accepted)}.".lstrip()
        lines.append(f"- `{key.name}`{_default(key.default)}{f': {meaning}' if meaning else ''}")
    return lines


def _words(annotation: object) -> Iterator[str]:
    """Yield the words that a key accepts, where its annotation lists them."""
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    else:
        for argument in get_args(annotation):
            yield from _words(argument)


def _default(value: Any) -> str:
    if value is _REQUIRED:
        return " (required)"
    if value in (None, ()) or type(value).__module__.startswith("pydantic"):
        return ""
    return f" (`{value if isinstance(value, (Path, date)) else json.dumps(value, ensure_ascii=False)}`)"


def _texts(model: type) -> dict[str, str]:
    """Return the strings that stand below the fields of a class and of its bases."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each in (object, BaseModel):
            continue
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        except (OSError, TypeError):  # a class that is made at run time
            continue
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for statement, below in pairwise(body):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                match below:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        found[statement.target.id] = text
    return found


def _sentence(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].replace("``", "`").split())
