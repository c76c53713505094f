"""Programs compiled for tests, and hostile ones made by hand."""

import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

SOURCE = """
#include <stdio.h>
double {name}_force(double x) {{ return x * 2; }}
double {name}_energy(double x) {{ return x * x; }}
double {name}_step(double x) {{ return {name}_force(x) + {name}_energy(x); }}
{more}
int main(void) {{ printf("%f\\n", {name}_step(1.0)); return 0; }}
"""


def compiled(folder: Path, name: str, version: int = 1, *, strip: bool = False, static: bool = False) -> Path:
    """An executable of gcc: of version 2 it has one function more."""
    gcc = shutil.which("gcc")
    assert gcc, "tests of symbols need gcc (Debian: gcc)"
    folder.mkdir(parents=True, exist_ok=True)
    source, program = folder / f"{name}{version}.c", folder / name
    more = "".join(f"int {name}_extra_{i}(void) {{ return {i}; }}\n" for i in range(version - 1))
    source.write_text(SOURCE.format(name=name, more=more))
    flags = ["-s"] if strip else []
    flags += ["-static"] if static else []
    subprocess.run([gcc, "-O0", *flags, "-o", str(program), str(source)], check=True)
    source.unlink()
    return program


def elf(names: Sequence[bytes], *, text_size: int | None = None, symbols: int | None = None) -> bytes:
    """A little shared library of 64 bits with a table of symbols and nothing else.

    ``text_size``: the size that the header of the names claims; ``symbols``: that of the symbols.
    """
    texts = b"\0" + b"".join(name + b"\0" for name in names)
    entries, at = b"\0" * 24, 1
    for name in names:
        entries += struct.pack("<IBBHQQ", at, 2, 0, 1, 0, 0)
        at += len(name) + 1
    header_size = 64
    start = header_size + len(entries) + len(texts)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(b"\x7fELF\x02\x01\x01" + b"\0" * 9, 3, 62, 1, 0, 0, start, 0, 64, 56, 0, 64, 3, 0),
    )

    def section(kind: int, offset: int, size: int, link: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, size, link, 0, 8, 24 if kind == 2 else 0)

    sections = section(0, 0, 0, 0)
    sections += section(2, header_size, len(entries) if symbols is None else symbols, 2)
    sections += section(3, header_size + len(entries), len(texts) if text_size is None else text_size, 0)
    return head + entries + texts + sections
