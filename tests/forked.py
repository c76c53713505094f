"""Processes forked from one that has imported everything: they start in milliseconds and die at work.

For tests about a process: its descriptors, log, rights and end. What a command imports, a limit of memory at
the start and a terminal need ``python -m esjobs``.
"""

import multiprocessing as mp
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path

FORKED: ForkServerContext = mp.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.forked", "tests.warm"])

_STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))


def program(
    *commands: Sequence[str],
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    umask: int = -1,
) -> "subprocess.CompletedProcess[str]":
    """Run the program in a process of its own, one command after the other until one fails.

    ``environment``: added to that of the test. Standard input is empty.
    """
    variables = {**os.environ, **(environment or {})}
    with tempfile.TemporaryDirectory() as folder:
        streams = Path(folder)
        for name, _ in _STREAMS:
            (streams / name).touch()
        process = FORKED.Process(
            target=_run, args=(tuple(map(tuple, commands)), streams, variables, cwd or Path.cwd(), umask)
        )
        process.start()
        process.join()
        out, err = ((streams / name).read_bytes().decode() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(commands[-1], process.exitcode or 0, out, err)


def _run(
    commands: Sequence[Sequence[str]], streams: Path, variables: Mapping[str, str], cwd: Path, umask: int
) -> None:
    from esjobs.cli.main import main
    from esjobs.cli.start import program as installed

    for number, (name, flags) in enumerate(_STREAMS):
        os.dup2(os.open(streams / name, flags), number)
        mode = "r" if flags == os.O_RDONLY else "w"
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(cwd)
    if umask >= 0:
        os.umask(umask)
    *before, last = commands
    for command in before:
        main(command, prog_name="esjobs", standalone_mode=False)
    sys.argv = ["esjobs", *last]
    installed()
