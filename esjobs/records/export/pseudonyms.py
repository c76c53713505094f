"""Names replaced by keyed hashes on their way out: the same name has the same pseudonym under one key.

A pseudonym is the kind of the name and the first 80 bits of HMAC-SHA256 over kind and name: without the key
nobody can try names out; anyone who has it can. It is no anonymisation: times, sizes, queues and ids of jobs
stay, by which a job can be recognised by anyone who knows it from elsewhere.

Texts that stay are searched for the names that are replaced beside them: a program that is called after its
author gets a pseudonym, too.
"""

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import arrow_type
from esjobs.core.errors import InputError, UsageError
from esjobs.core.fields import Field
from esjobs.core.personal import END_STATES, KEPT_TEXTS, NAMING, is_free_text, kind_of_names
from esjobs.records.errors.primary import EXIT_CODE
from esjobs.store.files.destination import write_secret

SHORTEST_KEY = 16
"""Bytes; shorter keys can be found by trying."""

_LARGEST_KEY = 1 << 16
_DIGITS = 20
# Ids that are numbers, of arrays and parts too (``123_4``, ``12+0``), or hexadecimal: they name nobody.
_NUMERIC = re.compile(r"[0-9A-Fa-f_+.:-]*")
_ERROR = re.compile(r"[a-z]+:(-?[0-9]+(:-?[0-9]+)?|[a-z_]{1,20})")
_STATE = re.compile(r"[a-z][a-z_]{0,19}")
# Characters; shorter names stand in other words by chance.
_SHORTEST_PART = 4


