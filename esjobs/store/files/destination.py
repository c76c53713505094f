"""Atomic writes of files by name.

A regular file is written beside its name and renamed when complete; only ``kill -9`` leaves
``.NAME.esjobs-unfinished-XXXXXXXX``. Links are followed and stay. Devices, pipes and terminals are written
directly.
"""

import contextlib
import errno
import io
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

from esjobs.core.errors import InputError, UsageError
from esjobs.store.files.sharing import file_mode

STANDARD_OUTPUT = "-"
UNFINISHED = ".esjobs-unfinished-"
"""Mark in the names of incomplete files."""

# Signature of a DuckDB database behind its checksum, and its offset
_MAGIC, _MAGIC_AT = b"DUCK", 8

# Kinds that are never written to, and what to do instead
_REFUSED = {
    stat.S_IFDIR: "it is a folder; use a file in it",
    stat.S_IFSOCK: "it is a socket; use a file, or pipe standard output (-)",
    stat.S_IFBLK: "it is a disk; use a file",
}


@contextlib.contextmanager
def writing(out: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a stream into a file, device or pipe (``-``: standard output), complete at the end.

    An exception keeps the old file. Mode and, if permitted, owner are kept; hard links keep the old content.
    Raises :class:`InputError`.
    """
    name = os.fspath(out)
    try:
        with _standard_output() if name == STANDARD_OUTPUT else _opened(name) as stream:
            yield stream
    except OSError as error:
        raise unwritable(name, error) from error


@contextlib.contextmanager
def writing_text(out: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open like :func:`writing`, for text in UTF-8; line ends are unchanged."""
    with writing(out) as stream:
        if os.fspath(out) == STANDARD_OUTPUT:
            yield sys.stdout
            return
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        try:
            yield text
            text.flush()
        finally:
            # otherwise the wrapper closes the stream when it goes away, before it has been renamed
            with contextlib.suppress(OSError, ValueError):
                text.detach()


@contextlib.contextmanager
def writing_binary(out: str | os.PathLike[str], what: str) -> Iterator[BinaryIO]:
    """Open like :func:`writing`, for binary data. Raises :class:`UsageError` on a terminal."""
    if os.fspath(out) == STANDARD_OUTPUT and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError(f"{what} is not text for a terminal; use --out FILE, or a pipe")
    with writing(out) as stream:
        yield stream


def unwritable(out: str, error: OSError) -> Exception:
    """Return the error for failed output; a closed pipe (``| head``) is passed on."""
    if isinstance(error, BrokenPipeError):
        return error
    where = "standard output" if out == STANDARD_OUTPUT else out
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "free disk space, or use another path" if full else "use a writable path"
    return InputError(f"cannot write {where}: {error.strerror or error}; {remedy}")


@contextlib.contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    if sys.stdout is None:  # the program was started without one
        raise InputError("cannot write standard output: it is closed; use --out FILE")
    sys.stdout.flush()
    yield sys.stdout.buffer


@contextlib.contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    try:
        number = _descriptor(name)
        if number is not None:
            status, handle = os.fstat(number), _copy(number, name)
        else:
            status, handle = os.stat(name), None
    except FileNotFoundError:
        status, handle = None, None
    except ValueError as error:
        raise InputError(f"cannot write {name!r}: {error}; use a different name") from error
    if status is not None and (reason := _REFUSED.get(stat.S_IFMT(status.st_mode))):
        raise InputError(f"cannot write {name}: {reason}")
    # a regular file behind a descriptor is written in place: the shell that opened it keeps that file
    if handle is None and (status is None or stat.S_ISREG(status.st_mode)):
        _refuse_databases(name)
        with _replacing(name, status) as stream:
            yield stream
        return
    if handle is None:
        # without O_CREAT and O_TRUNC: a device or pipe exists, and a terminal must not become ours
        handle = os.open(name, os.O_WRONLY | os.O_NOCTTY)
    with os.fdopen(handle, "wb") as stream:
        yield stream


def refuse_inputs(out: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Raise :class:`InputError` if the output is one of the inputs."""
    for path in inputs:
        # a missing output is none of the inputs
        with contextlib.suppress(OSError, ValueError):
            if os.path.samefile(out, path) and stat.S_ISREG(os.stat(out).st_mode):
                raise InputError(f"cannot write {os.fspath(out)}: it is an input file; use a different file")


def write_secret(path: str | os.PathLike[str], text: str) -> None:
    """Create a file readable by its owner only; removed on failure.

    Raises :class:`FileExistsError` if the name exists, :class:`InputError` on other errors.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                # a umask may have taken rights away from the owner too
                os.fchmod(file.fileno(), 0o600)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
    except FileExistsError:
        raise
    except OSError as error:
        raise unwritable(os.fspath(path), error) from error


def _refuse_databases(name: str) -> None:
    # the log of a database has no signature of its own
    for path in {name, name.removesuffix(".wal")}:
        with contextlib.suppress(OSError), open(path, "rb") as stream:
            if stream.read(_MAGIC_AT + len(_MAGIC)).endswith(_MAGIC):
                kind = "it is" if path == name else "it belongs to"
                raise InputError(
                    f"cannot write {name}: {kind} a DuckDB database, possibly a store; use a different file"
                )


@contextlib.contextmanager
def _replacing(name: str, old: os.stat_result | None) -> Iterator[BinaryIO]:
    if not name or name.endswith(os.sep):
        raise InputError(f"cannot write '{name}': not a file name; use a different name")
    # a link stays a link: what it points to is replaced
    target = os.path.realpath(name)
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    folder, base = os.path.split(target)
    # shortened: a name has at most 255 bytes
    beside = Path(folder, f".{base[:40]}{UNFINISHED}{secrets.token_hex(4)}")
    # readable by its owner only until the final mode is set
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            if old is None:
                os.fchmod(handle, file_mode())
            else:
                _like(handle, old)
            yield stream
            stream.flush()
            # some file systems tell only now that the disk is full
            os.fsync(handle)
        # atomic: readers see the old file or the new one
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _like(handle: int, old: os.stat_result) -> None:
    """Copy owner, group and mode, as far as permitted."""
    mode = stat.S_IMODE(old.st_mode) & 0o777
    with contextlib.suppress(OSError):
        # only root may give files away; group and mode are tried on their own
        os.fchown(handle, old.st_uid, -1)
    try:
        os.fchown(handle, -1, old.st_gid)
    except OSError:
        # the rights of the old group are not for the members of another one
        mode = mode & 0o707 | (mode & 0o007) << 3
    os.fchmod(handle, mode)


def _descriptor(name: str) -> int | None:
    """Return the descriptor behind ``/dev/stdout``, ``/dev/fd/N`` or a link to them.

    Opening such a file by name would truncate it, or replace it under the shell.
    """
    for _ in range(40):  # the system itself follows no more links
        folder = os.path.realpath(os.path.dirname(name) or ".")
        last = os.path.basename(name)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") and last.isascii() and last.isdigit():
            return int(last)
        if not os.path.islink(name):
            return None
        name = os.path.join(folder, os.readlink(name))
    return None


def _copy(number: int, name: str) -> int:
    """Duplicate a descriptor that the program was started with; refuse its own files."""
    # Python opens its own files close-on-exec; what the shell handed over is inheritable
    if stat.S_ISREG(os.fstat(number).st_mode) and not os.get_inheritable(number):
        raise InputError(f"cannot write {name}: it was not open when the program started; use a file")
    if sys.stdout is not None:
        sys.stdout.flush()
    return os.dup(number)
