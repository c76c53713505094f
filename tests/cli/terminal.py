"""Running the program on a pseudo-terminal."""

import os
import re
import subprocess
import sys


def on_terminal(width: int, *arguments: str, exit_code: int = 0) -> list[str]:
    """Run the program on a pseudo-terminal; what it shows, without control sequences."""
    import pty

    screen, inside = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "esjobs", *arguments],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, "COLUMNS": str(width)},
    ) as process:
        os.close(inside)
        said = _all_of(screen)
    os.close(screen)
    assert process.returncode == exit_code
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode().replace("\r\n", "\n"))
    return [line for line in text.splitlines() if line.strip()]


def _all_of(screen: int) -> bytes:
    said = b""
    while True:
        try:
            piece = os.read(screen, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            return said
        if not piece:
            return said
        said += piece
