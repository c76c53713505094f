"""Limits of this process: hard bounds of one that answers a question, and enough files for one that serves.

Hard bounds are for what heeds neither an interrupt nor a setting.

A function of DuckDB that works on one value looks at neither: a single ``repeat`` or ``levenshtein`` may take
any time and any memory. Where nobody else uses the process, the system can bound it.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from esjobs.cli.start import leave
from esjobs.core.errors import SettingsError

GRACE_S = 5.0  # Seconds that an interrupt has to be heeded in, before the process is ended

_SPARE_BYTES = 10**9
# Beside the data: the libraries, what answers are copied to, and what malloc reserves for each thread
_SPARE_BYTES_A_THREAD = 128 * 2**20

_LEAST_FILES, _MOST_FILES = 256, 65_536


@contextlib.contextmanager
def bounded(seconds: float, memory_bytes: float, late: str) -> Iterator[None]:
    """Give the process ``memory_bytes`` twice over and a spare, beside what it has now, and so many seconds.

    The process ends with exit code 1 and the line ``late`` on standard error :data:`GRACE_S` after its time.
    What it may not have makes its libraries raise errors of lacking memory. Where a system tells no size of
    processes, or has no limits, only the time is bounded.
    """
    watch = threading.Timer(seconds + GRACE_S, _end, [late])
    watch.daemon = True
    watch.start()
    try:
        with _address_space(memory_bytes):
            yield
    finally:
        watch.cancel()


def require_open_files() -> None:
    """Let the process open as many files as the system allows it, at most 65 536.

    Raises :class:`SettingsError` where that is less than a service needs: DuckDB ends a process that lacks
    a descriptor.
    """
    if sys.platform != "linux":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    if soft != resource.RLIM_INFINITY and soft < _LEAST_FILES:
        raise SettingsError(
            f"the process may open {soft} files, but requires {_LEAST_FILES}; raise the limit (ulimit -n, "
            "LimitNOFILE of the unit)"
        )


def _end(late: str) -> None:
    # neither the thread at work nor what waits for it at an orderly end would ever look up
    leave(1, late)


@contextlib.contextmanager
def _address_space(memory_bytes: float) -> Iterator[None]:
    """Bound the addresses of the process, unless they are bounded closer already."""
    if sys.platform != "linux":
        yield
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    spare = _SPARE_BYTES + _SPARE_BYTES_A_THREAD * (os.cpu_count() or 1)
    wanted = pages * resource.getpagesize() + int(2 * memory_bytes) + spare
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if any(limit != resource.RLIM_INFINITY and limit <= wanted for limit in (soft, hard)):
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
