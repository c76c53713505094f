"""CMS job records, as the HTCondor spider (dmwm/cms-htcondor-es) writes them.

Columns are matched without regard to case; JSON lines may be Elasticsearch hits. Facts about the records:

- A job with ``Status`` Completed may have failed: its exit code is that of the payload, of CRAB, else of the
  batch job. Removed jobs carry the reason of their last hold; jobs that wait, run or are held have not ended.
- ``RecordTime`` is the end of a job that ended, else the time of the copy; ``CompletionDate`` of removed jobs
  is 0.
- Times are hours, events thousands, memory MB of 1024^2 B. ``HS06CoreHr`` contains the declared power.
"""

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.records.errors.nodes import node_names
from esjobs.records.errors.primary import errors_of, htcondor_error
from esjobs.records.ingest.reading.batches import LayoutSource
from esjobs.records.ingest.reading.layout import Column, Layout, Values, column_of, time_between

_HOUR, _MB, _GB = 3600.0, 1048576.0, 1073741824.0
_STATES = {"completed": "finished", "removed": "cancelled"}
_ALIVE = pa.array(["idle", "running", "held", "transferring output", "suspended"])
_CODES = {
    "cms": ("jobexitcode", "chirp_crab3_job_exitcode", "exitcode"),
    "hold": ("holdreasoncode", "lastholdreasoncode"),
    "subcode": ("holdreasonsubcode", "lastholdreasonsubcode"),
    "vacate": ("vacatereasoncode", "lastvacatereasoncode"),
}

_COLUMNS = (
    column_of("job_id", "globaljobid"),
    column_of("task_id", "wmagent_subtaskname", "crab_workflow", "workflow"),
    column_of("queue", "site"),
    column_of("cpu_raw", "cpumodelname", "cpumodel"),
    column_of("processing_type", "tasktype"),
    column_of("transformation", "type"),
    column_of("state", "status", lower=True),
    column_of("user", "crab_userhn", "user"),
    column_of("project", "campaign"),
    column_of("submit_time", "qdate"),
    column_of("start_time", "jobcurrentstartdate"),
    column_of("end_time", "recordtime", "completiondate"),
    column_of("cores", "requestcpus"),
    column_of("cpu_s", "cputimehr", scale=_HOUR),
    column_of("wall_s", "wallclockhr", scale=_HOUR),
    column_of("hs06_s", "hs06corehr", scale=_HOUR),
    column_of("queue_s", "queuehrs", scale=_HOUR),
    column_of("max_rss_b", "memorymb", scale=_MB),
    column_of("requested_memory_b", "requestmemory", scale=_MB),
    column_of("input_b", "inputgb", scale=_GB),
    column_of("node", "lastremotehost", "remotehost"),
    column_of("release", "crab_jobsw"),
    Column("thousands", ("kevents",), "number", scale=1000.0, lenient=True),
    *(Column(f"code {family}", names, "keyword", lenient=True) for family, names in _CODES.items()),
)


def _derive(values: dict[str, Values]) -> None:
    if "state" in values and "end_time" in values:
        # RecordTime of such a job is the time of the copy
        end, alive = values["end_time"], pc.is_in(values["state"].values, _ALIVE)
        end.values = pc.if_else(alive, pa.scalar(None, end.values.type), end.values)
    time_between(values, "wall_s", "start_time", "end_time")
    time_between(values, "queue_s", "submit_time", "start_time")
    codes = {name: values[f"code {name}"].values for name in _CODES if f"code {name}" in values}
    if "thousands" in values:
        # thousands as doubles: 12.345 is 12,345 events but for rounding
        values["events"] = Values(pc.round(values["thousands"].values).cast(pa.int64(), safe=False))
    if "state" in values:
        words = values["state"].values
        for theirs, ours in _STATES.items():
            words = pc.if_else(pc.equal(words, theirs), ours, words)
        if "cms" in codes:
            # 0.0 by exports that went through doubles
            bad = pc.invert(pc.is_in(codes["cms"], pa.array([None, "", "0", "0.0"], pa.string())))
            words = pc.if_else(pc.and_(bad, pc.equal(words, "finished")), "failed", words)
        values["state"].values = words
        values["error"] = Values(errors_of(words, codes, htcondor_error))
    if "node" in values:
        values["node"].values = node_names(values["node"].values)


LAYOUT = Layout("cms-htcondor", _COLUMNS, nulls=("null", "None"), trim=True, derive=_derive)


CMS_HTCONDOR = LayoutSource(LAYOUT, "cms")
"""The format ``cms-htcondor``: the names of the spider."""
