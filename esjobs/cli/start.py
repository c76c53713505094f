"""The start of the command ``esjobs``: allocators that reserve little, and a second process under a limit.

Libraries do what they like when an allocation fails: DuckDB's allocator follows a null pointer, libc and C++
end the process, OpenBLAS exits or tries for ever. None of it can be caught inside. So where the system limits
memory the command runs in a process of its own, and this one reads how it ended: one line and exit code 1.

Nothing heavy is imported here: this process has to live where the other one cannot.
"""

import atexit
import contextlib
import ctypes
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

# In the environment of the second process: its descriptors for messages and for its exit code
_SUPERVISED = "ESJOBS_SUPERVISED"

_ALLOCATORS = {"DUCKDB_JE_MALLOC_CONF": "narenas:1", "OPENBLAS_NUM_THREADS": "1"}
_M_ARENA_MAX = -8
_PR_SET_PDEATHSIG = 1

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

# Texts of errors that lack memory, besides :class:`MemoryError`
_LACKING = (
    "can't start new thread",
    "failed to map segment",
    "cannot allocate memory",
    "bad_alloc",
    "launch worker thread",
    "allocation failure",
    "could not allocate",
    "out of memory",
    "cannot create thread",
    "resource temporarily unavailable",
)

OUT_OF_MEMORY = (
    "esjobs: out of memory; published results are intact. Raise the memory limit (ulimit -v, container, "
    "unit), or shorten the window"
)

# Seconds after which a process is given up that only repeats a request for memory
_GIVEN_UP_AFTER_S = 15

# Signals that end a process without memory
_DEADLY = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL)

# Descriptors for messages, and for the exit code if anybody waits for it
_messages, _account = 2, -1


def command() -> NoReturn:
    """The command ``esjobs``: the program, ended without taking apart its objects.

    Python's own exit would cost a sixth of a short command.
    """
    try:
        program()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise
        end(ended.code or 0)
    end(0)


def program() -> None:
    """The command as it is installed: a process of its own, or two where memory is limited."""
    prepare_allocators()
    descriptors = os.environ.pop(_SUPERVISED, None)
    if descriptors is None and _memory_limit() is not None:
        sys.exit(_supervise())
    if descriptors is None:
        _run()
    else:
        _run_supervised(descriptors)


def prepare_allocators() -> None:
    """Keep the libraries from reserving addresses for each processor and thread; before they are loaded."""
    for name, value in _ALLOCATORS.items():
        os.environ.setdefault(name, value)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def lacks_memory(error: BaseException) -> bool:
    """True if an error, or what caused it, is that memory could not be had."""
    for each in _chain(error):
        if isinstance(each, MemoryError):
            return True
        text = str(each).lower()
        if any(words in text for words in _LACKING):
            return True
    return False


def end(code: int) -> NoReturn:
    """End at once: what libraries do at a usual exit is left out, for it can crash and change nothing."""
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    leave(code)


def leave(code: int, text: str = "") -> NoReturn:
    """End without waiting for anything, after a last line on standard error."""
    with contextlib.suppress(OSError):
        if text:
            os.write(_messages, f"{text}\n".encode())
    with contextlib.suppress(OSError):
        if _account >= 0:
            os.write(_account, str(code).encode())
    os._exit(code)


def _run() -> None:
    from esjobs.cli.log_lines import redact_tracebacks
    from esjobs.cli.main import PROGRAM, main

    redact_tracebacks()
    try:
        main(obj=PROGRAM, prog_name="esjobs")
    except SystemExit as ended:
        if "_ESJOBS_COMPLETE" in os.environ and isinstance(ended.code, int):
            # DuckDB's destructors write to the terminal in which somebody completes a name
            end(ended.code)
        raise


def _run_supervised(descriptors: str) -> NoReturn:
    try:
        _run_reporting(descriptors)
    except BaseException:
        # no memory even to say so: the first process says it, for it finds no exit code
        os._exit(1)


