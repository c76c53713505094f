"""Named values and commits: documents changed by compare-and-set.

Every change carries a unique mark, which tells after a lost answer or a conflict if the change arrived.
"""

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from esjobs.core.errors import StoreBusyError
from esjobs.store.elastic.indices import ensure_index
from esjobs.store.elastic.layout import USUAL, IndexSettings, Names, state_index
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError, UnreachableError, ask
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import create, delete, index, refresh, write

_CONFLICT = 409
_COMMIT = "commit"
# Attempts at a document that others are changing
_FENCES = 5


@dataclass(frozen=True)
class Commit:
    """Visible state of the jobs at ``number``; ``loads``: number of each load.

    ``pruned``: loads whose replaced versions are removed. ``unchanged``: rows by load and by load in which
    they were found.
    """

    number: int = 0
    loads: Mapping[str, int] = field(default_factory=dict)
    next_load: int = 1
    pruned: frozenset[int] = frozenset()
    unchanged: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    version: tuple[int, int] | None = None
    """Sequence number and term of the document, by which a change is noticed."""


class State:
    """Documents of the state index."""

    def __init__(self, cluster: Cluster, names: Names, how: IndexSettings = USUAL) -> None:
        self._cluster = cluster
        self._index = names.state
        self._how = how
        self._ensured = False

    def commit(self) -> Commit:
        """Return the present commit."""
        document = self._get(_COMMIT)
        if document is None:
            return Commit()
        committed = document["_source"]["commit"]
        version = (document["_seq_no"], document["_primary_term"])
        unchanged = {
            int(load): {int(other): rows for other, rows in found.items()}
            for load, found in committed.get("unchanged", {}).items()
        }
        return Commit(
            committed["number"],
            dict(committed["loads"]),
            committed["next_load"],
            frozenset(committed.get("pruned", ())),
            unchanged,
            version,
        )

    def advance(self, old: Commit, new: Commit) -> None:
        """Switch readers to the next commit. Raises :class:`StoreBusyError` on conflict."""
        if not self._put(_COMMIT, _commit_body(new), old.version):
            raise StoreBusyError(
                f"another process wrote jobs to {self._cluster.location} at the same time; run it again"
            )

    def fence(self) -> Commit:
        """Rewrite the present commit, so that delayed requests are refused."""
        # requests of the former writer name the version of before: they fail from now on
        for _ in range(_FENCES):
            old = self.commit()
            if self._put(_COMMIT, _commit_body(old), old.version):
                return self.commit()
        raise StoreBusyError(
            f"other processes are writing jobs to {self._cluster.location}; run it again later"
        )

    def value(self, key: str) -> str | None:
        """Return a named value; None if absent."""
        return _value(self._get(_name(key)))

    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        """Set a named value if it still equals ``old``; None: absent."""
        name = _name(key)
        document = self._get(name)
        if _value(document) != old:
            return False
        if old is None and new is None:
            return True
        version = (document["_seq_no"], document["_primary_term"]) if document else None
        # the document stays without a value: a deletion would forget its version
        body = {"kind": "value"} if new is None else {"kind": "value", "value": new}
        return self._put(name, body, version)

    def documents(self, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Return documents by id, in one request; missing ones are omitted."""
        docs = [{"_index": self._index, "_id": name} for name in names]
        # by id: no refresh is needed to see the last write
        answer = self._cluster.call("POST", "/_mget", {"docs": docs}) if docs else {"docs": []}
        return {doc["_id"]: doc["_source"] for doc in answer["docs"] if doc.get("found")}

    def documents_of(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """Return all documents of a kind by id."""
        found: dict[str, Mapping[str, Any]] = {}
        if ask(self._cluster, f"/{self._index}/_mapping") is None:
            return found
        refresh(self._cluster, self._index)
        with PointInTime(self._cluster, self._index) as at:
            for hits in at.pages({"term": {"kind": kind}}):
                found |= {hit["_id"]: hit["_source"] for hit in hits}
        return found

    def write(self, documents: Mapping[str, Mapping[str, Any]]) -> None:
        """Write documents by id; requires the turn."""
        self._ensure()
        write(self._cluster, (index(self._index, name, body) for name, body in documents.items()))

    def create(self, documents: Mapping[str, Mapping[str, Any]]) -> None:
        """Create documents by id, keeping existing ones."""
        self._ensure()
        write(self._cluster, (create(self._index, name, body) for name, body in documents.items()))

    def delete(self, name: str) -> None:
        """Delete a document, if present."""
        write(self._cluster, [delete(self._index, name)])

    def _ensure(self) -> None:
        ensure_index(self._cluster, self._index, state_index(self._how))
        self._ensured = True

    def _get(self, name: str) -> Any:
        return ask(self._cluster, f"/{self._index}/_doc/{name}")

    def _put(self, name: str, body: Mapping[str, Any], version: tuple[int, int] | None) -> bool:
        # a document that was read a moment ago has an index
        if version is None or not self._ensured:
            self._ensure()
        how: dict[str, Any] = {"op_type": "create"}
        if version is not None:
            how = {"if_seq_no": version[0], "if_primary_term": version[1]}
        mark = uuid.uuid4().hex
        try:
            self._cluster.call("PUT", f"/{self._index}/_doc/{name}", {**body, "mark": mark}, params=how)
        except (RefusedError, UnreachableError) as error:
            conflict = isinstance(error, RefusedError) and error.status == _CONFLICT
            if not conflict and not error.passing:
                raise
            document = self._get(name)
            # our own write: its answer was lost, or a repetition met it
            if document is not None and document["_source"].get("mark") == mark:
                return True
            if conflict:
                return False
            raise
        return True


def _commit_body(commit: Commit) -> dict[str, Any]:
    committed = {
        "number": commit.number,
        "loads": dict(commit.loads),
        "next_load": commit.next_load,
        "pruned": sorted(commit.pruned),
        "unchanged": {
            str(load): {str(other): rows for other, rows in found.items()}
            for load, found in commit.unchanged.items()
        },
    }
    return {"kind": _COMMIT, "commit": committed}


def _value(document: Any) -> str | None:
    return None if document is None else document["_source"].get("value")


def _name(key: str) -> str:
    # a key may have more than the 512 bytes of an id, and slashes
    return "value-" + hashlib.sha256(key.encode()).hexdigest()
