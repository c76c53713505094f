"""Fingerprints of real executables, and of files that mean harm."""

import os
import shutil
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esjobs
from esjobs.core.errors import InputError, UsageError
from esjobs.similar import scan as scanning
from esjobs.similar import symbols as reading
from esjobs.similar.programs import unpacked
from esjobs.similar.symbols import NoProgramError, read_symbols
from esjobs.store.base import JobStore
from tests.conftest import memory_session
from tests.messages import raised
from tests.similar.programs import compiled, elf


def rows(session: esjobs.Session) -> dict[str, dict]:  # type: ignore[type-arg]
    return {row["name"]: row for row in session.tables.executables().rows.to_pylist()}


def test_a_compiled_program_has_its_functions(tmp_path: Path) -> None:
    found = read_symbols(compiled(tmp_path, "md", 3))
    assert {"md_force", "md_energy", "md_step", "md_extra_0", "md_extra_1", "main", "printf"} <= set(
        found.names
    )
    assert (found.symbols_from, found.stripped) == ("symtab", False)
    # the source file is a symbol, too, and no name of the program
    assert not any(name.endswith(".c") for name in found.names)


def test_stripped_programs_are_said_so(tmp_path: Path) -> None:
    shared = read_symbols(compiled(tmp_path / "shared", "md", strip=True))
    assert (shared.symbols_from, shared.stripped) == ("dynsym", True)
    assert "printf" in shared.names
    assert "md_force" not in shared.names
    static = read_symbols(compiled(tmp_path / "static", "md", strip=True, static=True))
    assert (static.symbols_from, static.stripped, static.names) == ("none", True, ())


def test_names_are_those_of_nm(tmp_path: Path) -> None:
    """A second implementation: binutils."""
    nm = shutil.which("nm")
    assert nm, "needs nm (Debian: binutils)"
    program = compiled(tmp_path, "md")
    listed: set[str] = set()
    for option in ("-a", "-D"):
        text = subprocess.run([nm, option, str(program)], capture_output=True, text=True, check=True).stdout
        split = (line.split() for line in text.splitlines())
        # the letter a: absolute, which source files are, one of them without a name
        listed |= {words[-1].split("@")[0] for words in split if "a" not in words[-2:]}
    sections = {name for name in listed if name.startswith(".")}
    assert set(read_symbols(program).names) == listed - sections


@pytest.mark.parametrize("program", ["/bin/sh", "/bin/ls", "/usr/bin/env"])
def test_programs_of_the_system_are_read(program: str) -> None:
    found = read_symbols(Path(os.path.realpath(program)))
    assert found.stripped
    assert found.n_symbols == len(found.names) > 10


def test_what_was_made_by_hand_is_read(tmp_path: Path) -> None:
    """And names that are no text, too long, empty, or versioned."""
    path = tmp_path / "made"
    path.write_bytes(elf([b"plain", b"\xff\x1b[31m", b"memcpy@@GLIBC_2.14", b"", b"x" * 5000]))
    found = read_symbols(path)
    assert found.names == ("\\xff\x1b[31m", "memcpy", "plain", "x" * reading.LONGEST)


HARMFUL = {
    "empty": (b"", "not ELF"),
    "script": (b"#!/bin/sh\n", "not ELF"),
    "magic": (b"\x7fELF", "damaged ELF"),
    "header": (elf([b"a"])[:40], "damaged ELF"),
    "truncated": (elf([b"a", b"b"])[:-10], "damaged ELF"),
    "names beyond the end": (elf([b"a"], text_size=2**60), "damaged ELF"),
    "symbols beyond the end": (elf([b"a"], symbols=2**63), "damaged ELF"),
    "object": (
        elf([b"a"])[:16] + b"\x01\x00" + elf([b"a"])[18:],
        "not a program: an object file or a core dump",
    ),
    "sections": (elf([b"a"])[:60] + b"\xff\xfe" + elf([b"a"])[62:], "more than 20,000 sections"),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_harmful_files_are_refused(tmp_path: Path, name: str) -> None:
    content, reason = HARMFUL[name]
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NoProgramError) as told:
        read_symbols(path)
    assert str(told.value) == reason


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=12), st.integers(0, 450))
def test_damage_anywhere_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], length: int
) -> None:
    content = bytearray(elf([b"one", b"two", b"three"]))
    for place, value in changes:
        if place < len(content):
            content[place] = value
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(bytes(content[: max(length, 4)]))
    try:
        found = read_symbols(path)
    except NoProgramError:
        return
    assert found.n_symbols >= len(found.names)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=600))
def test_bytes_of_any_kind_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes"
    path.write_bytes(b"\x7fELF" + content)
    with suppress(NoProgramError):
        assert read_symbols(path).size_b == len(content) + 4


def test_of_many_names_versions_keep_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_KEPT", 50)
    kept = []
    for version in range(2):
        path = tmp_path / str(version)
        path.write_bytes(elf([b"name_%d" % i for i in range(version * 20, 1000 + version * 20)]))
        found = read_symbols(path)
        assert (found.n_symbols, len(found.names)) == (1000, 50)
        kept.append(set(found.names))
    assert len(kept[0] & kept[1]) >= 45


