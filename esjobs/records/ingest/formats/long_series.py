"""Samples of any monitoring system in long form: a row a sample, CSV (plain or gzip) or Parquet.

Answers of Prometheus and lines of InfluxDB are such samples, too; their labels and tags are the columns. With
``wide`` in the map a file has a column for each metric, as of pmrep (PCP) and LDMS.

Columns: job_id, metric, time, value, and where there are scope (job, node, core, ...), unit (``node07``,
``node07/3``) and source. Times are seconds since 1970 or ISO 8601, UTC without an offset. Names and units of
a monitoring system become ours by a map (``--map``, see ``series_map``). Rows may come in any order; the rows
of a job belong into one file. A job ended with its last sample unless ``--set end_time=TIME`` says more.
Timelines of LIKWID count from ``--set start_time=TIME`` on ``--set unit=NODE``.

Counters become rates between two samples: the first sample has none, and a counter that falls leaves a gap.
"""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.core.errors import InputError, WindowError
from esjobs.core.fields import Field
from esjobs.core.metrics import SCOPES, largest_of
from esjobs.core.window import parse_time
from esjobs.records.ingest.base import MAX_NUMBER, Parsed, load_facts
from esjobs.records.ingest.formats import job_files, likwid, line_protocol, prometheus
from esjobs.records.ingest.formats.job_files import Books
from esjobs.records.ingest.formats.series_map import REQUIRED, MappedMetric, SeriesMap, read_map
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.series.rows import Series, rates, regular
from esjobs.schema.series import SERIES

MOST_ROWS = 20_000_000
"""Rows of a file: 40 bytes each in memory, a few times over while they are sorted."""

_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
# Arrow's casts refuse a column for one cell that is no number: others are made null before.
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_MOMENT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[-+][0-9]{2}:?[0-9]{2})$"
)
_ZONED = r"(Z|[-+][0-9]{2}:?[0-9]{2})$"
_PARQUET = b"PAR1"
_OF_FILE = frozenset({"source", "start_time", "end_time", "job_id"})
_LAST_S = 4_102_444_800.0  # 2100-01-01
# Share of the samples of a series that a faulty sensor may spoil; more are in another unit
_FEW_FAULTS = 0.01


