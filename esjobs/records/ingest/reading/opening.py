"""Opens an input file: what it is follows from its first bytes, never from its name alone."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from esjobs.core.errors import InputError
from esjobs.records.ingest.reading.inputs import Input

ACCEPTED = "accepted: CSV, JSON lines (both UTF-8, plain or gzip) or Parquet"
Container = Literal["csv", "jsonl", "parquet"]

# First bytes of files that are often handed over by mistake.
_FOREIGN = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\xfd7zXZ\x00", "xz-compressed"),
    (b"BZh", "bzip2-compressed"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"\x00\x00\xfe\xff", "UTF-32 text"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x89HDF", "an HDF5 file"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
)
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
_SNIFF = 4096


@dataclass(frozen=True)
class Opened:
    """A file whose kind is known. ``stream`` yields plain bytes without the byte order mark."""

    container: Container
    stream: BinaryIO


@contextmanager
def reading(file: Input, where: str = "") -> Iterator[None]:
    """Translate whatever reading a damaged file raises into one :class:`InputError` that names it."""
    try:
        yield
    except EOFError as error:
        raise InputError(f"{file.name}{where}: the gzip stream is truncated; copy the file again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{file.name}{where}: invalid gzip ({error}); copy the file again") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{file.name}{where}: cannot be read ({reason}); check the file") from error


@contextmanager
def opened(file: Input) -> Iterator[Opened]:
    """Open a file for reading and recognise it, or raise :class:`InputError` that says what it is instead."""
    if isinstance(file, Path) and file.is_dir():
        raise InputError(f"{file} is a directory; list the files in it")
    if isinstance(file, Path) and not file.exists():
        raise InputError(f"{file} not found; check the path")
    with reading(file):
        raw = file.open("rb")
    with raw:
        with reading(file):
            zipped = raw.peek(2)[:2] == GZIP
            stream: io.BufferedReader[Any] = (
                io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 16) if zipped else raw
            )
            head = stream.peek(_SNIFF)
        container = _recognise(file.name, head, zipped)
        if head.startswith(BOM):
            # Excel writes it before CSV
            stream.read(len(BOM))
        yield Opened(container, stream)


def require_readable(file: Input) -> None:
    """Raise :class:`InputError` when the first bytes show that a file is none of the accepted kinds."""
    with opened(file):
        pass


class OfText:
    """Base of sources whose streams are checked by their first bytes."""

    def accept(self, file: Input) -> None:
        """Raise unless a file begins like one of the accepted kinds."""
        require_readable(file)


def _recognise(name: str, head: bytes, zipped: bool) -> Container:
    if not head:
        raise InputError(f"{name} is empty; {ACCEPTED}")
    if head.startswith(b"PAR1"):
        if zipped:
            raise InputError(f"{name} is a Parquet file in gzip; unpack it ({ACCEPTED})")
        return "parquet"
    for magic, kind in _FOREIGN:
        if head.startswith(magic):
            raise InputError(f"{name} is {kind}; {ACCEPTED}")
    if b"\x00" in head.partition(b"\n")[0]:
        raise InputError(f"{name} is binary or UTF-16, not text; {ACCEPTED}")
    text = head.removeprefix(BOM).lstrip()
    if text.startswith(b"["):
        raise InputError(f"{name} is a JSON array; write one object per line (jq -c '.[]'); {ACCEPTED}")
    return "jsonl" if text.startswith(b"{") else "csv"
