"""Named values and what is committed: documents that change only if nobody else changed them meanwhile."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from esjobs.core.errors import StoreBusyError
from esjobs.store.elastic.cluster import Cluster, RefusedError, ask
from esjobs.store.elastic.indices import ensure_index
from esjobs.store.elastic.layout import Names, state_index

_CONFLICT, _NOT_FOUND = 409, 404
_COMMIT = "commit"


@dataclass(frozen=True)
class Commit:
    """What readers of jobs see: everything that is visible at ``number``; ``loads``: number of each load."""

    number: int = 0
    loads: Mapping[str, int] = field(default_factory=dict)
    next_load: int = 1
    place: tuple[int, int] | None = None
    """Sequence number and term of the document, by which a change is noticed."""


class State:
    """The documents of the state index."""

    def __init__(self, cluster: Cluster, names: Names) -> None:
        self._cluster = cluster
        self._index = names.state

    def commit(self) -> Commit:
        """What is committed now."""
        found = self._get(_COMMIT)
        if found is None:
            return Commit()
        held = found["_source"]["commit"]
        place = (found["_seq_no"], found["_primary_term"])
        return Commit(held["number"], dict(held["loads"]), held["next_load"], place)

    def advance(self, old: Commit, new: Commit) -> None:
        """Switch readers of jobs to the next commit; :class:`StoreBusyError` if another was first."""
        body = {
            "kind": _COMMIT,
            "commit": {"number": new.number, "loads": dict(new.loads), "next_load": new.next_load},
        }
        if not self._put(_COMMIT, body, old.place):
            raise StoreBusyError(
                f"another process wrote jobs to {self._cluster.location} at the same time; run it again"
            )

    def value(self, key: str) -> str | None:
        """A named value; None when there is none."""
        found = self._get(_name(key))
        return None if found is None else str(found["_source"]["value"])

    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        """Set a named value if it is still ``old``; ``None`` stands for absent, before and after."""
        name = _name(key)
        found = self._get(name)
        if (found["_source"]["value"] if found else None) != old:
            return False
        place = (found["_seq_no"], found["_primary_term"]) if found else None
        if new is None:
            return found is None or self._delete(name, place)
        return self._put(name, {"kind": "value", "value": new}, place)

    def _get(self, name: str) -> Any:
        return ask(self._cluster, f"/{self._index}/_doc/{name}")

    def _put(self, name: str, body: Mapping[str, Any], place: tuple[int, int] | None) -> bool:
        ensure_index(self._cluster, self._index, state_index())
        how = {"op_type": "create"} if place is None else {"if_seq_no": place[0], "if_primary_term": place[1]}
        return self._unless_changed("PUT", name, body, how)

    def _delete(self, name: str, place: tuple[int, int] | None) -> bool:
        sequence, term = place or (0, 0)
        return self._unless_changed("DELETE", name, None, {"if_seq_no": sequence, "if_primary_term": term})

    def _unless_changed(
        self, method: str, name: str, body: Mapping[str, Any] | None, how: Mapping[str, Any]
    ) -> bool:
        try:
            self._cluster.call(method, f"/{self._index}/_doc/{name}", body, params=how)
        except RefusedError as error:
            if error.status in (_CONFLICT, _NOT_FOUND):
                return False
            raise
        return True


def _name(key: str) -> str:
    return "value-" + hashlib.sha256(key.encode()).hexdigest()