class LongSeries:
    """The format ``series``."""

    name = "series"
    default_source = "series"
    settable: ClassVar[tuple[Field, ...]] = (
        *(field for field in job_files.OF_ONE_JOB if field.name in _OF_FILE),
        Field("unit", "keyword", "", "node that the samples are of, where the file does not name it"),
    )

    def __init__(self, series_map: SeriesMap | None = None, wanted: Sequence[str] | None = None) -> None:
        self.map = series_map or SeriesMap()
        self._wanted = wanted

    def mapped(self, path: Path) -> "LongSeries":
        """Return this format with the map in a file. Raises :class:`InputError` for a wrong map."""
        return LongSeries(read_map(path))

    def only(self, metrics: Sequence[str]) -> "LongSeries":
        """Return this format reading some metrics alone; a file without them has no rows."""
        return LongSeries(self.map, metrics)

    def load_facts(
        self, contents: Sequence[tuple[str, str]], fill: Mapping[str, object]
    ) -> dict[str, object]:
        """Return what names a load: the files, the values set, and the map."""
        # another map makes other series of the same bytes: another load
        by_map = blake2b(msgspec.json.encode(self.map), digest_size=16).hexdigest()
        return load_facts(self.name, contents, fill, map=by_map)

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield the series of one job after another."""
        try:
            rows, ignored = _rows(file, self.map, fill)
            long, series_map = (rows, self.map) if self.map.wide is None else _long(rows, self.map)
            if self._wanted is not None:
                long = _only(long, series_map, self._wanted)
                if not long.num_rows:
                    return
            yield from _jobs(long, ignored, series_map, file, fill, self.default_source)
        except (InputError, pa.ArrowInvalid, ValueError) as error:
            yield job_files.damaged(file, error, SERIES)


def _rows(
    file: Input, series_map: SeriesMap, fill: Mapping[str, object]
) -> tuple[pa.Table, Mapping[str, int]]:
    table, ignored, fill = _samples_in(file, series_map, fill)
    if table.num_rows > MOST_ROWS:
        raise InputError(f"{file.name} has more than {MOST_ROWS:,} rows; split it by job")
    for column in ("job_id", "unit"):
        name = series_map.names(column)[0]
        if column in fill and name not in table.column_names:
            table = table.append_column(name, pa.repeat(str(fill[column]), table.num_rows))
    _require_columns(table, series_map, file)
    return table, ignored


def _samples_in(
    file: Input, series_map: SeriesMap, fill: Mapping[str, object]
) -> tuple[pa.Table, Mapping[str, int], Mapping[str, object]]:
    """Return the rows of a file in the format that its first bytes tell, ignored lines, and the fill."""
    data = job_files.content(file)
    ignored: Mapping[str, int] = {}
    time, value = series_map.names("time")[0], series_map.names("value")[0]
    if data[:4] == _PARQUET:
        table = _parquet(data, file)
    # by first bytes, never by names: exports are renamed and piped
    elif data.lstrip()[:1] == b"{":
        table = prometheus.samples(data, file, time, value)
    elif line_protocol.is_line_protocol(data):
        per_second = _PER_SECOND[series_map.time_unit or "ns"]
        text = job_files.text_of(data, file)
        table, unreadable = line_protocol.samples(text, file.name, time, value, per_second)
        ignored = {"lines that are not of the line protocol, ignored": unreadable}
    elif likwid.MARK.encode() in data[:65536]:
        # its output names no job
        fill = {"job_id": job_files.job_id_of(file, fill), **fill}
        table, ignored = likwid.samples(job_files.text_of(data, file), file.name, fill, series_map)
    else:
        table, ignored = job_files.text_columns(data, file)
    return table, ignored, fill


def _require_columns(table: pa.Table, series_map: SeriesMap, file: Input) -> None:
    required = REQUIRED if series_map.wide is None else ("job_id", "time")
    lacking = [name for each in required for name in series_map.names(each) if name not in table.column_names]
    if lacking:
        raise InputError(
            f"{file.name}: {', '.join(lacking)} missing in the header; expected {', '.join(required)}, or a "
            "map of its columns (--map)"
        )


def _long(rows: pa.Table, series_map: SeriesMap) -> tuple[pa.Table, SeriesMap]:
    """Return the metrics of the map, each from its columns, as samples in long form; others are left out."""
    wide = series_map.wide or ""
    of_row = {name: _texts(rows, series_map.names(name)) for name in ("source", "job_id", "scope", "unit")}
    times = rows.column(series_map.names("time")[0])
    pieces = []
    for name in rows.column_names:
        metric, _, unit = name.partition(wide) if wide else (name, "", "")
        if metric not in series_map.metrics:
            continue
        units = pc.utf8_trim(pc.binary_join_element_wise(of_row["unit"], unit, "/"), "/") if unit else None
        columns = {**of_row, **({} if units is None else {"unit": units})}
        value = rows.column(name).cast(pa.string())
        columns |= {"time": times, "value": value, "metric": pa.repeat(metric, rows.num_rows)}
        pieces.append(pa.table(columns))
    if not pieces:
        raise InputError(f"no column is one of the metrics of the map: {', '.join(series_map.metrics)}")
    return pa.concat_tables(pieces), SeriesMap(
        series_map.source, series_map.time_unit, None, {}, series_map.metrics
    )


def _only(rows: pa.Table, series_map: SeriesMap, wanted: Sequence[str]) -> pa.Table:
    column = rows.column(series_map.names("metric")[0]).cast(pa.string())
    mapped = {name: series_map.mapped(name or "") for name in column.unique().to_pylist()}
    names = [name for name, one in mapped.items() if one is not None and one.name in wanted]
    return rows.filter(pc.is_in(column, pa.array(names, pa.string())))


def _parquet(data: bytes, file: Input) -> pa.Table:
    try:
        return pyarrow.parquet.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{file.name}: invalid Parquet ({reason}); write the file again") from error


def _jobs(
    rows: pa.Table,
    ignored: Mapping[str, int],
    series_map: SeriesMap,
    file: Input,
    fill: Mapping[str, object],
    default_source: str,
) -> Iterator[Parsed]:
    books = Books(file.name, repaired=dict(+Counter(ignored)))
    samples = _samples(rows, series_map, books)
    if not len(samples.times) and not books.rejects:
        raise InputError(f"{file.name} has no sample with a job, a metric and a time")
    listed: list[Series] = []
    for start, end in samples.spans():
        listed.extend(samples.series(start, end, books))
        # rows come sorted by job: its last series completes it
        if end == len(samples.times) or samples.of_another_job(start, end):
            source, job_id = samples.job(start)
            source = source or str(fill.get("source") or series_map.source or default_source)
            yield job_files.series_piece(source, job_id, listed, books, fill.get("end_time"))
            # repairs are added up over the load: each piece counts its own
            books, listed = Books(file.name), []
    if books.rejects or books.repaired:
        yield job_files.series_piece(default_source, "", (), books)


@dataclass(frozen=True)
class _Samples:
    """The samples of a file in the order of series and time.

    ``keys``: rows are codes of source, job, metric, scope, unit; ``names`` what they stand for.
    """

    keys: Ints
    times: Floats
    values: Floats
    names: tuple[list[str], ...]
    metrics: list[MappedMetric]

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield where each series starts and ends."""
        if len(self.times):
            changes = np.flatnonzero((np.diff(self.keys) != 0).any(axis=0)) + 1
            yield from pairwise([0, *changes.tolist(), len(self.times)])

    def job(self, at: int) -> tuple[str, str]:
        """Return source and id of the job of a sample."""
        source, job = self.keys[:2, at].tolist()
        return self.names[0][source], self.names[1][job]

    def of_another_job(self, one: int, other: int) -> bool:
        """True if two samples are of different jobs."""
        return bool((self.keys[:2, one] != self.keys[:2, other]).any())

    def series(self, start: int, end: int, books: Books) -> Iterator[Series]:
        """Yield the series of a span; one without a value is refused."""
        _, job, metric, scope, unit = self.keys[:, start].tolist()
        target, where = self.metrics[metric], self.names[4][unit]
        level = target.scope or self.names[3][scope] or ("node" if where else "job")
        times, values = self.times[start:end], self.values[start:end] * target.factor
        if target.kind == "counter":
            values, fallen = rates(times, [values])
            books.repair(f"decreases of the counters of {target.name}, stored as gaps", fallen)
        elif target.kind == "delta":
            # what a delta covers is known from its predecessor: the first has none
            values = np.concatenate(([np.nan], values[1:] / np.diff(times)))
        # infinite but for shares
        above = values > largest_of(target.name)
        if above.sum() > _FEW_FAULTS * len(values):
            detail = (
                f"{self.names[2][metric]} of job {self.names[1][job]} reaches {np.nanmax(values):g}; a "
                "share is at most 1: name its unit in a map (--map)"
            )
            books.refuse("no share", target.name, detail, where)
            return
        values[above] = np.nan
        books.repair(f"values of {target.name} above 1, stored as gaps", int(above.sum()))
        if not np.isfinite(values).any():
            detail = (
                f"{self.names[2][metric]} of job {self.names[1][job]} has no value in {end - start:,} samples"
            )
            books.refuse("no samples", target.name, detail, where)
            return
        laid = regular(times, [values])
        yield Series(target.name, level, where, laid.start, laid.step_s, laid.columns[0], laid.remark)


