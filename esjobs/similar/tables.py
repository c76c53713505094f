"""What is kept of executables: the names of their symbols, by which programs are told to be alike."""

from esjobs.core.tables import Table, column, columns

SYMBOLS_FROM = ("symtab", "dynsym", "none")
"""Where names are from: all symbols; those for linking alone, of a stripped file; there are none."""

EXECUTABLES = Table(
    "executables",
    "executables and libraries with the names of their symbols, a row a file",
    "executable",
    (
        column("executable", "keyword", "follows from the path; scanned again it is replaced"),
        column("path", "keyword", "the file, links resolved; bytes that are no text as escapes"),
        column("name", "keyword", "last part of the path"),
        column("module", "keyword", "module that provides it, as given with the scan"),
        column("symbols_from", "keyword", "symtab; dynsym: stripped; none: no names", values=SYMBOLS_FROM),
        column("stripped", "boolean", "whether it has no table of all symbols"),
        column("n_symbols", "integer", "different names of symbols"),
        column("n_kept", "integer", "of these those that are kept: those of the least hashes"),
        column("digest", "keyword", "hash of the names; null without any"),
        column("size_b", "number", "size of the file", "B"),
        column("packed", "bytes", "the names, sorted, separated by NUL, in UTF-8, compressed by zlib"),
        column("scanned_at", "time", "when it was scanned", "UTC"),
    ),
    entered=True,
    made_by="symbols scan",
    shown=columns("name module symbols_from stripped n_symbols path"),
    order=columns("name path"),
)
