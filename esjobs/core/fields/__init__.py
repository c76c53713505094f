"""The field catalogue: every field of a job with type, unit and meaning.

Stores derive their layout from it, sources map into it, queries take names from it. Base units only: seconds
(``_s``), bytes (``_b``), fractions 0–1. Missing is null, never 0. ``core/arrow.py``, ``store/duck/schema.py``
and ``store/elastic/layout.py`` translate the types.
"""

from esjobs.core.errors import UsageError
from esjobs.core.fields.derived import DERIVED_FIELDS
from esjobs.core.fields.jobs import JOB_FIELDS
from esjobs.core.fields.types import CoreClassOf, DayOf, Derivation, Field, FieldType, Quotient, Resolved

__all__ = [
    "DERIVED_FIELDS",
    "JOB_FIELDS",
    "REQUIRED",
    "CoreClassOf",
    "DayOf",
    "Derivation",
    "Field",
    "FieldType",
    "Quotient",
    "Resolved",
    "field",
    "is_field",
]

_BY_NAME = {field.name: field for field in (*JOB_FIELDS, *DERIVED_FIELDS)}
REQUIRED = tuple(field.name for field in JOB_FIELDS if field.required)


def field(name: str) -> Field:
    """Return a field by name. Raises :class:`UsageError` that lists the nearest names.

    >>> field("cpu_s").unit
    's'
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise UsageError(f"unknown field '{name}'{_nearest(name)}; list fields: esjobs fields") from None


def is_field(name: str) -> bool:
    """True if the catalogue has a field of this name."""
    return name in _BY_NAME


def _nearest(name: str) -> str:
    import difflib  # only for a message

    close = difflib.get_close_matches(name, _BY_NAME, n=3)
    return f" (did you mean {', '.join(close)}?)" if close else ""
