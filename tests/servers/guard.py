"""Stands between the tests and one server process, so that the server dies with the tests, however they die.

Run as a program, by path: ``guard.py FOLDER UID GID COMMAND...``; UID and GID are numbers or ``-``. The tests
hold the other end of its standard input and write a letter: ``t`` ends the server gracefully, ``k`` kills it.
When the pipe closes or the parent changes, which also happens when the tests are killed with signal 9, the
server and all its children are killed and the folder is removed. The guard leaves when nothing of the server
is left.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import time

_POLL_S = 0.2
_LAST_PROCESS_S = 10.0
_SIGNALS = {b"t": signal.SIGTERM, b"k": signal.SIGKILL}


def main(arguments: list[str]) -> None:
    """Run the command until it ends, or is told to, or the tests are gone."""
    folder, user, group, *command = arguments
    parent = os.getppid()
    server = subprocess.Popen(
        command,
        user=None if user == "-" else int(user),
        group=None if group == "-" else int(group),
        extra_groups=None if user == "-" else [],
        stdin=subprocess.DEVNULL,
        process_group=0,
    )
    alone = False
    while server.poll() is None and not alone:
        readable, _, _ = select.select([0], [], [], _POLL_S)
        order = os.read(0, 1) if readable else None
        alone = order == b"" or os.getppid() != parent
        if order in _SIGNALS:
            _signal(server.pid, _SIGNALS[order])
    _signal(server.pid, signal.SIGKILL)  # the start script of Elasticsearch may end before the server does
    server.wait()
    deadline = time.monotonic() + _LAST_PROCESS_S
    while _signal(server.pid, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    if alone:
        shutil.rmtree(folder, ignore_errors=True)


def _signal(group: int, number: int) -> bool:
    """Send a signal to the group; whether there was anybody to get it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
