"""Hints of issues: sentences with placeholders such as ``{value:percent}``.

Placeholders contain names only, no attributes, calls or conversions, and an optional form:


| form | example |
|---|---|
| (none), ``number`` | 0.832, 1,250 |
| ``percent`` | 83 % |
| ``bytes``, ``rate`` | 12.5 GiB, 12.5 GB/s |
| ``flops``, ``clock``, ``power`` | 264 GF/s, 2.4 GHz, 350 W |
| ``energy`` | 1.2 kWh, of a number of joules |
| ``hours`` | 12.5 h, of a number of hours |
| ``time`` | 2.1 h, of a number of seconds |

What is not known is written as ``?``.
"""

import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from esjobs.core.numbers import amount, binary_size, duration, percent
from esjobs.core.text import visible

LONGEST = 2000
"""Characters of a hint."""


class HintError(ValueError):
    """Error in a hint; the reader of rules adds file and line."""


@dataclass(frozen=True)
class Hint:
    """Parsed hint: texts, each followed by a name and its form."""

    text: str
    parts: tuple[tuple[str, str, str], ...]

    @property
    def names(self) -> frozenset[str]:
        """Names of the placeholders."""
        return frozenset(name for _, name, _ in self.parts if name)

    def filled_rows(self, values: Mapping[str, Sequence[object]], n: int) -> list[str]:
        """Return the sentences of ``n`` rows; ``values``: a column for each name. Equal values cost one."""
        texts = [""] * n
        for before, name, form in self.parts:
            if name:
                column = values[name]
                # thousands of rows have a few different values
                shown = {value: before + formatted(value, form) for value in set(column)}
                texts = [text + shown[value] for text, value in zip(texts, column, strict=True)]
            else:
                texts = [text + before for text in texts]
        return texts


def read_hint(text: object, exists: Callable[[str], bool]) -> Hint:
    """Parse a hint; raises :class:`HintError`.

    >>> read_hint("{value:percent} of the cores", {"value"}.__contains__).filled_rows({"value": [0.5, 1]}, 2)
    ['50 % of the cores', '100 % of the cores']
    """
    if not isinstance(text, str) or not text.strip():
        raise HintError("a hint must be a text")
    if len(text) > LONGEST:
        raise HintError(f"a hint is longer than {LONGEST} characters")
    try:
        # parsed only: str.format would follow attributes of what stands in the braces
        parsed = list(string.Formatter().parse(" ".join(text.split())))
    except ValueError as error:
        raise HintError(f"invalid hint: {error}; write a brace as {{{{ or }}}}") from None
    parts = []
    for before, name, form, conversion in parsed:
        if name is not None:
            _require_place(name, form or "number", conversion, exists)
        parts.append((before, name or "", form or "number"))
    return Hint(" ".join(text.split()), tuple(parts))


def _require_place(name: str, form: str, conversion: str | None, exists: Callable[[str], bool]) -> None:
    if conversion or not exists(name):
        raise HintError(f"unknown placeholder '{name:.40}' in the hint")
    if form not in FORMS:
        raise HintError(f"'{{{name}:{form:.20}}}': unknown format; use one of: {', '.join(FORMS)}")


def formatted(value: object, form: str = "number") -> str:
    """Format a value for a sentence.

    >>> [formatted(0.4449, "percent"), formatted(3.2e9, "bytes"), formatted(7500.0, "time")]
    ['44 %', '2.98 GiB', '2.1 h']
    >>> formatted(None), formatted(1250.4)
    ('?', '1,250')
    """
    if value is None:
        return "?"
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, int | float):
        return FORMS[form](float(value)) if math.isfinite(value) else "?"
    return str(value)


_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def prefixed(unit: str, value: float) -> str:
    """Format a value with a prefix of powers of 1000."""
    for prefix, size in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


FORMS: Mapping[str, Callable[[float], str]] = {
    "number": amount,
    "percent": percent,
    "bytes": binary_size,
    "rate": partial(prefixed, "B/s"),
    "flops": partial(prefixed, "F/s"),
    "clock": partial(prefixed, "Hz"),
    "power": partial(prefixed, "W"),
    "energy": lambda value: f"{value / 3.6e6:.3g} kWh",
    "hours": lambda value: f"{amount(value)} h",
    "time": duration,
}
"""Formats of numbers, by name."""
