"""PanDA job records: the names of the ATLAS jobs index and of exports made from it.

Columns are matched without regard to case; JSON lines may be Elasticsearch hits (``{"_source": {...}}``).
Facts about the records, checked on real ones:

- Memory is in kB of 1024 B. ``IObytesRead`` and ``IObytesWritten`` were in kB, too, while the rates beside
  them are in B/s: total x 1024 / rate is a whole number of seconds, 0.90 to 0.99 of the payload's time.
  Since the pilot takes its totals from prmon they are bytes. The rate tells which: see ``_io_bytes``.
- The pilot writes -1 for memory that was not measured; that is a missing value, not a negative one.
- ``minramcount`` is in MB of the whole job; 0: nothing requested.
- ``hs06sec`` contains the declared corepower. Wall time is not multiplied by cores, CPU time is summed.
- Database exports spell a missing value ``NULL``.
"""

import re

import pyarrow.compute as pc

from esjobs.records.errors.nodes import node_names
from esjobs.records.errors.primary import errors_of
from esjobs.records.ingest.reading.batches import LayoutSource
from esjobs.records.ingest.reading.layout import Column, Layout, Values, column_of, time_between

_KB = 1024.0
_CODES = {
    "pilot": "piloterrorcode",
    "exe": "exeerrorcode",
    "sup": "superrorcode",
    "ddm": "ddmerrorcode",
    "brokerage": "brokerageerrorcode",
    "dispatcher": "jobdispatchererrorcode",
    "taskbuffer": "taskbuffererrorcode",
    "trans": "transexitcode",
}
_TASK_IN_NAME = re.compile(r"^job_records_(?:.*_)?(\d{6,})(?:\.|$)")


_COLUMNS = (
    column_of("job_id", "pandaid", whole_number=True),
    column_of("task_id", "jeditaskid", whole_number=True),
    column_of("queue", "computingsite"),
    column_of("cpu_raw", "cpuconsumptionunit"),
    column_of("processing_type", "processingtype"),
    column_of("transformation", "transformation"),
    column_of("state", "jobstatus", lower=True),
    column_of("user", "produsername"),
    column_of("project", "workinggroup"),
    column_of("submit_time", "creationtime"),
    column_of("start_time", "starttime"),
    column_of("end_time", "endtime"),
    # what the job had, before what it asked for
    column_of("cores", "actualcorecount", "corecount"),
    column_of("events", "nevents"),
    column_of("cpu_s", "cpuconsumptiontime"),
    column_of("wall_s", "wall_time"),
    column_of("hs06_s", "hs06sec"),
    column_of("queue_s", "queue_time"),
    column_of("stagein_s", "timestagein"),
    column_of("exe_s", "timeexe"),
    column_of("stageout_s", "timestageout"),
    column_of("max_rss_b", "maxrss", scale=_KB, unset=-1),
    column_of("avg_rss_b", "avgrss", scale=_KB, unset=-1),
    column_of("max_pss_b", "maxpss", scale=_KB, unset=-1),
    column_of("avg_pss_b", "avgpss", scale=_KB, unset=-1),
    column_of("max_vmem_b", "maxvmem", scale=_KB, unset=-1),
    column_of("read_b", "iobytesread", unset=-1),
    column_of("written_b", "iobyteswritten", unset=-1),
    column_of("input_b", "inputfilebytes"),
    column_of("output_b", "outputfilebytes"),
    column_of("requested_memory_b", "minramcount", scale=_KB**2, unset=0),
    column_of("failed_attempts", "failedattempt"),
    column_of("node", "modificationhost"),
    column_of("release", "homepackage", "atlasrelease"),
    Column("read_rate", ("iobytesreadrate",), "number", lenient=True),
    Column("write_rate", ("iobyteswriterate",), "number", lenient=True),
    *(Column(f"code {family}", (name,), "keyword", lenient=True) for family, name in _CODES.items()),
)


def _derive(values: dict[str, Values]) -> None:
    time_between(values, "wall_s", "start_time", "end_time")
    time_between(values, "queue_s", "submit_time", "start_time")
    _io_bytes(values, "read_b", "read_rate")
    _io_bytes(values, "written_b", "write_rate")
    codes = {name: values[f"code {name}"].values for name in _CODES if f"code {name}" in values}
    if codes and "state" in values:
        values["error"] = Values(errors_of(values["state"].values, codes))
    if "node" in values:
        values["node"].values = node_names(values["node"].values)


def _io_bytes(values: dict[str, Values], target: str, rate: str) -> None:
    # The rate is in B/s, so total / rate is about the wall time for bytes and a thousandth of it for kB;
    # the border lies between, at a thirty-second of the wall time.
    total = values.get(target)
    if total is None:
        return
    factor: object = _KB
    wall, speed = values.get("wall_s"), values.get(rate)
    if wall is not None and speed is not None:
        # without a rate, or a wall time, kilobytes: so the old records are
        in_bytes = pc.greater_equal(
            pc.multiply(total.values, 32.0), pc.multiply(speed.values, wall.values)
        ).fill_null(False)
        usable = pc.and_kleene(pc.greater(speed.values, 0.0), pc.greater(wall.values, 0.0)).fill_null(False)
        factor = pc.if_else(pc.and_(in_bytes, usable), 1.0, _KB)
    total.values = pc.multiply(total.values, factor)


LAYOUT = Layout(
    "panda",
    _COLUMNS,
    nulls=("NULL", "null", "None", "\\N"),
    text_nulls=("nan", "NaN"),
    trim=True,
    derive=_derive,
    hit_id="pandaid",
)


def task_in(name: str) -> str | None:
    """The task id in a file name: the last 6 or more digits of ``job_records_[..._]DIGITS``, else None.

    >>> task_in("job_records_10k_15350577.csv.gz"), task_in("jobs_15350577.csv")
    ('15350577', None)
    """
    match = _TASK_IN_NAME.match(name)
    return match[1] if match else None


def _from_name(name: str) -> dict[str, str]:
    task = task_in(name)
    return {} if task is None else {"task_id": task}


PANDA = LayoutSource(LAYOUT, "panda", from_name=_from_name)
"""The format ``panda``; the task id comes from ``jeditaskid``, the file name or the fill."""
