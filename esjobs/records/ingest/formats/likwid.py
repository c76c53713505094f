"""Timelines of LIKWID as samples: ``likwid-perfctr -t 1s -g GROUP -o FILE.csv``, or its header and lines.

``# HWThreads`` names the threads, ``# GID`` the metrics of a group. Then lines of group, numbers of metrics
and threads, seconds since the start, values of the first metric on each thread, of the second one, ...
Groups take turns, a line each. What sockets count is read on one thread of each; others have 0 or ``-``.
Source: ``likwid-perfctr`` and the groups of LIKWID 5.2.
"""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from math import isnan, nan

import numpy as np
import pyarrow as pa

from esjobs.core.errors import InputError
from esjobs.records.ingest.formats.series_map import SeriesMap

MARK = "# HWThreads"
"""Begins the first line of a timeline."""

_HEAD = 4


def samples(
    text: str, name: str, fill: Mapping[str, object], series_map: SeriesMap
) -> tuple[pa.Table, Mapping[str, int]]:
    """Return samples of the map's metrics, and how many lines were ignored.

    Metrics with scope ``node`` are added up over threads. Raises :class:`InputError` without any metric, and
    if ``fill`` lacks the node (``unit``) or ``start_time``, from which times count.
    """
    start, node = fill.get("start_time"), fill.get("unit")
    if not isinstance(start, datetime) or node is None:
        raise InputError(f"{name} lacks node and start; add --set unit=NODE --set start_time=TIME")
    threads: list[str] = []
    groups: dict[str, list[str]] = {}
    rows, n_other = array("d"), 0
    for line in text.split("\n"):
        if line.startswith(MARK):
            # a new header: runs may be appended to one file
            threads, groups = re.findall(r"\d+", line), {}
        elif line.startswith("# GID"):
            # the file has bars as separators, what -o writes has commas
            groups[str(len(groups) + 1)] = line.strip().split("|" if "|" in line else ",")[_HEAD:]
        elif cells := line.replace(",", " ").split():
            before = len(rows)
            rows.extend(_samples(cells, groups.get(cells[0], ()), len(threads), series_map))
            n_other += len(rows) == before
    if not rows:
        raise InputError(
            f"{name} has no metric of the map; use --map likwid, and -o FILE.csv in place of .txt"
        )
    metric, moment, unit, value = np.asarray(rows).reshape(-1, 4).T
    units = [*(f"{node}/{thread}" for thread in threads), str(node)]
    columns = {
        "metric": pa.DictionaryArray.from_arrays(metric.astype(np.int32), list(series_map.metrics)),
        "unit": pa.DictionaryArray.from_arrays(unit.astype(np.int32), units),
        "time": pa.array(moment + start.timestamp()),
        "value": pa.array(value),
    }
    return pa.table(columns), {"lines without a metric of the map, ignored": n_other}


def _samples(
    cells: Sequence[str], metrics: Sequence[str], n_threads: int, series_map: SeriesMap
) -> Iterator[float]:
    """Yield number of the metric, time, number of the thread (behind the last: the node) and value."""
    if len(cells) != _HEAD + len(metrics) * n_threads:
        return
    # times count from the start of the run
    moment, *values = map(_number, cells[_HEAD - 1 :])
    for number, (name, target) in enumerate(series_map.metrics.items()):
        if name in metrics:
            begin = metrics.index(name) * n_threads
            of_threads = values[begin : begin + n_threads]
            numbered = (
                enumerate([_sum(of_threads)], n_threads) if target.scope == "node" else enumerate(of_threads)
            )
            for thread, value in numbered:
                yield from (number, moment, thread, value)


def _sum(values: Sequence[float]) -> float:
    measured = [value for value in values if not isnan(value)]
    return sum(measured) if measured else nan


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return nan
