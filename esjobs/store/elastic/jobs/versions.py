"""Merging of versions of a job: pure functions.

Of the versions with the newest end time the latest wins by field, ordered by load, then row; missing never
replaces known. If the latest version lacks known values, a merged document is shown and all versions stay
hidden, so that any load can be undone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import JOB_SCHEMA, ORIGIN_SCHEMA, PUT_SCHEMA
from esjobs.store.elastic.jobs.stamps import stamped
from esjobs.store.elastic.layout import NOT_FINITE
from esjobs.store.elastic.results.lines import documents
from esjobs.store.elastic.transport.writing import Action, create, delete, index, update

MERGED = -1
"""Load of a document that several versions make together."""

Document = dict[str, Any]
Values = dict[str, Any]
"""The fields of a job that have a value, as documents spell it; NaN and the infinities as text."""

_NAMES = frozenset(JOB_SCHEMA.names)


def identity_of(hit: Mapping[str, Any]) -> str:
    """Return the identity of a document; the first of a job has it as id."""
    return str(hit["_source"].get("identity", hit["_id"]))


def named(identities: Sequence[str]) -> dict[str, Any]:
    """Return the query of all versions of some jobs."""
    names = list(identities)
    return {"bool": {"should": [{"ids": {"values": names}}, {"terms": {"identity": names}}]}}


def values_of(document: Mapping[str, Any]) -> Values:
    """Return the values of a document."""
    values: Values = {name: value for name, value in document.items() if name in _NAMES}
    values |= document.get(NOT_FINITE, {})
    return values


def born_by(document: Mapping[str, Any]) -> int:
    """Return the commit that created a document."""
    return int(document.get("born", document["from"]))


@dataclass
class Version:
    """Version of a job; ``stored``: by an earlier commit, ``visible``: until now.

    ``where``, ``name``: index and id of its document.
    """

    where: str
    name: str
    identity: str
    end_time: str
    load: int
    row: int
    visible: bool
    stored: bool
    document: Document

    @property
    def merit(self) -> tuple[str, int, int]:
        """Sort key of versions: the greatest wins."""
        return (self.end_time, self.load, self.row)

    @cached_property
    def values(self) -> Values:
        """Known values."""
        return values_of(self.document)

    @classmethod
    def incoming(cls, document: Document, index_of: Callable[[str], str]) -> "Version":
        """Return a row of the present load, under an id that no identity can have."""
        identity, row, end_time = document["identity"], document["row"], document["end_time"]
        # ids of a job's first version are its identity, which begins with a digit or "h:"
        where, name = index_of(end_time), f"v{row:x}:{identity}"
        return cls(where, name, identity, end_time, document["load"], row, False, False, document)


def together(versions: Sequence[Version]) -> Values:
    """Merge versions of one end time, best first."""
    values: Values = {}
    for version in reversed(versions):
        # best last: its known values overwrite those of the others
        values |= version.values
    return values


def of_loads(versions: Sequence[Version]) -> list[Version]:
    """Return of each load the versions with its newest end time."""
    newest: dict[int, str] = {}
    for version in versions:
        newest[version.load] = max(version.end_time, newest.get(version.load, ""))
    return [version for version in versions if version.end_time == newest[version.load]]


def contributing(versions: Sequence[Version]) -> list[Version]:
    """Return the versions, best first, that supply a merged value."""
    values: set[str] = set()
    found = []
    for version in versions:
        if not version.values.keys() <= values:
            found.append(version)
            values |= version.values.keys()
    return found


class Contest:
    """Job with its versions, best first, and its visible merged document.

    ``loaded``: versions of the present load. ``shown``: values that readers will see. ``folded``: merged
    values of ``loaded`` if the best lacks some. ``merging``: a merged document is required. ``unchanged``:
    the load adds nothing.
    """

    def __init__(self, versions: Sequence[Version], merged: Version | None) -> None:
        self.versions = sorted(versions, key=lambda version: version.merit, reverse=True)
        self.merged = merged
        top = self.versions[0]
        self.newest = top.end_time
        self.shown = together(_at(self.newest, self.versions))
        self.loaded = [version for version in self.versions if not version.stored]
        self.unchanged = self._is_unchanged()
        self.folded: Values | None = None
        if self.loaded and not self.unchanged:
            own = together(_at(self.loaded[0].end_time, self.loaded))
            self.folded = own if own != self.loaded[0].values else None
        values = self.folded if self.folded is not None and top is self.loaded[0] else top.values
        self._shown_by = top if values == self.shown else None
        is_merged = self._shown_by is None and not self.unchanged
        self.merging = is_merged and (merged is None or merged.values != self.shown)

    def _is_unchanged(self) -> bool:
        if not self.loaded:
            return False
        end_time = self.loaded[0].end_time
        stored = [version for version in self.versions if version.stored]
        before, after = (together(_at(end_time, of_loads(some))) for some in (stored, self.versions))
        return before == after

    def sources(self) -> set[int]:
        """Return the loads that supply the values of the newest end time."""
        return {v.load for v in contributing([v for v in _at(self.newest, self.versions) if v.stored])}

    @property
    def is_known(self) -> bool:
        """True if the job was stored before."""
        return any(version.stored for version in self.versions)

    @property
    def incoming(self) -> list[Version]:
        """Rows of this load with the newest end time of all."""
        return _at(self.newest, self.loaded)

    def changed(self) -> list[str]:
        """Return the fields that change for readers; of a new job since its first row."""
        seen = [v for v in (self.merged, *self.versions) if v is not None and v.visible and v.stored]
        # of a new job its first row of this load, which comes last
        before = (seen or self.incoming[-1:])[0].values
        return [name for name in JOB_SCHEMA.names if before.get(name) != self.shown.get(name)]

    def kept(self) -> list[str]:
        """Return the fields that only other versions know."""
        of_load = together(self.incoming)
        return [name for name in JOB_SCHEMA.names if name in self.shown and name not in of_load]

    def actions(self, number: int, folded: Document | None, merged: Document | None) -> Iterator[Action]:
        """Yield the actions of commit ``number``, and the best version of this load."""
        if self.unchanged:
            # rows that were new to their months
            yield from (delete(v.where, v.name) for v in self.loaded if v.name == v.identity)
            return
        shown = self._shown_by
        for version in self.versions:
            if version.stored and version.visible and version is not shown:
                yield update(version.where, version.name, {"until": number})
        # the old merged document ends where another document is shown
        if self.merged is not None and (shown is not None or merged is not None):
            yield update(self.merged.where, self.merged.name, {"until": number})
        if shown is not None and shown.stored and not shown.visible:
            again = {"born": born_by(shown.document), "from": number, "until": None}
            yield update(shown.where, shown.name, again)
        if self.loaded:
            yield from self._best_of_load(number, folded, is_shown=shown is self.loaded[0])
        if merged is not None:
            top = self.versions[0]
            numbers = {"load": MERGED, "row": top.row, "born": number, "from": number}
            yield create(top.where, f"m{number:x}:{top.identity}", {**merged, **numbers})

    def _best_of_load(self, number: int, folded: Document | None, *, is_shown: bool) -> Iterator[Action]:
        best = self.loaded[0]
        # hidden versions are visible from commit 0 until 0: never
        span = {"from": number} if is_shown else {"from": 0, "until": 0}
        document = best.document
        if folded is not None:
            document = {**folded, "load": best.load, "row": best.row, "born": number}
        fresh: Version | None = None
        for version in self.loaded:
            if version.name == version.identity:
                if version.where == best.where:
                    fresh = version
                else:
                    # an older row of the load, which was new to its month
                    yield delete(version.where, version.name)
        if fresh is None:
            yield create(best.where, best.name, {**document, **span})
        elif fresh is best and folded is None:
            yield update(best.where, best.name, {"born": number, **span})
        else:  # nobody sees it yet
            yield index(fresh.where, fresh.name, {**document, **span})


def _at(end_time: str, versions: Sequence[Version]) -> list[Version]:
    return [version for version in versions if version.end_time == end_time]


def settled(contests: Sequence[Contest], number: int) -> Iterator[Action]:
    """Yield the actions of some jobs; new documents are built together."""
    rows = []
    for contest in contests:
        if contest.folded is not None:
            rows.append(row_of(contest.folded, contest.loaded[0].document))
        if contest.merging:
            rows.append(row_of(contest.shown, contest.versions[0].document))
    made = iter(_documents(rows))
    for contest in contests:
        folded = next(made) if contest.folded is not None else None
        merged = next(made) if contest.merging else None
        yield from contest.actions(number, folded, merged)


def row_of(values: Values, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as Arrow takes them, with the origin."""
    origin = {name: document.get(name) for name in ORIGIN_SCHEMA.names}
    return {item.name: _value(values.get(item.name), item.type) for item in JOB_SCHEMA} | origin


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    return float(value) if pa.types.is_floating(kind) else value


def _documents(rows: list[dict[str, Any]]) -> list[Document]:
    if not rows:
        return []
    batch = stamped(pa.RecordBatch.from_pylist(rows, schema=PUT_SCHEMA), 0)
    return documents(batch, {"load": MERGED})
