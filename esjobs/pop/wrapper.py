"""Launcher wrapper: run directly, or written as programs with the launchers' names."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from esjobs.core.errors import InputError
from esjobs.store.files.destination import writing

SCRIPT = Path(__file__).with_name("launch.sh")
"""The wrapper, for any POSIX shell."""
_MARK = b"\n# esjobs-talp-wrapper\n"
NAMES = ("mpirun", "mpiexec", "srun")


def run_under_talp(command: Sequence[str], chosen: Mapping[str, str]) -> NoReturn:
    """Replace this process by a launcher under TALP. ``chosen``: ``ESJOBS_TALP_...`` by suffix."""
    environment = {**os.environ, **{f"ESJOBS_TALP_{name}": value for name, value in chosen.items()}}
    shell = "/bin/sh"
    os.execve(shell, [shell, str(SCRIPT), *command], environment)  # noqa: S606


def write_wrappers(folder: Path) -> list[Path]:
    """Write a program for each launcher; raises :class:`InputError` for an unwritable folder.

    Real launchers are not overwritten.
    """
    script = SCRIPT.read_bytes()
    paths = [folder / name for name in NAMES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # all are checked before one is written
        for path in paths:
            if path.exists() and _MARK not in path.read_bytes()[:200]:
                raise InputError(f"{path} was not created by esjobs; use a separate folder")
        for path in paths:
            with writing(path) as stream:
                stream.write(script)
            path.chmod(0o755)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}); use a different folder") from error
    return paths
