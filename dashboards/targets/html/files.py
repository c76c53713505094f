"""Our own templates, style sheets and scripts, read from beside this module."""

import json
from pathlib import Path

import jinja2

_HERE = Path(__file__).parent


def read(name: str) -> str:
    """Return a file by its path below this folder."""
    return (_HERE / name).read_text(encoding="utf-8")


def environment() -> jinja2.Environment:
    """Return the environment of all templates: texts are escaped, a misspelt name is an error."""
    return jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def compact(value: object) -> str:
    """Return a value as JSON without spaces; NaN, which browsers refuse, raises ValueError."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def inside_page(value: object) -> str:
    """Return a value as JSON in which no character can end the element that holds it."""
    text = compact(value)
    # the last two end a line inside a text of JavaScript
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
