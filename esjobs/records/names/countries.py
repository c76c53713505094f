"""Countries by the codes and names that information systems write."""

import tomllib
from functools import cache
from importlib.resources import files


def country_code(text: str) -> str | None:
    """Return the ISO 3166 alpha-2 code of a country by code or English name, in any case; None if unknown.

    >>> country_code("FRA"), country_code("czech republic"), country_code("Europe")
    ('FR', 'CZ', None)
    """
    return _codes().get(text.strip().casefold())


@cache
def _codes() -> dict[str, str]:
    content = files("esjobs.records.names").joinpath("countries.toml").read_text(encoding="utf-8")
    names = tomllib.loads(content)
    return {each.casefold(): code for code, spellings in names.items() for each in (code, *spellings)}
