"""InfluxDB line protocol as samples: a row a field, a column a tag.

``measurement,tag=v,tag=v field=v,field=v time``. The metric is the measurement, followed by ``_field`` unless
the field is called ``value``. Times are ns since 1970 unless another unit is given; a line without a time has
none. Texts and truths are no samples.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from esjobs.core.errors import InputError
from esjobs.records.ingest.formats.prometheus import NAME, stamps

_HEAD = r"(?:[^\s\\,=]|\\.)+"
_TAG = rf"{_HEAD}=(?:[^\s\\,]|\\.)+"
_FIELD = r'(?:[^\s\\,=]|\\.)+=(?:"(?:[^"\\]|\\.)*"|[^\s",]+)'
_LINE = re.compile(rf"({_HEAD})((?:,{_TAG})*) +({_FIELD}(?:,{_FIELD})*)(?: +(-?\d+))?\s*", re.ASCII)
_PAIR = re.compile(r'((?:[^\\,=]|\\.)+)=("(?:[^"\\]|\\.)*"|(?:[^\\,]|\\.)*)(?:,|$)')
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[iu]?", re.ASCII)


def is_line_protocol(head: bytes) -> bool:
    """True if the first line that is not a comment is one of the protocol."""
    lines = (line for line in head[:65536].decode("utf-8", "replace").split("\n") if line.strip())
    first = next((line for line in lines if not line.startswith("#")), "")
    return _LINE.fullmatch(first) is not None


def samples(text: str, name: str, time: str, value: str, per_second: float = 1e9) -> tuple[pa.Table, int]:
    """Return the samples and the number of unreadable lines; ``time`` and ``value`` name their columns.

    Raises :class:`InputError` for a tag with the name of another column.
    """
    columns: dict[str, dict[int, str]] = defaultdict(dict)
    times, values, n_unreadable = array("d"), array("d"), 0
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            n_unreadable += bool(line.strip()) and not line.startswith("#")
            continue
        measurement, tags, fields, moment = match.groups()
        tagged = dict(_pairs(tags.removeprefix(",")))
        for field, number in _pairs(fields):
            if (found := _NUMBER.fullmatch(number)) is None:
                continue
            metric = _plain(measurement) if field == "value" else f"{_plain(measurement)}_{field}"
            for tag, one in (*tagged.items(), (NAME, metric)):
                columns[tag][len(times)] = one
            times.append(int(moment) / per_second if moment else np.nan)
            values.append(float(found[1]))
    if {time, value} & columns.keys():
        raise InputError(f"{name} has a tag '{time}' or '{value}'; name other columns in a map (--map)")
    texts = {tag: pa.array([found.get(row) for row in range(len(times))]) for tag, found in columns.items()}
    return pa.table(
        {**texts, time: stamps(np.asarray(times) * 1e6), value: pa.array(np.asarray(values))}
    ), n_unreadable


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for match in _PAIR.finditer(text):
        yield _plain(match[1]), _plain(match[2])


def _plain(text: str) -> str:
    return re.sub(r"\\([,= ])", r"\1", text) if "\\" in text else text
