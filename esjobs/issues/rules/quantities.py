"""Limits as people write them: ``"40 1/s"``, ``"1 h"``, ``"1 MB/s"``, ``"20 %"``, or a bare number.

Values are in base units: seconds, bytes, fractions, operations. Prefixes go in steps of 1000, with an ``i``
of 1024. Hours of cores, GPUs and nodes stay hours, and bytes an hour bytes an hour: so they are told, too.
"""

import re

from esjobs.issues.rules.expressions import finite_number
from esjobs.issues.rules.measures import Dimension, dimension_of

_QUANTITY = re.compile(r"\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]{1,3})?)(?:\s+(\S+)|([^\s0-9.]\S*))?\s*")
_STEPS = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PLAIN = {
    **_TIMES,
    "": 1.0,
    "%": 0.01,
    "1/s": 1.0,
    "ops/s": 1.0,
    "cores": 1.0,
    "nodes": 1.0,
    "GPUs": 1.0,
    "samples": 1.0,
    "phases": 1.0,
    "core-h": 1.0,
    "GPU-h": 1.0,
    "node-h": 1.0,
}
_PREFIXED = ("B", "B/s", "B/h", "Hz", "W", "J", "FLOP/s")


def units() -> dict[str, float]:
    """Every unit, with what one of it is in base units."""
    known = dict(_PLAIN)
    for unit in _PREFIXED:
        for prefix, step in _STEPS.items():
            known[prefix + unit] = 1000.0**step
            if unit.startswith("B") and prefix:
                known[f"{prefix.upper()}i{unit}"] = 1024.0**step
    return known


_UNITS = units()


def quantity(value: object) -> float:
    """A limit in base units; ValueError says what is wrong.

    >>> quantity("1 h"), quantity("2 MB/s"), quantity("64 GiB"), quantity("20 %"), quantity(0.8)
    (3600.0, 2000000.0, 68719476736.0, 0.2, 0.8)
    """
    return quantity_and_unit(value)[0]


def quantity_and_unit(value: object) -> tuple[float, Dimension | None]:
    """A limit in base units and what it counts, None for a bare number; ValueError says what is wrong.

    >>> quantity_and_unit("10 GB/h"), quantity_and_unit(10)
    ((10000000000.0, (1, 0, 0, -1)), (10.0, None))
    """
    if finite_number(value):
        return float(value), None  # type: ignore[arg-type]
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError("a limit is beyond 1e30")
    if not isinstance(value, str):
        raise ValueError(f'{value!r:.40} is no limit; write a number, or one with a unit such as "1 h"')
    parts = _QUANTITY.fullmatch(value) if len(value) <= 60 else None
    if parts is None:
        raise ValueError(f"'{value:.40}' is no number with a unit")
    try:
        number = float(parts[1])
    except ValueError:
        raise ValueError(f"'{value:.40}' is no number with a unit") from None
    unit = parts[2] or parts[3] or ""
    if unit not in _UNITS:
        raise ValueError(f"'{value:.40}': there is no unit '{unit:.20}'; there are {_listed()}")
    if not finite_number(number * _UNITS[unit]):
        raise ValueError(f"'{value:.40}' is beyond 1e30")
    base = next((each for each in _PREFIXED if unit not in _PLAIN and unit.endswith(each)), unit)
    return number * _UNITS[unit], dimension_of(base) if unit else None


def _listed() -> str:
    return ", ".join([*filter(None, _PLAIN), *_PREFIXED]) + "; k, M, G, T, P or Ki, Mi, ... before B"
