"""Files that are read at once."""

import gzip
from pathlib import Path

from esjobs.core.errors import InputError
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.opening import GZIP, reading

LARGEST = 64 << 20
"""Bytes of a table; CRIC describes all queues of ATLAS in a tenth of it."""

_CHUNK = 1 << 20


def content(file: Input, largest: int, name: object, remedy: str) -> bytes:
    """Return the bytes of a file, plain or gzip; :class:`InputError` if it is damaged or larger.

    ``largest``: bytes, unpacked. ``name`` and ``remedy`` stand in the message of a larger file.
    """
    pieces, size = [], 0
    with reading(file), file.open("rb") as raw:
        # by its first bytes: many files that end in .gz are not
        zipped = raw.peek(2)[:2] == GZIP
        stream = gzip.GzipFile(fileobj=raw) if zipped else raw
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > largest:
                unpacked = " unpacked" if zipped else ""
                raise InputError(f"{name} is larger than {largest >> 20} MiB{unpacked}{remedy}")
            pieces.append(chunk)
    return b"".join(pieces)


def decoded(data: bytes, name: object) -> str:
    """Return bytes as text; :class:`InputError` for what is not UTF-8."""
    try:
        # with or without the mark that editors of Windows put in front
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text at byte {error.start}; convert it to UTF-8") from error


def text_of(file: Input, path: Path, what: str) -> str:
    """Return the text of a file, plain or gzip; :class:`InputError` beyond ``LARGEST`` or if not UTF-8.

    ``path``: as messages name it; ``what``: the contents that a larger file does not have.
    """
    return decoded(content(file, LARGEST, file, f", too large for a table of {what}"), path)
