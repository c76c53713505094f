"""Metrics of time series: one name, unit and meaning each.

A metric that is not in the catalogue keeps its own name after ``x_``, in the unit of its source.
"""

import math
import re
from dataclasses import dataclass
from typing import Literal

from esjobs.core.errors import UsageError

SCOPES = ("thread", "core", "accelerator", "socket", "node", "job")
"""Scopes of a series, the finest first."""

LARGEST_SHARE = 1.1
"""Largest value of a share: counters and clocks that are read apart make a little more than 1."""

OTHER = "x_"
"""Begins the name of a metric that the catalogue does not have."""


@dataclass(frozen=True)
class TimeMetric:
    """Metric of time series; ``over_units``: aggregation over cores, devices or nodes; ``largest``: value."""

    name: str
    unit: str
    meaning: str
    over_units: Literal["sum", "mean"]
    area: Literal["cpu", "gpu", "memory", "io", "network", "energy"]
    largest: float = math.inf


METRICS: tuple[TimeMetric, ...] = (
    TimeMetric(
        "cpu_load",
        "cores",
        "busy cores or hardware threads: 0 to 1 of a core, 0 to 2 of its two threads; of a node or a job the "
        "sum. A load average may exceed them",
        "sum",
        "cpu",
    ),
    TimeMetric("cpu_user", "1", "share of the time in user mode", "mean", "cpu", LARGEST_SHARE),
    TimeMetric("cpu_system", "1", "share of the time in the kernel", "mean", "cpu", LARGEST_SHARE),
    TimeMetric("cpu_iowait", "1", "share of the time waiting for I/O", "mean", "cpu", LARGEST_SHARE),
    TimeMetric("cpu_irq", "1", "share of time on interrupts", "mean", "cpu", LARGEST_SHARE),
    TimeMetric("ipc", "1", "instructions per cycle", "mean", "cpu"),
    TimeMetric("clock_hz", "Hz", "clock of the cores while they work", "mean", "cpu"),
    TimeMetric("flops_s", "1/s", "floating-point operations a second, of any precision", "sum", "cpu"),
    TimeMetric("flops_dp_s", "1/s", "floating-point operations a second in double precision", "sum", "cpu"),
    TimeMetric("flops_sp_s", "1/s", "floating-point operations a second in single precision", "sum", "cpu"),
    TimeMetric(
        "vector_frac", "1", "vectorised share of floating-point operations", "mean", "cpu", LARGEST_SHARE
    ),
    TimeMetric("processes", "processes", "processes of the job", "sum", "cpu"),
    TimeMetric("threads", "threads", "threads of the job", "sum", "cpu"),
    TimeMetric("gpu_load", "1", "share of the time that a GPU is busy", "mean", "gpu", LARGEST_SHARE),
    TimeMetric("gpu_mem_used_b", "B", "memory in use on a GPU", "sum", "gpu"),
    TimeMetric("gpu_mem_load", "1", "share of time with busy GPU memory", "mean", "gpu", LARGEST_SHARE),
    TimeMetric("gpu_power_w", "W", "power of a GPU", "sum", "gpu"),
    TimeMetric("gpu_clock_hz", "Hz", "clock of a GPU", "mean", "gpu"),
    TimeMetric("gpu_sm_active", "1", "share of time that multiprocessors work", "mean", "gpu", LARGEST_SHARE),
    TimeMetric("gpu_mem_active", "1", "share of time with GPU memory traffic", "mean", "gpu", LARGEST_SHARE),
    TimeMetric(
        "mem_used_b", "B", "memory in use: resident memory of the job, or of its node", "sum", "memory"
    ),
    TimeMetric("mem_pss_b", "B", "memory in use, what processes share divided among them", "sum", "memory"),
    TimeMetric("mem_virtual_b", "B", "virtual memory", "sum", "memory"),
    TimeMetric("swap_used_b", "B", "swap space in use", "sum", "memory"),
    TimeMetric("mem_bw_b_s", "B/s", "bytes moved between cores and main memory", "sum", "memory"),
    TimeMetric("read_b_s", "B/s", "bytes read from file systems", "sum", "io"),
    TimeMetric("write_b_s", "B/s", "bytes written to file systems", "sum", "io"),
    TimeMetric("disk_read_b_s", "B/s", "bytes that read calls brought from devices", "sum", "io"),
    TimeMetric("disk_write_b_s", "B/s", "bytes that write calls sent to devices", "sum", "io"),
    TimeMetric("metadata_ops_s", "1/s", "files opened and closed a second", "sum", "io"),
    # counters of nodes: jobs that share a node share them
    TimeMetric("net_b_s", "B/s", "bytes received and sent over the network of the nodes", "sum", "network"),
    TimeMetric("net_read_b_s", "B/s", "bytes received over the network of the nodes", "sum", "network"),
    TimeMetric("net_write_b_s", "B/s", "bytes sent over the network of the nodes", "sum", "network"),
    TimeMetric("net_packets_s", "1/s", "packets received and sent by the nodes", "sum", "network"),
    TimeMetric("power_w", "W", "power of sockets, or of the nodes that a meter sees", "sum", "energy"),
    TimeMetric("mem_power_w", "W", "power of main memory", "sum", "energy"),
)
"""In display order."""

_BY_NAME = {metric.name: metric for metric in METRICS}
_NO_NAME = re.compile(r"[^a-z0-9_]+")


def metric(name: str) -> TimeMetric:
    """Return a metric by name. Raises :class:`UsageError` that lists all names.

    >>> metric("mem_used_b").unit
    'B'
    """
    if name not in _BY_NAME:
        raise UsageError(
            f"unknown metric '{name}'; use one of {', '.join(_BY_NAME)}, or a name that begins with {OTHER}"
        )
    return _BY_NAME[name]


def largest_of(name: str) -> float:
    """Return the largest value that a metric can have: of a share 1, with room for rounding.

    >>> largest_of("gpu_load"), largest_of("ipc"), largest_of("x_pages")
    (1.1, inf, inf)
    """
    return _BY_NAME[name].largest if name in _BY_NAME else math.inf


def other(name: str) -> str:
    """Return the name of a metric that is not in the catalogue.

    >>> other("ib_xmit_pkts"), other("Pages/s")
    ('x_ib_xmit_pkts', 'x_pages_s')
    """
    return OTHER + (_NO_NAME.sub("_", name.lower()).strip("_") or "unnamed")