def _samples(rows: pa.Table, series_map: SeriesMap, books: Books) -> _Samples:
    texts = [_texts(rows, series_map.names(name)) for name in ("source", "job_id", "metric", "scope", "unit")]
    codes, names = zip(*map(_coded, texts), strict=True)
    mapped = [series_map.mapped(name) for name in names[2]]
    metrics = [one or MappedMetric(name) for one, name in zip(mapped, names[2], strict=True)]
    times = _seconds(rows.column(series_map.names("time")[0]), _PER_SECOND[series_map.time_unit or "s"])
    values = _floats(rows.column(series_map.names("value")[0]))
    usable = np.ones(len(times), bool)
    _refuse(usable, codes[1], names[1], [not name for name in names[1]], job_files.NO_JOB, "job_id", books)
    unknown = [one is None for one in mapped]
    _refuse(usable, codes[2], names[2], unknown, "unknown metric", "metric", books)
    wrong = [bool(name) and name not in SCOPES for name in names[3]]
    _refuse(usable, codes[3], names[3], wrong, "unknown scope", "scope", books)
    timed = (times > 0) & (times < _LAST_S)
    books.repair("samples without a time from 1970 to 2100, ignored", int((usable & ~timed).sum()))
    usable &= timed
    bad = usable & ~(np.abs(values) < MAX_NUMBER)
    books.repair("values that are not numbers, stored as gaps", int(bad.sum()))
    values[bad] = np.nan
    # lexsort takes its last key first: source, job, metric, scope, unit, then time
    keys = np.stack(codes)
    order = np.lexsort((times, *keys[::-1]))
    order = order[usable[order]]
    # the last one of a time stays, as monitors write again after a restart
    same = (np.diff(keys[:, order]) == 0).all(axis=0) & (np.diff(times[order]) == 0)
    books.repair("samples of a time that another one has, left out", int(same.sum()))
    order = order[np.r_[~same, True][: len(order)]]
    return _Samples(keys[:, order], times[order], values[order], names, metrics)


