"""Hard bounds of a process that answers one question, for what heeds neither an interrupt nor a setting.

A function of DuckDB that works on one value looks at neither: a single ``repeat`` or ``levenshtein`` may take
any time and any memory. Where nobody else uses the process, the system can bound it.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

GRACE_S = 5.0
"""Seconds that an interrupt has to be heeded in, before the process is ended."""

_SPARE_BYTES = 10**9
_SPARE_BYTES_A_THREAD = 128 * 2**20
"""Beside the data: the libraries, what answers are copied to, and what malloc reserves for each thread."""


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


def _end(late: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{late}\n".encode())
    # neither the thread at work nor what waits for it at an orderly end would ever look up
    os._exit(1)


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
