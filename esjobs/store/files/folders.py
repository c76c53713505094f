"""Folders of files that belong together, updated consistently.

Loaded files are in a subfolder named by content, complete before the first page is replaced; old ones are
removed after the last. An interruption leaves working pages.
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from esjobs.core.errors import InputError
from esjobs.store.files.destination import STANDARD_OUTPUT, UNFINISHED, unwritable, writing_text
from esjobs.store.files.sharing import make_folder

# Letters at the start of a file that say whose it is
_LOOKED_AT = 4096


def write_folder(
    out: str | os.PathLike[str], files: Iterable[tuple[str, str]], parts: str, mark: str, below: str = ""
) -> None:
    """Write files into a folder.

    ``parts``: subfolder of loaded files, ending in a dash and digest; older digests are removed. ``mark``:
    text at the start of all other files; a file without it is foreign, and nothing is written. ``below``:
    folder from which other own files are removed. Raises :class:`InputError`.
    """
    folder = Path(out)
    if os.fspath(out) == STANDARD_OUTPUT:
        raise InputError("standard output accepts one file, but there are several; use --out FOLDER")
    opened, loaded = _parted(files, f"{parts}/")
    try:
        make_folder(folder)
        # two writers at a time would remove each other's loaded files
        with _alone(folder):
            for name in opened:
                _refuse_foreign(folder / name, mark)
            # named by content: the same files are there already
            if not (folder / parts).is_dir():
                _complete(folder, parts, loaded)
            if below:
                make_folder(folder / below)
            _write(folder, opened)
            # after the pages, which name the new subfolder by now; a page that is still open may miss the
            # old one
            _remove_others(folder, parts)
            if below:
                _remove_stale(folder / below, {Path(name).name for name in opened}, mark)
    except FileExistsError as error:
        raise InputError(f"cannot write {folder}: it is not a folder; use a different --out") from error
    except OSError as error:
        raise unwritable(os.fspath(out), error) from error
    except ValueError as error:
        raise InputError(f"cannot write {os.fspath(out)!r}: {error}; use a different name") from error


def _parted(files: Iterable[tuple[str, str]], parts: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return files that people open, and loaded ones by their names below ``parts``."""
    opened: dict[str, str] = {}
    loaded: dict[str, str] = {}
    for name, text in files:
        (loaded if name.startswith(parts) else opened)[name.removeprefix(parts)] = text
    return opened, loaded


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder against other processes."""
    # flock works on a folder, so no lock file is left behind
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _refuse_foreign(path: Path, mark: str) -> None:
    try:
        ours = _is_ours(path, mark)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        ours = False
    if not ours:
        raise InputError(f"cannot write {path}: not a file of esjobs; use a different folder with --out")


def _is_ours(path: Path, mark: str) -> bool:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return mark in stream.read(_LOOKED_AT)


def _remove_stale(folder: Path, names: Collection[str], mark: str) -> None:
    for path in folder.iterdir():
        if path.name not in names and path.is_file() and not path.is_symlink() and _is_ours(path, mark):
            path.unlink()


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        with writing_text(folder / name) as stream:
            stream.write(text)


def _complete(folder: Path, parts: str, files: Mapping[str, str]) -> None:
    """Write the subfolder under a temporary name, then rename it."""
    beside = folder / f".{parts}{UNFINISHED}{secrets.token_hex(4)}"
    make_folder(beside)
    try:
        for name in files:
            make_folder((beside / name).parent)
        _write(beside, files)
        # under its final name only when complete
        beside.rename(folder / parts)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _remove_others(folder: Path, parts: str) -> None:
    stem, _, digest = parts.rpartition("-")
    ours = re.compile(
        rf"\.?{re.escape(stem)}-[0-9a-f]{{{len(digest)}}}({re.escape(UNFINISHED)}[0-9a-f]{{8}})?"
    )
    for path in folder.iterdir():
        if path.name != parts and ours.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
