"""Copies of a store that is being written: their readers neither wait for a writer nor delay one."""

import contextlib
import fcntl
import glob
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

from esjobs.core.fields import JOB_FIELDS, Field
from esjobs.core.personal import AUTHORS, is_free_text, kind_of_names
from esjobs.core.tables import Table
from esjobs.store.duck.connection import quiet
from esjobs.store.duck.errors import store_error
from esjobs.store.duck.schema import quote
from esjobs.store.duck.spill import is_running
from esjobs.store.duck.turns import take_turn

# Request of Linux to share the blocks of a file with a copy (XFS, btrfs)
_FICLONE = 0x40049409

# Texts about machines that quote records, files or errors, by table
_QUOTING = {
    "rejects": ("detail", "excerpt"),
    "loads": ("files", "filled"),
    "nights": ("reason",),
    "night_steps": ("reason", "notes"),
    # who acknowledged an incident
    "today_days": ("mark",),
}

State = tuple[tuple[int, int, int], ...]
"""Identity of a state of a file and of its log."""


def state_of(file: Path) -> State:
    """Return the state of a store and of its log, without opening them; empty if there is none."""
    found = []
    for each in _parts(file):
        with contextlib.suppress(OSError):
            stat = each.stat()
            # inode, size and time: a file that was replaced has another inode even if its time is kept
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def copies_folder(file: Path) -> Path:
    """Make a private folder for copies beside a store, or a temporary one where nothing may be written.

    Folders of killed processes are removed.
    """
    prefix = f".{file.name}.web-"
    for old in file.parent.glob(f"{glob.escape(prefix)}*"):
        process = old.name.removeprefix(prefix).partition("-")[0]
        # left by a killed process: copies are as large as the store
        if process.isdigit() and not is_running(int(process)):
            shutil.rmtree(old, ignore_errors=True)
    try:
        return Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=file.parent))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="esjobs-web-"))


def copy_store(file: Path, folder: Path, wait_s: float) -> tuple[Path, State]:
    """Copy a store with its log into a folder, in a turn of readers; its path and the copied state.

    Costs one reading of the file, or nearly nothing where the file system shares blocks. A writer waits so
    long. Raises :class:`StoreBusyError` if one still has the file after ``wait_s`` seconds.
    """
    copy = folder / f"{secrets.token_hex(8)}.duckdb"
    with _translated(file):
        # the lock of a reader keeps writers out; other options would clash with sessions of this process
        opened = take_turn(lambda: duckdb.connect(str(file), read_only=True), file, wait_s, read_only=True)
        try:
            state = state_of(file)
            for source, target in zip(_parts(file), _parts(copy), strict=True):
                if source.exists():
                    _clone(source, target)
        finally:
            opened.close()
    return copy, state


def remove_copy(copy: Path) -> None:
    """Delete a copy; who still reads it reads on."""
    for each in _parts(copy):
        each.unlink(missing_ok=True)


def hide_people(copy: Path, tables: Iterable[Table]) -> None:
    """Remove everything from a copy that names people: columns, notes, texts that may quote them.

    Users, projects and files become null; programs lose their folders; ids with letters become digests.
    Texts go from rows that have, or had, a person. Which columns these are says
    :mod:`esjobs.core.personal`.
    """
    # new for every copy: digests of two copies cannot be compared, nor looked up
    salt = secrets.token_hex(16)
    with _translated(copy), contextlib.closing(quiet(duckdb.connect(str(copy)))) as opened:
        for name in ("main.jobs", "internal.replaced_jobs"):
            _update(opened, name, dict(_of_jobs(salt)))
        present = {name for (name,) in opened.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        for table in tables:
            if table.name in present:
                _update(opened, f"results.{quote(table.name)}", dict(_of_table(table, salt)))


def _of_jobs(salt: str) -> Iterator[tuple[str, str]]:
    yield from _of_columns(JOB_FIELDS, salt)
    yield "origin_file", "NULL"


def _of_table(table: Table, salt: str) -> Iterator[tuple[str, str]]:
    kinds = {column.name: kind_of_names(column) for column in table.columns}
    people = [name for name, kind in kinds.items() if kind == "user"]
    texts = [column.name for column in table.columns if is_free_text(column)]
    if people and not AUTHORS.issuperset(people):
        yield from ((name, "NULL") for name in texts)
    elif people:
        # rows that only name who entered them keep their texts where nobody did
        nobody = " AND ".join(f"{quote(name)} IS NULL" for name in people)
        yield from ((name, f"CASE WHEN {nobody} THEN {quote(name)} END") for name in texts)
    yield from ((name, "NULL") for name in _QUOTING.get(table.name, ()))
    yield from _of_columns(table.columns, salt)


def _of_columns(columns: Iterable[Field], salt: str) -> Iterator[tuple[str, str]]:
    for column in columns:
        name = quote(column.name)
        match kind_of_names(column):
            case None | "host":
                continue
            case "path":
                yield column.name, f"regexp_extract({name}, '[^/]*$')"
            case "id":
                digest = f"left(md5('{salt}' || {name}), 16)"
                yield column.name, f"CASE WHEN {name} SIMILAR TO '[0-9]+' THEN {name} ELSE {digest} END"
            case _:
                yield column.name, "NULL"


def _update(opened: duckdb.DuckDBPyConnection, table: str, values: dict[str, str]) -> None:
    if values:
        changes = ", ".join(f"{quote(name)} = {value}" for name, value in values.items())
        opened.execute(f"UPDATE {table} SET {changes}")  # noqa: S608  names of the catalogue


def _parts(file: Path) -> tuple[Path, Path]:
    return file, Path(f"{file}.wal")


def _clone(source: Path, target: Path) -> None:
    # private from its first byte
    target.touch(0o600, exist_ok=False)
    with source.open("rb") as old, target.open("rb+") as new, contextlib.suppress(OSError):
        fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        return
    # a file system that cannot share blocks, or another one
    shutil.copyfile(source, target)


@contextlib.contextmanager
def _translated(file: Path) -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, OSError) as error:
        raise store_error(error, str(file)) from error
