"""Limits as written: ``"40 1/s"``, ``"1 h"``, ``"1 MB/s"``, ``"20 %"``, or a bare number.

Values are in base units: seconds, bytes, fractions, operations. Prefixes are powers of 1000, with ``i`` of
1024. Hours of cores, GPUs and nodes, and bytes per hour are kept.
"""

import re

from esjobs.issues.rules.expressions import finite_number
from esjobs.issues.rules.measures import Dimension, dimension_of

_QUANTITY = re.compile(r"\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]{1,3})?)(?:\s+(\S+)|([^\s0-9.]\S*))?\s*")
_STEPS = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_COUNTS = ("cores", "nodes", "GPUs", "samples", "phases", "core-h", "GPU-h", "node-h")
_PLAIN = {**_TIMES, "": 1.0, "%": 0.01, "1/s": 1.0, "ops/s": 1.0, **dict.fromkeys(_COUNTS, 1.0)}
_PREFIXED = ("B", "B/s", "B/h", "Hz", "W", "J", "FLOP/s")


def _units() -> dict[str, float]:
    """Return the factor to base units by unit."""
    factors = dict(_PLAIN)
    for unit in _PREFIXED:
        for prefix, step in _STEPS.items():
            factors[prefix + unit] = 1000.0**step
            if unit.startswith("B") and prefix:
                # Ki, not ki
                factors[f"{prefix.upper()}i{unit}"] = 1024.0**step
    return factors


_UNITS = _units()


def quantity(value: object) -> float:
    """Return a limit in base units; raises ValueError.

    >>> quantity("1 h"), quantity("2 MB/s"), quantity("64 GiB"), quantity("20 %"), quantity(0.8)
    (3600.0, 2000000.0, 68719476736.0, 0.2, 0.8)
    """
    return quantity_and_unit(value)[0]


def quantity_and_unit(value: object) -> tuple[float, Dimension | None]:
    """Return a limit in base units and its dimension (None: bare number); raises ValueError.

    >>> quantity_and_unit("10 GB/h"), quantity_and_unit(10)
    ((10000000000.0, (1, 0, 0, -1)), (10.0, None))
    """
    if finite_number(value):
        return float(value), None  # type: ignore[arg-type]
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError("a limit exceeds 1e30")
    if not isinstance(value, str):
        raise ValueError(f'{value!r:.40} is not a limit; write a number, or a text with a unit such as "1 h"')
    number, unit = _parsed(value)
    if unit not in _UNITS:
        raise ValueError(f"'{value:.40}': unknown unit '{unit:.20}'; use one of: {_listed()}")
    if not finite_number(number * _UNITS[unit]):
        raise ValueError(f"'{value:.40}' exceeds 1e30")
    # without the prefix: kB and B are of one dimension
    return number * _UNITS[unit], dimension_of(_without_prefix(unit)) if unit else None


def _without_prefix(unit: str) -> str:
    return next((each for each in _PREFIXED if unit not in _PLAIN and unit.endswith(each)), unit)


def _parsed(value: str) -> tuple[float, str]:
    parts = _QUANTITY.fullmatch(value) if len(value) <= 60 else None
    try:
        if parts is not None:
            return float(parts[1]), parts[2] or parts[3] or ""
    except ValueError:
        pass  # the pattern allows several points
    raise ValueError(f"'{value:.40}' is not a number with a unit")


def _listed() -> str:
    return ", ".join([*filter(None, _PLAIN), *_PREFIXED]) + "; k, M, G, T, P or Ki, Mi, ... before B"
