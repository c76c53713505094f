"""Names of reports of TALP: job, launch, node, process, and the report of a partial one."""

import re
from dataclasses import dataclass

from esjobs.records.ingest.formats.job_files import id_in

OURS = re.compile(
    r"talp\.(?P<job>[A-Za-z0-9][\w.\[\]-]{0,99})\.(?P<step>[\w-]{1,40})\.(?P<host>[\w-]{1,64})\.(?P<pid>\d{1,10})"
    r"(?P<part>_[\w.-]{1,255}_\d{1,10}\.partial)?\.json",
    re.ASCII,
)
"""Names of reports as the wrapper of ``esjobs talp run`` gives them, ``talp.JOB.STEP.HOST.PID.json``: what is
gathered, and nothing else is opened. The name of a job may have points, what follows has none."""

_PARTIAL = re.compile(r"(?P<report>.+)_(?P<host>[^_]+)_(?P<pid>\d+)\.partial\.json")
# ``%j.%h.%p.json``, which DLB fills in since 3.7.
_BY_DLB = re.compile(r"(?P<job>\d+)\.[\w-]+\.\d+\.json", re.ASCII)


@dataclass(frozen=True)
class ReportName:
    """``job_id``: None where the name has none. ``part_of``: None for a report that is complete."""

    job_id: str | None
    step: str
    part_of: str | None


def report_name(name: str) -> ReportName:
    """Return what the name of a file says, without folders and without the ending of a gzip.

    >>> report_name("talp.4711.0.node07.991.json")
    ReportName(job_id='4711', step='0', part_of=None)
    >>> report_name("4711.node07.991.json")
    ReportName(job_id='4711', step='', part_of=None)
    >>> report_name("run-4711_node07_991.partial.json")
    ReportName(job_id='4711', step='', part_of='run-4711')
    """
    name = name.rsplit("/", 1)[-1].removesuffix(".gz")
    part = _PARTIAL.fullmatch(name)
    part_of = part["report"].removesuffix(".json") if part else None
    ours = OURS.fullmatch(name)
    if ours:
        return ReportName(ours["job"], ours["step"], part_of)
    by_dlb = _BY_DLB.fullmatch(name)
    if by_dlb:
        return ReportName(by_dlb["job"], "", part_of)
    # the process id of a part is no job id
    return ReportName(id_in(part_of if part_of is not None else name), "", part_of)
