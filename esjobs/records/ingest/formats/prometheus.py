"""Answers of Prometheus and VictoriaMetrics as samples: a row a sample, a column a label.

Read are ``/api/v1/query`` and ``query_range`` (an object with ``status`` and ``data``) and VictoriaMetrics'
``/api/v1/export`` (a line a series, times in ms). The name of the metric is the column ``__name__``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.errors import InputError
from esjobs.records.ingest.reading.inputs import Input

NAME = "__name__"
"""Label that names the metric."""


def samples(data: bytes, file: Input, time: str, value: str) -> pa.Table:
    """Return the samples of an answer; ``time`` and ``value`` name their columns.

    Raises :class:`InputError` for what is no such answer, and for one that tells an error.
    """
    labels: list[Mapping[str, str]] = []
    counts: list[int] = []
    times: list[float] = []
    values: list[float] = []
    try:
        for one, its_times, its_values in _series(data, file):
            labels.append(one)
            counts.append(len(its_times))
            times.extend(its_times)
            values.extend(map(_number, its_values))
        micros = np.asarray(times, np.float64) * 1e6
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{file.name} is not an answer of Prometheus (query, query_range or export); copy it again"
        ) from error
    row = pa.array(np.repeat(np.arange(len(labels)), counts))
    names = sorted({name for one in labels for name in one})
    columns = {name: pa.array([one.get(name) for one in labels], pa.string()).take(row) for name in names}
    columns[time] = stamps(micros)
    columns[value] = pa.array(values, pa.float64())
    return pa.table(columns)


def stamps(micros: npt.NDArray[np.float64]) -> pa.Array:
    """Return times in us; what is missing or beyond 2096 becomes 1970, which is ignored and counted later."""
    return pa.array(np.where(np.abs(micros) < 4e15, micros, 0).astype(np.int64), pa.timestamp("us"))


def _series(data: bytes, file: Input) -> Iterator[tuple[Mapping[str, str], list[float], list[Any]]]:
    # an export has a series a line, an answer is one document that may span lines
    for line in data.splitlines() if b'"timestamps"' in data else [data]:
        if not line.strip():
            continue
        answer = msgspec.json.decode(line)
        if answer.get("status") == "error":
            raise InputError(f"{file.name}: Prometheus answered {str(answer.get('error'))[:200]}; ask again")
        if "timestamps" in answer:
            yield answer["metric"], [moment / 1e3 for moment in answer["timestamps"]], answer["values"]
            continue
        for one in answer["data"]["result"]:
            pairs = one["values"] if "values" in one else [one["value"]]
            yield one["metric"], [float(moment) for moment, _ in pairs], [number for _, number in pairs]


def _number(value: float | str | None) -> float:
    # numbers travel as texts: "NaN", "+Inf"
    return np.nan if value is None else float(value)
