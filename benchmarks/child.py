"""Runs a command as a process of its own and measures it: wall time, processor time, peak memory.

The parent must stay small: Linux lets a child start with its parent's memory as its first peak.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.machine import busy_s

_KB = 1024


@dataclass(frozen=True)
class Run:
    """A command that succeeded. ``cpu_s``: all its threads. ``peak_b``: largest resident memory.

    ``others``: processors that other programs kept busy meanwhile, on average.
    """

    wall_s: float
    cpu_s: float
    peak_b: int
    others: float
    stdout: str


def run(command: Sequence[str]) -> Run:
    """Run a command to its end; raises :class:`RuntimeError` with what it said when it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        busy, began = busy_s(), time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        cpu_s = usage.ru_utime + usage.ru_stime
        others = max(0.0, busy_s() - busy - cpu_s) / wall_s
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {err.read()[-2000:]}")
        return Run(wall_s, cpu_s, usage.ru_maxrss * _KB, others, out.read())
