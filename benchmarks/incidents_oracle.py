"""Best that the sums of a site can tell: an oracle that knows the expectation, metric, error and first day.

What is left is how days of a site scatter. Its threshold for so many days is set so that 0.1 per 100 windows
of nights without an incident pass it, of efficiency and of failures each, over all grids of the run.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.incidents_grid import CATEGORIES, FIRST, FIRST_INCIDENT, Floats, Made, Plant

FALSE = 0.001  # Windows of quiet nights that pass a threshold
LONGEST = 12  # Days of a window


@dataclass
class Tries:
    """Windows of quiet nights by metric and length, and by row of the page the windows of each incident."""

    quiet: dict[tuple[str, int], list[Floats]] = field(default_factory=lambda: defaultdict(list))
    planted: dict[str, list[list[tuple[str, int, float]]]] = field(default_factory=lambda: defaultdict(list))

    def __add__(self, other: "Tries") -> "Tries":
        for key, windows in other.quiet.items():
            self.quiet[key] += windows
        for name, incidents in other.planted.items():
            self.planted[name] += incidents
        return self

    def told(self) -> Mapping[str, tuple[int, int]]:
        """Return by row of the page how many incidents the oracle tells, and how many there are."""
        limit = {key: float(np.quantile(np.concatenate(each), 1 - FALSE)) for key, each in self.quiet.items()}
        hits = {
            name: [any(value > limit[metric, days] for metric, days, value in one) for one in incidents]
            for name, incidents in self.planted.items()
        }
        return {name: (sum(each), len(each)) for name, each in hits.items()}


class Oracle:
    """Deviations of the days of each site from the truth, over their own scatter."""

    def __init__(self, made: Made, affected: Mapping[str, set[int]], tries: Tries) -> None:
        """``affected``: nights of incidents by site. Quiet windows are added to ``tries``."""
        self.made, self.tries = made, tries
        sums, day = made.sums, made.sums.day - FIRST.toordinal()
        seen = np.zeros_like(made.due)
        np.add.at(seen[0], (sums.codes["site"], day), sums.cpu_s)
        np.add.at(seen, (sums.codes["outcome"], sums.codes["site"], day), sums.n_jobs * ~sums.finished)
        due, cpu = made.due[1:].sum(axis=0), made.due[0]
        usable = cpu > 0
        columns = [-np.log(np.maximum(seen[0], 1e-9) / np.where(usable, cpu, 1.0))]
        for observed, expected in ((seen[1:].sum(axis=0), due), *zip(seen[1:], made.due[1:], strict=True)):
            columns.append(np.sqrt(observed + 3 / 8) - np.sqrt(expected + 3 / 8))
        self.clean = usable.copy()
        for site, nights in affected.items():
            if site in sums.names["site"]:
                self.clean[sums.names["site"].index(site), [n for n in nights if n < seen.shape[2]]] = False
        quiet = np.where(self.clean, np.stack(columns), np.nan)
        mean, sd = (f(quiet, axis=2, keepdims=True) for f in (np.nanmean, np.nanstd))
        self.z = np.where(usable, (np.stack(columns) - mean) / np.maximum(sd, 1e-9), 0.0)
        for days in range(1, LONGEST + 1):
            windows = np.lib.stride_tricks.sliding_window_view(self.z, days, axis=2).sum(axis=-1)
            quiet_days = np.lib.stride_tricks.sliding_window_view(self.clean, days, axis=1)
            whole = np.asarray(quiet_days.all(axis=-1))
            whole[:, : FIRST_INCIDENT - days] = False
            for metric, values in (("efficiency", windows[:1]), ("failed", windows[1:])):
                tries.quiet[metric, days].append((values / np.sqrt(days))[:, whole].ravel())

    def until(self, plant: Plant, site: int, night: int) -> list[tuple[str, int, float]]:
        """Return the windows from the first day of an incident until each night up to one."""
        number = 0
        if plant.metric == "failed":
            number = 1 if plant.category is None else 2 + CATEGORIES.index(plant.category)
        first = int(plant.start)
        found = []
        for last in range(first, night + 1):
            days = min(last - first + 1, LONGEST)
            total = float(self.z[number, site, last - days + 1 : last + 1].sum())
            found.append((plant.metric, days, total / days**0.5))
        return found