class Pseudonyms:
    """Replaces names; ``key``: of :func:`read_key`."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._cache: dict[tuple[str, str], str] = {}
        self._names: set[str] = set()
        self._lengths: tuple[int, ...] = ()
        self._named: dict[str, bool] = {}

    def learn(self, batches: Iterable[pa.RecordBatch], columns: Iterable[Field]) -> None:
        """Remember the names to be replaced, to find them in texts; call it before :meth:`batches`."""
        kinds = {column.name: kind_of_names(column) for column in columns}
        for batch in batches:
            for name, array in zip(batch.schema.names, batch.columns, strict=True):
                if kinds[name] in NAMING:
                    existing = pc.unique(array).drop_null().to_pylist()
                    if kinds[name] == "host":
                        existing = [host.partition("/")[0] for host in existing]
                    self._names.update(each.casefold() for each in existing if len(each) >= _SHORTEST_PART)
        # only parts as long as some name are looked up: a set instead of a pattern of all names
        self._lengths = tuple(sorted({len(name) for name in self._names}))
        self._named.clear()

    def names_somebody(self, text: str) -> bool:
        """True if a text contains one of the names; names of digits only as a complete number."""
        named = self._named.get(text)
        if named is None:
            named = self._named[text] = self._contains(text.casefold())
        return named

    def _contains(self, text: str) -> bool:
        for length in self._lengths:
            for start in range(len(text) - length + 1):
                end = start + length
                part = text[start:end]
                if part in self._names and not (
                    part.isdecimal()
                    and (text[start - 1 : start].isdecimal() or text[end : end + 1].isdecimal())
                ):
                    return True
        return False

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of a name.

        >>> Pseudonyms(bytes(16)).of("user", "ann")
        'user-638d49c6fb3eeef667a9'
        """
        existing = self._cache.get((kind, name))
        if existing is None:
            # the length keeps kind and name apart
            message = f"{len(kind)}:{kind}{name}".encode("utf-8", "surrogatepass")
            existing = f"{kind}-{hmac.new(self._key, message, hashlib.sha256).hexdigest()[:_DIGITS]}"
            self._cache[kind, name] = existing
        return existing

    def batches(
        self, batches: Iterable[pa.RecordBatch], columns: Iterable[Field]
    ) -> Iterator[pa.RecordBatch]:
        """The batches without names: ``columns`` say what each column is. Free text becomes null."""
        existing = {column.name: column for column in columns}
        for batch in batches:
            arrays = [
                self._column(array, existing[name])
                for name, array in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _column(self, array: pa.Array, column: Field) -> pa.Array:
        if is_free_text(column):
            return pa.nulls(len(array), arrow_type(column.type))
        # a column of nulls has no dictionary to encode
        if array.null_count == len(array):
            return array
        if column.type == "map":
            return self._members(array, column)
        kind = kind_of_names(column)
        if kind is None and (column.values or (column.type != "keyword" and column.name not in KEPT_TEXTS)):
            return array
        texts = array.dictionary_encode()
        replaced = [
            None if text is None else self._name(kind, text) if kind else self._kept(column.name, text)
            for text in texts.dictionary.to_pylist()
        ]
        return pa.array(replaced, pa.string()).take(texts.indices)

    def _members(self, array: pa.Array, column: Field) -> pa.Array:
        # members keep their names unless they contain one that is replaced
        keys = array.keys.dictionary_encode()
        existing = keys.dictionary.to_pylist()
        replaced = [self._part(column.name, key) for key in existing]
        if replaced == existing:
            return array
        return pa.MapArray.from_arrays(
            array.offsets,
            pa.array(replaced, pa.string()).take(keys.indices),
            array.items,
            type=array.type,
            mask=array.is_null() if array.null_count else None,
        )

    def _kept(self, column: str, text: str) -> str | None:
        if column == "exit_code":
            return text if EXIT_CODE.fullmatch(text) else None
        if column == "error":
            return text if _ERROR.fullmatch(text) else None
        if column == "state":
            if text in END_STATES:
                return text
            if not _STATE.fullmatch(text):
                words = re.findall(r"[a-z_]+", text.lower())
                return next((word for word in words if word in END_STATES), None)
        return self._part(column, text)

    def _part(self, kind: str, text: str) -> str:
        return self.of(kind, text) if self.names_somebody(text) else text

    def _name(self, kind: str, name: str) -> str:
        if not name:
            return name
        if kind == "path":
            named = "/" in name or "\\" in name or self.names_somebody(name)
            return self.of(kind, name) if named else name
        if kind == "id" and _NUMERIC.fullmatch(name):
            # a name of hexadecimal letters may stand in it, but not one of digits by chance
            return name if name.isdecimal() else self._part(kind, name)
        if kind == "host":
            host, slash, device = name.partition("/")
            # anything but a number after a host may be a name
            if not device or device.isdecimal():
                return self.of(kind, host) + slash + device
        return self.of(kind, name)


def read_key(path: Path) -> bytes:
    """Read the key in a file, without blanks around it; :class:`InputError` for one that is not secret."""
    try:
        with contextlib.ExitStack() as opened:
            # a pipe is not waited for
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            opened.callback(os.close, descriptor)
            state = os.fstat(descriptor)
            key = os.read(descriptor, _LARGEST_KEY + 1).strip() if stat.S_ISREG(state.st_mode) else b""
    except OSError as error:
        absent = isinstance(error, FileNotFoundError)
        hint = "create it with --new-key" if absent else "use a file that you can read"
        raise InputError(f"cannot read key file {path}: {error.strerror}; {hint}") from error
    if not stat.S_ISREG(state.st_mode):
        raise InputError(
            f"key file {path} is not a regular file; use a different file, or create one with --new-key"
        )
    if state.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            f"other users can read or change key file {path} (mode {stat.S_IMODE(state.st_mode):04o}); run: "
            f"chmod 600 {path}. If they may have read it, create a new key"
        )
    if len(key) < SHORTEST_KEY:
        raise InputError(
            f"key file {path} {'is empty' if not key else f'has {len(key)} bytes'}; at least {SHORTEST_KEY} "
            "are required. Create another one with --new-key"
        )
    if len(key) > _LARGEST_KEY:
        raise InputError(f"key file {path} has more than {_LARGEST_KEY} bytes; check the path")
    return key


def make_key(path: Path) -> None:
    """Write a new key that its owner alone can read; :class:`UsageError` where something is already."""
    try:
        write_secret(path, secrets.token_hex(32) + "\n")
    except FileExistsError:
        raise UsageError(
            f"key file {path} already exists; omit --new-key to use it. Another key changes all names"
        ) from None
