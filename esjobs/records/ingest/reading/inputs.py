"""Inputs of a command, which can be opened more than once.

A regular file is read in place. Standard input, a pipe or a device gives its bytes once, and a load is named
by its contents before its first row is stored: such a stream is copied into an unnamed temporary file.
"""

import io
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

from esjobs.core.errors import InputError, UsageError

_CHUNK = 1 << 20
# Bytes after which the room on the disk is looked at again.
_LOOKS_EVERY = 64 << 20

# What a stream leaves free on the disk: 1 GiB, or a tenth of a small one.
_SPARED_BYTES, _SPARED_SHARE = 1 << 30, 0.1

_STDIN = re.compile(r"-|/dev/stdin|/dev/fd/0|/proc/(self|\d+)/fd/0")
_DESCRIPTOR = re.compile(r"/dev/fd/\d+|/proc/(self|\d+)/fd/\d+")


class Input(Protocol):
    """A file, or what a stream held: bytes under a name, to be read as often as needed."""

    @property
    def name(self) -> str:
        """The name without folder, for messages and for the origin of rows."""

    def open(self, mode: Literal["rb"], /) -> io.BufferedReader:
        """The bytes from the first one on; one reader at a time."""


@dataclass(frozen=True)
class Spooled:
    """A stream that was read to its end, kept in a temporary file without a name."""

    name: str
    _file: IO[bytes]
    called: str = ""
    """Name that the user entered, if longer than ``name``."""

    def __str__(self) -> str:
        return self.called or self.name

    def open(self, mode: Literal["rb"], /) -> io.BufferedReader:
        """The bytes from the first one on; one reader at a time."""
        # a duplicate of the descriptor can be closed by its reader; it shares the position of the original
        reader = open(os.dup(self._file.fileno()), mode)  # noqa: SIM115  closed by the caller
        reader.seek(0)
        return reader


Accept = Callable[[Input], None]
"""Raises when the first bytes of a stream show that the rest need not be read."""


@contextmanager
def inputs(
    paths: Sequence[Path], accept: Accept | None = None, *, most: int | None = None
) -> Iterator[list[Input]]:
    """Yield everything to be read; what is no regular file is read to its end first, up to ``most`` bytes.

    ``-`` is standard input. Unnamed streams are called ``stdin``, ``pipe1``, ``pipe2``, ...: the same
    contents are the same load. Raises :class:`UsageError` if standard input is named twice,
    :class:`InputError` for a stream that cannot be read or kept. A path that does not exist is left to its
    reader.
    """
    if sum(_STDIN.fullmatch(str(path)) is not None for path in paths) > 1:
        raise UsageError("standard input is specified more than once; it can be read only once")
    readable: list[Input] = []
    pipes = 0
    with ExitStack() as stack:
        for path in paths:
            if str(path) != "-" and not _is_stream(path):
                readable.append(path)
                continue
            called = ""
            if _STDIN.fullmatch(str(path)):
                name = "stdin"
            elif _DESCRIPTOR.fullmatch(str(path)):
                pipes += 1
                name = f"pipe{pipes}"
            else:
                name, called = path.name, str(path)
            spooled = Spooled(name, stack.enter_context(_temporary(name)), called)
            with _stream(path, name) as stream:
                _copy(stream, spooled, accept, most)
            readable.append(spooled)
        yield readable


def _is_stream(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _stream(path: Path, name: str) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed; specify a file or use a pipe")
        yield sys.stdin.buffer
        return
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {name} ({path}): {error.strerror}; use a file or a pipe") from error
    with stream:
        yield stream


def _temporary(name: str) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="esjobs-", buffering=0)
    except OSError as error:
        raise _no_room(name, 0, error.strerror or str(error)) from error


def _copy(stream: IO[bytes], spooled: Spooled, accept: Accept | None, most: int | None) -> None:
    size = looked = 0
    file = spooled._file
    while (most is None or size <= most) and (chunk := _chunk(stream, spooled.name)):
        if size - looked >= _LOOKS_EVERY or not size:
            looked = size
            _spare(spooled.name, size)
        try:
            left = memoryview(chunk)
            while left:
                # an unbuffered file may take a part of what it is given
                left = left[file.write(left) :]
        except OSError as error:
            raise _no_room(spooled.name, size, error.strerror or str(error)) from error
        # a short stream is over already: its reader says better what is wrong with it
        if not size and accept is not None and len(chunk) == _CHUNK:
            accept(spooled)
            file.seek(0, os.SEEK_END)
        size += len(chunk)


def _chunk(stream: IO[bytes], name: str) -> bytes:
    try:
        return stream.read(_CHUNK)
    except OSError as error:
        raise InputError(f"{name} cannot be read ({error.strerror}); check its source") from error


def _spare(name: str, size: int) -> None:
    usage = shutil.disk_usage(tempfile.gettempdir())
    if usage.free < min(_SPARED_BYTES, _SPARED_SHARE * usage.total):
        raise _no_room(name, size, "the disk is nearly full")


def _no_room(name: str, size: int, reason: str) -> InputError:
    return InputError(
        f"cannot buffer {name} in {tempfile.gettempdir()} ({reason}, after {size:,} bytes); set TMPDIR to a "
        "larger directory, or write the data to a file"
    )
