"""Definition of a detector: metrics, unit and range of its numbers, and the function that measures."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from esjobs.issues.detectors.batch import Batch
from esjobs.issues.detectors.measured import Measured


@dataclass(frozen=True)
class Range:
    """Unit and range of a number; ``unit`` None: unknown, or that of another series of the job."""

    unit: str | None = "1"
    low: float = 0.0
    high: float = math.inf


COUNT = Range()
SHARE = Range("1", 0.0, 1.0)
DURATION = Range("s")


@dataclass(frozen=True)
class Detector:
    """Detector of inefficient jobs, as rules name it; severity and hint are in its rules (``default.toml``).

    ``unit``, ``low`` and ``high``: unit and range of its value; ``numbers``: further numbers by name.
    ``metrics``: all required, the first shows the evidence; of ``any_metrics`` one is required, and the
    number ``pair`` is the index of the present one that shows it. ``variants``: the default first.
    ``per_core``: needs a load per core. ``package``: name and version of the package of a foreign detector.
    """

    name: str
    meaning: str
    unit: str
    metrics: tuple[str, ...]
    numbers: Mapping[str, Range]
    any_metrics: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("pika",)
    measure: Callable[[Batch, str], Measured] | None = None
    low: float = -math.inf
    high: float = math.inf
    per_core: bool = False
    package: str = ""

    def range_of(self, number: str) -> Range:
        """Return unit and range of a number: ``value``, ``share``, ``n_samples`` or its own."""
        common = {"value": Range(self.unit, self.low, self.high), "share": SHARE, "n_samples": COUNT}
        return common.get(number) or self.numbers[number]
