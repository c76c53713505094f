"""Journal of what people enter on pages: one JSON object per line.

The nights hold the only writer of an embedded store, so pages write here, and the next night enters it.
Entries are appended; only forgetting a person rewrites them.
"""

import fcntl
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esjobs.core.errors import StoreError, UsageError
from esjobs.core.identity import content_id
from esjobs.store.files.destination import writing

_log = logging.getLogger(__name__)

_MOST_B = 64 << 20
MOST_OF_LINK = 20
"""Entries by one link."""


@dataclass(frozen=True)
class Journal:
    """The file of entries; it appears with the first one."""

    path: Path

    def append(self, entry: Mapping[str, Any]) -> str:
        """Store an entry durably, once, and return its id, which follows from its content without the time.

        Raises :class:`UsageError` after too many entries by one link, :class:`StoreError` if the file cannot
        be written.
        """
        identity = content_id(
            {key: entry[key] for key in entry if key not in ("at", "request", "before")}, 20
        )
        with self._locked() as handle:
            entries = self.read()
            if any(each["id"] == identity for each in entries):
                return identity
            nonce = entry.get("nonce")
            if nonce and sum(each.get("nonce") == nonce for each in entries) >= MOST_OF_LINK:
                raise UsageError(
                    f"this link has been used {MOST_OF_LINK} times; reply to the mail for anything else"
                )
            line = _line({"id": identity, **entry})
            # a line that a crash has cut stays apart from the next one
            complete = self.path.read_bytes()[-1:] in (b"", b"\n")
            self._write(handle, line if complete else b"\n" + line)
        return identity

    def read(self) -> list[dict[str, Any]]:
        """Return all entries in their order; a cut line is left out, and logged."""
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"cannot read the journal {self.path}: {error.strerror}") from error
        return [entry for line in lines if line and (entry := self._parsed(line)) is not None]

    def rewrite(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        """Replace all entries at once by those that a function makes of them; incomplete lines go.

        Raises :class:`InputError` if the file cannot be written; then it stays as it was.
        """
        if not self.path.exists():
            return
        with self._locked():
            entries = self.read()
            changed = change(entries)
            if changed == entries:
                return
            with writing(self.path) as stream:
                stream.writelines(map(_line, changed))

    def size(self) -> int:
        """Return the bytes of the file, which grow with every entry."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def _parsed(self, line: bytes) -> dict[str, Any] | None:
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            return entry
        _log.warning("the journal %s has an incomplete line of %d bytes", self.path, len(line))
        return None

    def _write(self, handle: int, line: bytes) -> None:
        if os.fstat(handle).st_size + len(line) > _MOST_B:
            raise StoreError(f"the journal {self.path} is full; move it away after a night")
        if os.write(handle, line) != len(line):
            raise StoreError(f"cannot write the journal {self.path}: the disk is full")
        os.fsync(handle)  # the page says that it is stored

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            handle = self._open()
        except OSError as error:
            raise StoreError(f"cannot write the journal {self.path}: {error.strerror}") from error
        try:
            yield handle
        except OSError as error:
            raise StoreError(f"cannot write the journal {self.path}: {error.strerror}") from error
        finally:
            os.close(handle)

    def _open(self) -> int:
        while True:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
            # who waited may hold the lock of a file that was rewritten meanwhile
            if self.path.exists() and os.path.samestat(os.fstat(handle), self.path.stat()):
                return handle
            os.close(handle)


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=True).encode() + b"\n"
