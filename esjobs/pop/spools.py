"""Spool folders of reports: listing, private copies, removal.

Anybody may write into a spool. Only regular files with names of reports are opened, links are not followed,
and only private copies are read. A file is removed only if it is still the one copied.
"""

import os
import re
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from esjobs.core.errors import InputError
from esjobs.core.text import visible
from esjobs.pop.settings import REMOTE, SpoolSettings, TalpSettings
from esjobs.store.files.destination import writing

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Seen:
    """File of a spool.

    ``mark`` changes with its content; ``settled``: no longer being written; ``readable``: True if unknown.
    """

    mark: str
    regular: bool
    settled: bool
    readable: bool = True


@dataclass(frozen=True)
class LocalSpool:
    """Folder of this machine. ``until``: files changed later are not settled."""

    name: str
    until: float

    def files(self) -> dict[str, Seen]:
        """Return the files by name. Raises :class:`InputError` if the folder cannot be read."""
        seen = {}
        try:
            with os.scandir(self.name) as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # another collector took it
                        continue
                    regular = stat.S_ISREG(status.st_mode)
                    readable = not regular or os.access(entry.path, os.R_OK)
                    seen[entry.name] = Seen(
                        _mark(status), regular, status.st_mtime <= self.until, readable=readable
                    )
        except OSError as error:
            raise InputError(f"{visible(self.name)} cannot be read: {error.strerror}") from error
        return seen

    def copy(self, names: Sequence[str], to: Path) -> dict[str, str]:
        """Copy files and return their marks by name; missing ones are skipped."""
        copied = {}
        for name in names:
            try:
                # not to wait for a pipe, and not to follow a link, that took its place since it was looked at
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(Path(self.name) / name, flags), "rb") as source:
                    status = os.fstat(source.fileno())
                    if not stat.S_ISREG(status.st_mode):
                        continue
                    with writing(to / name) as taken:
                        while chunk := source.read(_CHUNK):
                            taken.write(chunk)
                # the time is part of the mark, by which a later change is seen
                os.utime(to / name, (status.st_atime, status.st_mtime))
            except (FileNotFoundError, PermissionError):
                continue
            except OSError as error:
                raise InputError(
                    f"{name} in {visible(self.name)} cannot be read: {error.strerror}"
                ) from error
            copied[name] = _mark(status)
        return copied

    def remove(self, marks: Mapping[str, str], copies: Path) -> list[str]:
        """Remove files that are still those copied to ``copies``; return those that could not be removed."""
        del copies
        failed = []
        for name, mark in marks.items():
            path = Path(self.name) / name
            try:
                if _mark(path.lstat()) == mark:  # written again meanwhile: the next collection takes it
                    path.unlink()
            except FileNotFoundError:
                continue
            except OSError:
                failed.append(name)
        return failed


def _mark(status: os.stat_result) -> str:
    return f"{status.st_size}-{status.st_mtime_ns}"


_LISTED = re.compile(
    r"(?P<kind>.)\S{9}\S*\s+(?P<size>[\d,.']+)\s+"
    r"(?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) (?P<name>.+)"
)


@dataclass(frozen=True)
class RemoteSpool:
    """Folder of another host, by rsync, as :class:`LocalSpool`; unfinished files are not reports yet."""

    name: str
    settings: TalpSettings

    def files(self) -> dict[str, Seen]:
        """List the folder by rsync; whatever is listed counts as settled. Cost: one connection."""
        seen = {}
        for line in self._run(["-d", "--list-only", "--", f"{self.name}/"]).splitlines():
            listed = _LISTED.fullmatch(line)
            if listed is not None and listed["name"] != ".":
                # sizes are grouped by the locale of the other host
                mark = f"{re.sub(r'[^0-9]', '', listed['size'])}-{listed['time']}"
                seen[listed["name"]] = Seen(mark, listed["kind"] == "-", settled=True)
        return seen

    def copy(self, names: Sequence[str], to: Path) -> dict[str, str]:
        self._pull(names, to, [])
        return {name: _mark((to / name).lstat()) for name in names if (to / name).is_file()}

    def remove(self, marks: Mapping[str, str], copies: Path) -> list[str]:
        """Remove files that still are as their copies; return the names that remain."""
        # rsync removes files whose content is here. It would copy changed ones first and remove them, too,
        # unstored: without a usable folder for temporary files it cannot copy them and leaves them alone.
        nowhere = next((folder for folder in ("/proc", "/dev/fd") if os.path.isdir(folder)), "/")
        try:
            self._pull(list(marks), copies, ["--checksum", f"--temp-dir={nowhere}", "--remove-source-files"])
        except InputError:
            try:
                present = self.files()
            except InputError:
                return list(marks)
            return [name for name in marks if name in present]
        return []

    def _pull(self, names: Sequence[str], to: Path, options: Iterable[str]) -> None:
        listed = "".join(f"{name}\n" for name in names)
        self._run(
            ["-t", "--ignore-missing-args", "--files-from=-", *options, "--", f"{self.name}/", f"{to}/"],
            listed,
        )

    def _run(self, options: Sequence[str], text: str = "") -> str:
        command = [*self.settings.rsync, *options]
        try:
            # a list of arguments, no shell; addresses and names were checked against patterns
            done = subprocess.run(  # noqa: S603
                command,
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self.settings.timeout_s,
                check=False,
                env={**os.environ, "LC_ALL": "C"},
            )
        except subprocess.TimeoutExpired as error:
            raise InputError(
                f"rsync of {self.name} took longer than {self.settings.timeout_s:g} s; check the host"
            ) from error
        except OSError as error:
            raise InputError(f"{command[0]} cannot run: {error.strerror}; install rsync") from error
        if done.returncode:
            said = visible((done.stderr.strip().splitlines() or ["no reason"])[0][:200])
            raise InputError(f"rsync of {self.name} failed ({done.returncode}): {said}")
        return done.stdout


Spool = LocalSpool | RemoteSpool


def spool_of(chosen: SpoolSettings, settings: TalpSettings, now: float) -> Spool:
    """Return the spool of a setting. ``now``: seconds since 1970."""
    if REMOTE.fullmatch(chosen.folder):
        return RemoteSpool(chosen.folder, settings)
    return LocalSpool(chosen.folder, now - settings.settled_s)
