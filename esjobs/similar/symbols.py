"""Symbol names of ELF files.

Headers are read by pyelftools, symbol tables as arrays: a file may have a million symbols. Files are not
trusted: sizes are bounded, offsets checked.
"""

import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from esjobs.core.errors import InputError
from esjobs.core.extras import require

MOST_KEPT = 100_000
"""Names kept, those of least hashes: versions of a program keep the same ones."""
MOST_B = 256 * 2**20
"""Bytes read of one table of symbols or names."""
MOST_NAMES_B = 128 * 2**20
"""Bytes of all names of a file; an invalid byte counts four."""
LONGEST = 1024
"""Bytes of a name; longer ones are cut."""
_COMPRESSED = 0x800  # Flag of a section, SHF_COMPRESSED
_MOST_SECTIONS = 20_000
_PROGRAMS = ("ET_EXEC", "ET_DYN")
_TABLES = {"SHT_SYMTAB": "symtab", "SHT_DYNSYM": "dynsym"}
_NO_NAMES = (3, 4)  # STT_SECTION and STT_FILE: symbols that name a section or a source file


class NoProgramError(InputError):
    """File without a fingerprint; the message is the reason."""


@dataclass(frozen=True)
class Symbols:
    """Symbol names of a program; ``symbols_from``: symtab, dynsym or none."""

    names: tuple[str, ...]
    symbols_from: str
    n_symbols: int
    size_b: int

    @property
    def stripped(self) -> bool:
        """True if the full symbol table is missing."""
        return self.symbols_from != "symtab"


def read_symbols(path: Path) -> Symbols:
    """Return the symbol names of an executable or shared library, sorted, without versions.

    Opens regular files only. Raises :class:`NoProgramError` for anything but a readable program,
    :class:`MissingExtraError` without pyelftools. Memory: at most ``MOST_B`` per table.
    """
    descriptor = _opened(path)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NoProgramError("not a regular file")
        if file.read(4) != b"\x7fELF":
            raise NoProgramError("not ELF")
        elf = _elftools("elf.elffile")
        try:
            found = _found(elf.ELFFile(file), file, status.st_size)
        except OSError as error:
            raise NoProgramError(f"unreadable ({(error.strerror or 'error').lower()})") from error
        # what pyelftools raises for bytes that are no ELF beyond its own errors
        except (
            _elftools("common.exceptions").ELFError,
            _elftools("construct").ConstructError,
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            raise NoProgramError("damaged ELF") from error
    kind = next((kind for kind in ("symtab", "dynsym") if found.get(kind)), "none")
    names = sorted(set().union(*found.values()))
    return Symbols(tuple(_sample(names)), kind, len(names), status.st_size)


def _opened(path: Path) -> int:
    try:
        # a pipe or a terminal at this name must not make the scan wait
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise NoProgramError(f"unreadable ({(reason or 'not a file name').lower()})") from error


def _sample(names: list[str]) -> list[str]:
    if len(names) <= MOST_KEPT:
        return names
    # by a hash of the name, so that of two programs the same names are kept
    places = np.array([zlib.crc32(name.encode()) for name in names])
    return [names[index] for index in sorted(np.argsort(places, kind="stable")[:MOST_KEPT].tolist())]


def _elftools(module: str) -> Any:
    return require(f"elftools.{module}", extra="programs", needed_by="a scan of executables")


def _found(elf: Any, file: IO[bytes], size_b: int) -> dict[str, set[str]]:
    if elf["e_type"] not in _PROGRAMS:
        raise NoProgramError("not a program: an object file or a core dump")
    n_sections = elf.num_sections()
    if n_sections > _MOST_SECTIONS:
        raise NoProgramError(f"more than {_MOST_SECTIONS:,} sections")
    headers = [elf._get_section_header(number) for number in range(n_sections)]
    found: dict[str, set[str]] = {}
    room = MOST_NAMES_B
    tables = [(_TABLES[header["sh_type"]], header) for header in headers if header["sh_type"] in _TABLES]
    # System V ABI: a file has one section of each of these types. Many over the same bytes would take hours
    # of reading, from a file of some kilobytes
    if len({kind for kind, _ in tables}) < len(tables):
        raise NoProgramError("several tables of symbols of one kind")
    for kind, header in tables:
        texts = _part(file, headers[header["sh_link"]], size_b)
        entries = _part(file, header, size_b)
        found[kind] = set(_names(entries, texts, elf.elfclass, elf.little_endian, room))
        room -= sum(map(len, found[kind]))
    return found


def _part(file: IO[bytes], header: Any, size_b: int) -> bytes:
    start, length = header["sh_offset"], header["sh_size"]
    if start + length > size_b:
        raise NoProgramError("damaged ELF")
    if header["sh_flags"] & _COMPRESSED:
        raise NoProgramError("a compressed table of symbols")
    if length > MOST_B:
        raise NoProgramError(f"a table of symbols of more than {MOST_B // 2**20} MB")
    file.seek(start)
    return file.read(length)


def _names(entries: bytes, texts: bytes, width: int, little_endian: bool, room: int) -> Iterator[str]:
    """Yield names of a symbol table; raises :class:`NoProgramError` if longer than ``room`` in total."""
    order = "<" if little_endian else ">"
    # System V ABI, symbol table: the name is first, the type the lower half of st_info
    offset, size = (4, 24) if width == 64 else (12, 16)
    layout = np.dtype(
        {"names": ["name", "info"], "formats": [f"{order}u4", "u1"], "offsets": [0, offset], "itemsize": size}
    )
    table = np.frombuffer(entries, dtype=layout, count=len(entries) // size)
    starts = np.unique(table["name"][~np.isin(table["info"] & 15, _NO_NAMES)])
    taken = 0
    for start in starts[starts < len(texts)].tolist():
        end = texts.find(b"\0", start, start + LONGEST)
        raw = texts[start : end if end >= 0 else start + LONGEST].split(b"@", 1)[0]
        name = raw.decode("utf-8", "backslashreplace")[:LONGEST]
        taken += len(name)
        if taken > room:
            raise NoProgramError(f"names of more than {MOST_NAMES_B // 2**20} MB")
        if name:
            yield name