def _refuse(
    usable: Mask,
    codes: Ints,
    names: Sequence[str],
    wrong: Sequence[bool],
    reason: str,
    column: str,
    books: Books,
) -> None:
    """Refuse the samples with a wrong name in a column, once per name, and mark them unusable."""
    counts = np.bincount(codes, minlength=len(names))
    for code in np.flatnonzero(wrong).tolist():
        detail = f"{counts[code]:,} samples with {column} '{names[code][:80]}'; name it in a map (--map)"
        if not names[code]:
            detail = f"{counts[code]:,} samples with empty {column}"
        books.refuse(reason, column, detail, names[code])
    usable &= ~np.asarray(wrong, bool)[codes]


def _texts(rows: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """Texts of columns joined by /, without those that are empty; a column that is absent is empty."""
    found = [rows.column(name) for name in columns if name in rows.column_names]
    texts = [pc.utf8_trim_whitespace(pc.fill_null(column.cast(pa.string()), "")) for column in found]
    if not texts:
        return pa.chunked_array([pa.repeat("", rows.num_rows)])
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "/")
    return pc.utf8_trim(joined, "/") if len(texts) > 1 else joined


def _coded(texts: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    coded = texts.combine_chunks().dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()


def _seconds(column: pa.ChunkedArray, per_second: float) -> Floats:
    """Times in s since 1970; NaN for what is none."""
    if pa.types.is_timestamp(column.type):
        # nanoseconds are cut off, not refused
        micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        return _floats(micros) / 1e6
    seconds = _floats(column) / per_second
    return _moments(column) if pa.types.is_string(column.type) and np.isnan(seconds).all() else seconds


def _moments(texts: pa.ChunkedArray) -> Floats:
    texts = pc.utf8_trim_whitespace(texts)
    zoned = pc.match_substring_regex(texts, _ZONED)
    moments = pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", ""))
    moments = pc.if_else(pc.match_substring_regex(moments, _MOMENT), moments, None)
    try:
        return _floats(moments.cast(pa.timestamp("ns", "UTC")).cast(pa.int64())) / 1e9
    except pa.ArrowInvalid:  # a month of 13: Arrow says no to the column
        seconds = {text: _moment(text) for text in texts.unique().to_pylist()}
        return np.array([seconds[text] for text in texts.to_pylist()])


def _moment(text: str | None) -> float:
    try:
        return parse_time(text or "").timestamp()
    except WindowError:
        return np.nan


def _floats(column: pa.ChunkedArray) -> Floats:
    """Numbers of a column; NaN for what is none."""
    if pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.match_substring_regex(column, _NUMBER), column, None)
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        column = pa.chunked_array([pa.nulls(len(column), pa.float64())])
    numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.array(numbers, np.float64)
