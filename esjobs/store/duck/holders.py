"""Processes that hold locks on a file, as Linux reports in ``/proc``."""

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_LONGEST_COMMAND = 80

# Number of processes named in a message; of more, only their number is
_MOST_NAMED = 4


@dataclass(frozen=True)
class Holder:
    """Process with a lock; ``since``: start of the process."""

    pid: int
    command: str = ""
    since: datetime | None = None

    @property
    def label(self) -> str:
        """Process id with command and start.

        >>> Holder(12, "esjobs run", datetime(2018, 9, 1, 3, 30, tzinfo=UTC)).label
        '12 (esjobs run, running since 2018-09-01 03:30 UTC)'
        """
        facts = [self.command] if self.command else []
        if self.since is not None:
            facts.append(f"running since {self.since:%Y-%m-%d %H:%M} UTC")
        return f"{self.pid} ({', '.join(facts)})" if facts else f"{self.pid}"


def holders_of(file: Path) -> list[Holder]:
    """Return the other processes that lock a file, by process id.

    Processes of other machines and containers are invisible.
    """
    pids: set[int] = set()
    with contextlib.suppress(OSError):
        state = os.stat(file)
        for line in Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines():
            lock = re.fullmatch(
                r"\d+: POSIX +\w+ +\w+ +(?P<pid>\d+) (?P<device>[0-9a-f]+:[0-9a-f]+):(?P<inode>\d+) .*", line
            )
            # inodes are unique on one device only, so a match is checked against the device below
            if lock is None or int(lock["inode"]) != state.st_ino or int(lock["pid"]) == os.getpid():
                continue
            # some file systems have another device number there than they tell of their files
            device = f"{os.major(state.st_dev):02x}:{os.minor(state.st_dev):02x}"
            if lock["device"] == device or _has_open(int(lock["pid"]), state):
                pids.add(int(lock["pid"]))
    return [holder(pid) for pid in sorted(pids)]


def holder(pid: int) -> Holder:
    """Return a process with its command and start, if known."""
    return Holder(pid, _command(pid), _since(pid))


def listed(holders: Sequence[Holder]) -> str:
    """Return the processes as text of a message.

    >>> listed([Holder(12), Holder(15)])
    'processes 12, 15'
    """
    named = ", ".join(each.label for each in holders[:_MOST_NAMED])
    more = f" and {len(holders) - _MOST_NAMED} more" if len(holders) > _MOST_NAMED else ""
    return f"process{'es' if len(holders) > 1 else ''} {named}{more}"


def _has_open(pid: int, state: os.stat_result) -> bool:
    with contextlib.suppress(OSError):
        for each in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.path.samestat(os.stat(each.path), state):
                    return True
    return False


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").rstrip("\0").split("\0")
        # the folder of a program says little and is long; an address may have a password in it
        words[0] = words[0].rpartition("/")[2]
        command = re.sub(r"//[^/@\s]+@", "//", " ".join(" ".join(words).split()))
        return command if len(command) <= _LONGEST_COMMAND else command[: _LONGEST_COMMAND - 3] + "..."
    return ""


def _since(pid: int) -> datetime | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # the command, in brackets, may contain anything; after it the start is the 20th field
        ticks = int(stat.rpartition(")")[2].split()[19])
        # ticks count from the start of the kernel
        (boot,) = re.findall(r"^btime (\d+)$", Path("/proc/stat").read_text(encoding="ascii"), re.MULTILINE)
        return datetime.fromtimestamp(int(boot) + ticks / os.sysconf("SC_CLK_TCK"), UTC)
    return None
