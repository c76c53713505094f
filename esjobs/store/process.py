"""Identity of processes; liveness is known on the same machine only."""

import os
import pwd
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

_UNKNOWN = "-"


def os_account() -> str:
    """Return the account of this process, such as ``ann on node7``."""
    number = os.geteuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        name = f"uid {number}"
    return f"{name} on {socket.gethostname()}"


@dataclass(frozen=True)
class Process:
    """Process with a unique name.

    ``boot``: kernel start; ``space``: process namespace; ``began``: start in clock ticks, because ids are
    reused. ``-``: unknown.
    """

    boot: str
    space: str
    pid: int
    began: str
    host: str

    @classmethod
    def current(cls) -> Self:
        """Return the present process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Self:
        """Return a process of this machine and container."""
        return cls(_boot(), _space(), pid, _began(pid), socket.gethostname())

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a name; None if invalid."""
        # the host comes last: it is the only part that may hold a blank
        parts = text.split(" ", 4)
        if len(parts) != 5 or not parts[2].isdigit():
            return None
        boot, space, pid, began, host = parts
        return cls(boot, space, int(pid), began, host)

    def __str__(self) -> str:
        return f"{self.boot} {self.space} {self.pid} {self.began} {self.host}"

    @property
    def label(self) -> str:
        """Displayed name.

        >>> Process("b", "s", 12, "-", "node7").label
        'process 12 on node7'
        """
        return f"process {self.pid} on {self.host}"

    @property
    def is_near(self) -> bool:
        """True if this process can see that one."""
        # two containers on one kernel share the boot id and number their processes apart
        return _UNKNOWN not in (self.boot, self.space) and (self.boot, self.space) == (_boot(), _space())

    @property
    def is_gone(self) -> bool:
        """True if it has certainly ended; never for a remote one."""
        # an id may belong to another process by now, whose start differs
        return self.is_near and _began(self.pid) != self.began


@cache
def _boot() -> str:
    return _first_line("/proc/sys/kernel/random/boot_id")


def _space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid").replace(" ", "")
    except OSError:
        return _UNKNOWN


def _began(pid: int) -> str:
    stat = _first_line(f"/proc/{pid}/stat")
    # the command in brackets may hold blanks and brackets itself; field 22 is the start in clock ticks
    return stat if stat == _UNKNOWN else stat.rpartition(")")[2].split()[19]


def _first_line(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8").strip() or _UNKNOWN
    except OSError:
        return _UNKNOWN
