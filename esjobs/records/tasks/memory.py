"""Whether a fit has room: said before it begins, not by a process that is killed in the middle."""

import os
import resource
from pathlib import Path

from esjobs.core.errors import TooLargeError

ROW_B = 400
"""What the fits take per row (task key and name) at most, measured with every row in every fit."""

_CGROUP = Path("/sys/fs/cgroup")
_GB = 1e9


def require_room(rows: int) -> None:
    """Raise :class:`TooLargeError` when fits of so many rows need more memory than can be had."""
    free_b = free_memory_b()
    needed_b = rows * ROW_B
    if free_b is not None and needed_b > free_b:
        raise TooLargeError(
            f"the window has {rows:,} or more pairs of task and queue to fit, which take about "
            f"{needed_b / _GB:.1f} GB; {free_b / _GB:.1f} GB of memory are free: choose a shorter window, "
            "restrict the run with --where, or run it on a machine with more memory"
        )


def free_memory_b() -> int | None:
    """What this process may still take, in bytes: of the machine, its control group and its own limit.

    None where the system says none of them.
    """
    told = [_of_machine(), _of_group(), _of_process()]
    known = [size for size in told if size is not None]
    return max(min(known), 0) if known else None


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _of_group() -> int | None:
    """A container's limit: files of the group as the container sees it, and what of it is in use."""
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
