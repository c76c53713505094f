"""Small tables in text, read at once."""

import gzip
from pathlib import Path

from esjobs.core.errors import InputError
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.opening import GZIP, reading

LARGEST = 64 << 20
"""Bytes; CRIC describes all queues of ATLAS in a tenth of it."""


def text_of(file: Input, path: Path, what: str) -> str:
    """Return the text of a file, plain or gzip; :class:`InputError` beyond ``LARGEST`` or if not UTF-8.

    ``path``: as messages name it; ``what``: the contents that a larger file does not have.
    """
    with reading(file), file.open("rb") as raw:
        zipped = raw.peek(2)[:2] == GZIP
        content = (gzip.GzipFile(fileobj=raw) if zipped else raw).read(LARGEST + 1)
    if len(content) > LARGEST:
        unpacked = " unpacked" if zipped else ""
        raise InputError(
            f"{file} is larger than {LARGEST >> 20} MiB{unpacked}, too large for a table of {what}"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text at byte {error.start}; convert it to UTF-8") from error
