"""Memory of a fit: checked before it begins, so that no process is killed in the middle, and given back."""

import ctypes
import os
import resource
from pathlib import Path

import pyarrow as pa

from esjobs.core.errors import TooLargeError

ROW_B = 700
"""Memory of a fit per row (task key and name) at most, measured with every row in every fit."""
FINE_ROW_B = 150
"""Memory of the sums of a window per row by task key, queue, CPU model and period."""

# Control groups of version 2; of version 1 the limit stays unknown.
_CGROUP = Path("/sys/fs/cgroup")
_GB = 1e9


def require_room(rows: int, row_b: int = ROW_B) -> None:
    """Raise :class:`TooLargeError` when fits of so many rows need more memory than can be had."""
    free_b = free_memory_b()
    needed_b = rows * row_b
    if free_b is not None and needed_b > free_b:
        raise TooLargeError(
            f"the window has {rows:,} or more sums of tasks and queues. The fit requires about "
            f"{needed_b / _GB:.1f} GB; {free_b / _GB:.1f} GB are free. Shorten the window, add --where, or "
            "use a machine with more memory"
        )


def free_memory_b() -> int | None:
    """Return the bytes that machine, control group and resource limit leave; None if unknown."""
    limits = [_of_machine(), _of_group(), _of_process()]
    finite = [size for size in limits if size is not None]
    return max(min(finite), 0) if finite else None


def release_memory() -> None:
    """Give back to the system what arrays have left, where the C library can (glibc); costs milliseconds.

    Arrays of some megabytes come and go in a fit; without it their gaps add up from window to window.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _of_group() -> int | None:
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (_CGROUP / "memory.current").read_text(encoding="ascii").strip()
        counts = (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    if not limit.isdigit():
        return None
    # Pages of files that were read count as used and are given back when memory is needed.
    cached = next((int(line.split()[1]) for line in counts if line.startswith("inactive_file ")), 0)
    return int(limit) - int(used) + cached


def _of_process() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return None
    return limit - pages * os.sysconf("SC_PAGE_SIZE")
