"""Table of error codes: the category of each code, one sentence about it, and who acts."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from esjobs.core.attached import OfStore
from esjobs.core.errors import SettingsError
from esjobs.records.errors.primary import FAMILIES

RETRIED = "retried"
"""Category of attempts that the system replaced; they are not lost to anybody."""
KILLED = "killed"
"""Category of jobs that a person or a rule ended."""

_FAMILIES = frozenset((*FAMILIES, "cms", "hold", "state", "exit", "none"))
_TEXTS = ("who", "sentence")
_ELSE = "else"


@dataclass(frozen=True)
class Category:
    """A category of errors: ``who`` acts on it, and a ``sentence`` about it."""

    name: str
    who: str = ""
    sentence: str = ""


@dataclass(frozen=True)
class ErrorTable:
    """Categories by name; ``codes``: category of each ``FAMILY:CODE``, of ``FAMILY:else`` and of ranges.

    >>> shipped().category("pilot:1235").name, shipped().category("pilot:9").name, shipped().category(None)
    ('memory', 'system', None)
    """

    categories: Mapping[str, Category]
    codes: Mapping[str, str]
    ranges: Mapping[str, tuple[tuple[int, int, str], ...]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def category(self, error: str | None) -> Category | None:
        """Return the category of an error; None without an error, and for a family that the table lacks."""
        if error is None:
            return None
        family, _, code = error.partition(":")
        # a single code before a range, a range before the family
        name = "unknown" if code == "unparsed" else self.codes.get(error) or self._by_range(family, code)
        return self.categories.get(name or self.codes.get(f"{family}:{_ELSE}", ""))

    def _by_range(self, family: str, code: str) -> str | None:
        if not code.isdecimal():
            return None
        number = int(code)
        return next((name for low, high, name in self.ranges.get(family, ()) if low <= number <= high), None)

    def sentence(self, error: str) -> str:
        """Return what a code means, else the sentence of its category; a code by its family alone says so."""
        category = self.category(error)
        if error in self.texts or category is None:
            return self.texts.get(error, "")
        listed = error in self.codes or self._by_range(*_split(error)) is not None
        return category.sentence if listed else f"{category.sentence} (Unlisted code, by its family.)"

    def over(self, below: "ErrorTable") -> "ErrorTable":
        """Return this table with everything of another one that it does not define."""
        names = below.categories.keys() | self.categories.keys()
        joined = {name: _joined(self.categories.get(name), below.categories.get(name)) for name in names}
        # a range of ours wins over a single code of theirs
        theirs = {code: name for code, name in below.codes.items() if self._by_range(*_split(code)) is None}
        ranges = {
            family: (*self.ranges.get(family, ()), *below.ranges.get(family, ()))
            for family in self.ranges.keys() | below.ranges.keys()
        }
        return ErrorTable(joined, {**theirs, **self.codes}, ranges, {**below.texts, **self.texts})


def _split(error: str) -> tuple[str, str]:
    family, _, code = error.partition(":")
    return family, code


def _joined(own: Category | None, other: Category | None) -> Category:
    first = own or other
    assert first is not None, "a name of either table"  # noqa: S101
    if other is None:
        return first
    return Category(first.name, first.who or other.who, first.sentence or other.sentence)


@cache
def shipped() -> ErrorTable:
    """Return the table of the package."""
    text = files("esjobs.records.errors").joinpath("categories.toml").read_text(encoding="utf-8")
    return parse_table(text, "categories.toml")


def load_table(path: Path) -> ErrorTable:
    """Return the table of a file, completed by that of the package.

    Raises :class:`SettingsError` for a file that cannot be read or is wrong.
    """
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"cannot read the table of errors {path}: {error}; correct [errors] table"
        ) from error
    return parse_table(text, str(path)).over(shipped())


def _require_texts(texts: object, where: str) -> None:
    if not isinstance(texts, dict) or not all(isinstance(each, str) for each in texts.values()):
        raise SettingsError(
            f'{where}: [texts] must be a table of texts, such as "pilot:1305" = "payload failed"'
        )


def parse_table(text: str, where: str) -> ErrorTable:
    """Read a table from TOML; :class:`SettingsError` that names file, key and accepted values."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{where} is not valid TOML: {error}") from error
    texts = found.pop("texts", {})
    _require_texts(texts, where)
    categories: dict[str, Category] = {}
    codes: dict[str, str] = {}
    ranges: dict[str, tuple[tuple[int, int, str], ...]] = {}
    for name, entries in found.items():
        _require_category(name, entries, where)
        categories[name] = Category(name, *(entries.get(key, "") for key in _TEXTS))
        for family, listed in entries.items():
            if family in _TEXTS:
                continue
            # a single code has equal ends
            for low, high, code in _codes(listed, f"{where}: {name}.{family}"):
                if high > low:
                    ranges[family] = (*ranges.get(family, ()), (low, high, name))
                elif codes.setdefault(f"{family}:{code}", name) != name:
                    raise SettingsError(f"{where}: {family}:{code} is in two categories; keep one")
    return ErrorTable(categories, codes, ranges, texts)


def _require_category(name: str, entries: Any, where: str) -> None:
    if not isinstance(entries, dict):
        raise SettingsError(
            f"{where}: '{name}' must be a table, [{name}], with {', '.join(_TEXTS)} and codes"
        )
    unknown = sorted(entries.keys() - _FAMILIES - {*_TEXTS})
    if unknown:
        accepted = ", ".join([*_TEXTS, *sorted(_FAMILIES)])
        raise SettingsError(f"{where}: [{name}] has an unknown key '{unknown[0]}'; use one of: {accepted}")
    wrong = next((key for key in _TEXTS if not isinstance(entries.get(key, ""), str)), None)
    if wrong is not None:
        raise SettingsError(f"{where}: {name}.{wrong} must be a text")


def _codes(listed: Any, where: str) -> Iterator[tuple[int, int, str]]:
    """Yield codes: the ends of a range, equal for a single code, and its text."""
    if not isinstance(listed, list):
        raise SettingsError(f"{where} must be a list of codes and ranges, such as [1305, '3631-3639']")
    for each in listed:
        # "-3" is a code, "3-5" a range, "0:9" a code of Slurm
        low, dash, high = str(each).partition("-")
        if isinstance(each, str) and dash and low.isdecimal() and high.isdecimal() and int(low) < int(high):
            yield int(low), int(high), each
        elif isinstance(each, bool) or not isinstance(each, str | int) or (dash and low.isdecimal()):
            raise SettingsError(f"{where} contains {each!r}; expected a code or a range such as '3631-3639'")
        else:
            yield 0, 0, str(each)


ERROR_TABLES = OfStore(shipped)
"""Table of each store."""