def _run_reporting(descriptors: str) -> NoReturn:
    global _messages, _account
    _messages, _account = map(int, descriptors.split(","))
    stream = io.BufferedWriter(io.FileIO(_messages, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(stream, errors="backslashreplace", line_buffering=True)
    sys.unraisablehook = lambda _: None
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    code = 0
    try:
        _run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException as error:
        code = 1
        if lacks_memory(error) or _is_short():
            leave(1, OUT_OF_MEMORY)
        sys.excepthook(type(error), error, error.__traceback__)
    end(code)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__


def _is_short() -> bool:
    """True if the process came close to its limit: errors of all kinds follow from a module half imported."""
    limit = _address_limit()
    if limit is None:
        return False
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmPeak"))
        return peak > 0.75 * limit
    return False


def _memory_limit() -> int | None:
    """The least limit of memory that the system has set for this process; None: there is none."""
    limits = [_address_limit()]
    for path in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(Path(path).read_text(encoding="ascii")))
    with contextlib.suppress(OSError, ValueError):
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return min((limit for limit in limits if limit is not None and limit < 4 * installed), default=None)
    return None


def _address_limit() -> int | None:
    if sys.platform != "linux":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _supervise() -> int:
    """Run the same command in a second process; its exit code, or 1 and a line where it gave none."""
    try:
        ended, account, native = _watched()
    except (OSError, MemoryError, subprocess.SubprocessError) as error:
        if not lacks_memory(error):
            raise
        leave(1, OUT_OF_MEMORY)
    if account is not None:
        return account
    if ended < 0 and -ended not in _DEADLY:
        signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    name = signal.Signals(-ended).name if ended < 0 else f"exit code {ended}"
    limit = (_memory_limit() or 0) // 2**20
    said = f"; the system reported: {native}" if native else ""
    os.write(
        2,
        f"esjobs: killed by {name}, probably out of memory (limit {limit} MB); published results are intact. "
        f"Raise the limit, or shorten the window{said}\n".encode(),
    )
    return 1


def _watched() -> tuple[int, int | None, str]:
    """Return exit status of the second process, the exit code it reported, last line of its libraries."""
    messages = os.dup(2)
    read, write = os.pipe()
    native = os.memfd_create("native") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, read)
        stack.callback(os.close, native)
        stack.callback(os.close, messages)
        process = subprocess.Popen(  # noqa: S603  this program, as it was called
            [sys.executable, *_path_option(), "-m", "esjobs", *sys.argv[1:]],
            env=os.environ | {_SUPERVISED: f"{messages},{write}"},
            stderr=native,
            pass_fds=(messages, write),
        )
        os.close(write)
        ended = _wait(process)
        account = os.read(read, 16)
        text = os.pread(native, 100_000, 0).decode(errors="replace").strip()
    last = text.splitlines()[-1][:200] if text else ""
    return ended, int(account) if account else None, last


def _path_option() -> list[str]:
    """The option that hides modules of the current folder, unless ours are there."""
    return [] if sys.path[0] in ("", os.getcwd()) else ["-P"]


def _wait(process: "subprocess.Popen[bytes]") -> int:
    """Wait for the second process, hand signals on to it, and give it up when it asks for memory for ever."""
    handed = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*handed, signal.SIGCHLD})
    last, repeats = _Usage(), 0
    while process.poll() is None:
        got = signal.sigtimedwait({*handed, signal.SIGCHLD}, 1.0)
        # what a terminal sends goes to both
        if got is not None and got.si_signo in handed and got.si_code <= 0:
            process.send_signal(got.si_signo)
        if got is None:
            usage = _Usage.of(process.pid)
            repeats = repeats + 1 if usage.only_asks(last) else 0
            last = usage
            if repeats >= _GIVEN_UP_AFTER_S:
                process.kill()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process.returncode


class _Usage(NamedTuple):
    """Resource usage of a process: page faults, own and system ticks, addresses, transfers."""

    faults: int = 0
    own: int = 0
    of_system: int = 0
    addresses: int = 0
    transfers: tuple[str, ...] = ()

    @classmethod
    def of(cls, pid: int) -> "_Usage":
        """Of a process; nothing where the system does not tell."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            fields = text.rpartition(")")[2].split()
            lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
            transfers = tuple(line for line in lines if line.startswith(("syscr", "syscw")))
            faults, own, of_system, addresses = (int(fields[number]) for number in (7, 11, 12, 20))
            return cls(faults, own, of_system, addresses, transfers)
        return cls()

    def only_asks(self, before: "_Usage") -> bool:
        """True if since then the process had neither more memory nor much to do but to ask the system."""
        same = self._replace(own=before.own, of_system=before.of_system) == before
        return same and self.of_system - before.of_system > self.own - before.own