def test_names_that_overlap_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every symbol points into one long text: their names would be longer than the file by far."""
    monkeypatch.setattr(reading, "MOST_NAMES_B", 10_000)
    path = tmp_path / "overlap"
    content = bytearray(elf([b"x" * 100] * 300))
    for number in range(1, 301):
        content[64 + 24 * number : 68 + 24 * number] = number.to_bytes(4, "little")
    path.write_bytes(bytes(content).replace(b"\0x", b"xx"))
    with raised(NoProgramError):
        read_symbols(path)


def test_names_count_as_they_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte that is no text is four, and no name is longer than another because of it."""
    path = tmp_path / "bytes"
    path.write_bytes(elf([b"a" + b"\xff" * 2000, b"b" + b"\xff" * 2000]))
    assert [len(name) for name in read_symbols(path).names] == [reading.LONGEST] * 2
    monkeypatch.setattr(reading, "MOST_NAMES_B", 2 * reading.LONGEST - 1)
    with raised(NoProgramError):
        read_symbols(path)


def test_both_tables_share_the_room_for_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "both"
    path.write_bytes(with_tables([b"x" * 600], [2, 11]))
    assert read_symbols(path).n_symbols == 1
    monkeypatch.setattr(reading, "MOST_NAMES_B", 1000)
    with raised(NoProgramError):
        read_symbols(path)


def with_tables(names: list[bytes], kinds: list[int]) -> bytes:
    """A file with a header of a table of symbols for each of ``kinds``, all of them over the same bytes."""
    content = elf(names)
    null, table, text = (content[place:][:64] for place in (-192, -128, -64))
    headers = [table[:4] + kind.to_bytes(4, "little") + table[8:] for kind in kinds]
    linked = [each[:40] + (len(kinds) + 1).to_bytes(4, "little") + each[44:] for each in headers]
    head = content[:60] + (len(kinds) + 2).to_bytes(2, "little") + content[62:-192]
    return head + null + b"".join(linked) + text


@pytest.mark.parametrize("kind", [2, 11])
def test_a_second_table_over_the_same_bytes_is_refused(tmp_path: Path, kind: int) -> None:
    """Thousands of them in some kilobytes would be thousands of readings."""
    path = tmp_path / "many"
    path.write_bytes(with_tables([b"a", b"b"], [kind] * 2000))
    with raised(NoProgramError):
        read_symbols(path)


def test_a_compressed_table_is_not_taken_for_names(tmp_path: Path) -> None:
    content = bytearray(elf([b"alpha"]))
    # flags of the section of names
    content[-64 + 8 : -64 + 16] = (0x800).to_bytes(8, "little")
    path = tmp_path / "compressed"
    path.write_bytes(bytes(content))
    with raised(NoProgramError):
        read_symbols(path)


def test_what_is_kept_at_a_time_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By bytes, too, for 100 files may be 10 GB of names."""
    for name in "abc":
        (tmp_path / name).write_bytes(elf([name.encode() * 50]))
    monkeypatch.setattr(scanning, "_PER_STEP_B", 1)
    steps: list[int] = []
    publish = scanning._publish

    def counted(store: JobStore, rows: list[dict[str, Any]], counts: Counter[str]) -> None:
        steps.append(len(rows))
        publish(store, rows, counts)

    monkeypatch.setattr(scanning, "_publish", counted)
    with memory_session() as session:
        assert session.similar.scan(tmp_path).counts["stored"] == 3
    assert steps == [1, 1, 1, 0]


def test_a_large_file_is_read_in_part(tmp_path: Path) -> None:
    """2 GB of which the tables are the first bytes; the sections are moved behind a hole."""
    content = elf([b"alone"])
    tables, start = content[: -3 * 64], 2**31
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(tables[:40] + start.to_bytes(8, "little") + tables[48:])
        file.seek(start)
        file.write(content[-3 * 64 :])
    assert read_symbols(path).names == ("alone",)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "apps"
    compiled(root / "a", "md", 1)
    compiled(root / "a", "qc", 1)
    compiled(root / "b", "st", 1, strip=True, static=True)
    (root / "link").symlink_to(root / "a" / "md")
    (root / "nowhere").symlink_to(root / "absent")
    (root / "round").symlink_to(root / "round")
    (root / "a" / "up").symlink_to(root)
    (root / "readme").write_text("text")
    (root / "\x1b[31mred\n").write_bytes(elf([b"f"]))
    os.mkfifo(root / "pipe")
    (root / "null").symlink_to("/dev/null")
    return root


def test_a_scan_balances_its_books(tree: Path) -> None:
    with memory_session() as session:
        report = session.similar.scan([tree, tree / "a"], module="chem/1")
        assert report.dropped == {
            "already scanned": 3,
            "a broken or circular link": 2,
            "not ELF": 1,
            "not a regular file": 2,
            "a link to a folder, not followed": 2,
        }
        assert report.counts == {"stored": 4, "updated": 0, "stripped": 1, "without symbols": 1}
        assert report.rows_in == report.rows_out + report.n_dropped
        stored = rows(session)
        assert set(stored) == {"md", "qc", "st", "\x1b[31mred\n"}
        assert stored["md"]["path"] == str((tree / "a" / "md").resolve())
        assert stored["md"]["module"] == "chem/1"
        assert "md_force" in unpacked(stored["md"]["packed"])
        assert (stored["st"]["packed"], stored["st"]["digest"], stored["st"]["n_symbols"]) == (None, None, 0)
        again = session.similar.scan(tree / "a")
        assert (again.counts["stored"], again.counts["updated"]) == (0, 2)
        assert rows(session)["md"]["module"] is None
        assert len(rows(session)) == 4


def test_what_cannot_be_scanned_is_said(tmp_path: Path) -> None:
    with memory_session() as session:
        with raised(InputError):
            session.similar.scan(tmp_path / "absent")
        with raised(UsageError):
            session.similar.scan("")
        with raised(UsageError):
            session.similar.scan(tmp_path, module="\x1b")
        report = session.similar.scan(tmp_path)
        assert (report.rows_in, report.rows_out) == (0, 0)
