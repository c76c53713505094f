"""The field catalogue: every field of a job, its type, unit and meaning. The one place for these facts.

Stores derive their layout from it, sources map into it, queries name fields from it, the documentation
lists it. Base units only: seconds (``_s``), bytes (``_b``), fractions 0–1. Missing is null, never 0.

``jobs`` lists what a record may carry, ``derived`` what follows from it, ``types`` says what a field is. Each
engine has one table of the types: ``core/arrow.py``, ``store/duck/schema.py``, ``store/elastic/layout.py``.
"""

from esjobs.core.errors import UsageError
from esjobs.core.fields.derived import DERIVED_FIELDS
from esjobs.core.fields.jobs import FIRST_FIELDS, JOB_FIELDS, LATER_FIELDS
from esjobs.core.fields.types import CoreClassOf, DayOf, Derivation, Field, FieldType, Quotient, Resolved

__all__ = [
    "DERIVED_FIELDS",
    "FIRST_FIELDS",
    "JOB_FIELDS",
    "LATER_FIELDS",
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
    """Look a field up by name, or raise :class:`UsageError` that lists the nearest names.

    >>> field("cpu_s").unit
    's'
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise UsageError(f"no field '{name}' in the catalogue{_nearest(name)}; see: esjobs fields") from None


def is_field(name: str) -> bool:
    """True if the catalogue has a field of this name."""
    return name in _BY_NAME


def _nearest(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, _BY_NAME, n=3)
    return f" (did you mean {', '.join(close)}?)" if close else ""
