"""The wrapper of launchers: run from here, or written as programs that take the launchers' names."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from esjobs.core.errors import InputError

SCRIPT = Path(__file__).with_name("launch.sh")
"""All of it, for any shell of POSIX."""
NAMES = ("mpirun", "mpiexec", "srun")


def run_under_talp(command: Sequence[str], chosen: Mapping[str, str]) -> NoReturn:
    """Become a launcher under TALP: this process ends here. ``chosen``: ``ESJOBS_TALP_...`` by their ends."""
    environment = {**os.environ, **{f"ESJOBS_TALP_{name}": value for name, value in chosen.items()}}
    shell = "/bin/sh"
    os.execve(shell, [shell, str(SCRIPT), *command], environment)  # noqa: S606


def write_wrappers(folder: Path) -> list[Path]:
    """Write a program for each launcher; :class:`InputError` when the folder cannot be written."""
    script = SCRIPT.read_bytes()
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            # beside, then in its place: one that is running is not changed
            path, fresh = folder / name, folder / f".{name}.{os.getpid()}"
            fresh.write_bytes(script)
            fresh.chmod(0o755)
            fresh.replace(path)
            written.append(path)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}); name another folder") from error
    return written
