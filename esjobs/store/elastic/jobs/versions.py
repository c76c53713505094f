"""What the versions of a job say together, and the documents that make it so. No connection.

Of the versions with the newest end time the latest counts, field by field: by load (in the order in which
loads were first put), then by row; a missing value never replaces a known one. Nearly always the latest
version says it all, and is shown. Where it lacks what another one knows, a merged document is shown, which
belongs to no load, and all versions wait hidden, so that any load can be undone.
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
Known = dict[str, Any]
"""The fields of a job that have a value, as documents spell it; NaN and the infinities as text."""

_NAMES = frozenset(JOB_SCHEMA.names)


def identity_of(hit: Mapping[str, Any]) -> str:
    """Whose version a document is; the first of a job in an index has the identity as its own name."""
    return str(hit["_source"].get("identity", hit["_id"]))


def named(identities: Sequence[str]) -> dict[str, Any]:
    """The query of all versions of some jobs."""
    names = list(identities)
    return {"bool": {"should": [{"ids": {"values": names}}, {"terms": {"identity": names}}]}}


def known_of(document: Mapping[str, Any]) -> Known:
    """What a document knows of its job."""
    values: Known = {name: value for name, value in document.items() if name in _NAMES}
    values |= document.get(NOT_FINITE, {})
    return values


def born_by(document: Mapping[str, Any]) -> int:
    """The commit that brought a document: that which shows it, unless it names another one."""
    return int(document.get("born", document["from"]))


@dataclass
class Version:
    """A version of a job; ``stored``: by an earlier commit, ``visible``: to readers until now.

    ``where``, ``name``: its document, or what that would be.
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
        """What decides between versions: the greatest comes first."""
        return (self.end_time, self.load, self.row)

    @cached_property
    def known(self) -> Known:
        """What it knows of the job."""
        return known_of(self.document)

    @classmethod
    def incoming(cls, document: Document, index_of: Callable[[str], str]) -> "Version":
        """A row of the load that is being written, under a name that no job's identity can be.

        ``index_of``: tells the index of an end time.
        """
        identity, row, end_time = document["identity"], document["row"], document["end_time"]
        where, name = index_of(end_time), f"v{row:x}:{identity}"
        return cls(where, name, identity, end_time, document["load"], row, False, False, document)


def together(versions: Sequence[Version]) -> Known:
    """What versions of one end time say, the best first."""
    known: Known = {}
    for version in reversed(versions):
        known |= version.known
    return known


def of_loads(versions: Sequence[Version]) -> list[Version]:
    """The versions that count: of each load those with its newest end time."""
    newest: dict[int, str] = {}
    for version in versions:
        newest[version.load] = max(version.end_time, newest.get(version.load, ""))
    return [version for version in versions if version.end_time == newest[version.load]]


def contributing(versions: Sequence[Version]) -> list[Version]:
    """Of versions of one end time, the best first, those that supply a value of what they say together."""
    known: set[str] = set()
    found = []
    for version in versions:
        if not version.known.keys() <= known:
            found.append(version)
            known |= version.known.keys()
    return found


class Contest:
    """A job with its versions, the best first, and the merged document that readers saw, if they did.

    ``loaded``: the versions of the load that is being written. ``shown``: what readers will see. ``folded``:
    what ``loaded`` say together, where the best of them alone says less. ``merging``: no version says what is
    shown, and no document does yet. ``unchanged``: the load is left out, for the stored versions of the end
    time that it brings say together what they say with it.
    """

    def __init__(self, versions: Sequence[Version], merged: Version | None) -> None:
        self.versions = sorted(versions, key=lambda version: version.merit, reverse=True)
        self.merged = merged
        top = self.versions[0]
        self.newest = top.end_time
        self.shown = together(_at(self.newest, self.versions))
        self.loaded = [version for version in self.versions if not version.stored]
        self.unchanged = self._is_unchanged()
        self.folded: Known | None = None
        if self.loaded and not self.unchanged:
            own = together(_at(self.loaded[0].end_time, self.loaded))
            self.folded = own if own != self.loaded[0].known else None
        known = self.folded if self.folded is not None and top is self.loaded[0] else top.known
        self._shown_by = top if known == self.shown else None
        is_merged = self._shown_by is None and not self.unchanged
        self.merging = is_merged and (merged is None or merged.known != self.shown)

    def _is_unchanged(self) -> bool:
        if not self.loaded:
            return False
        end_time = self.loaded[0].end_time
        stored = [version for version in self.versions if version.stored]
        before, after = (together(_at(end_time, of_loads(some))) for some in (stored, self.versions))
        return before == after

    def sources(self) -> set[int]:
        """The loads that what readers saw comes from, if they saw the newest end time."""
        return {v.load for v in contributing([v for v in _at(self.newest, self.versions) if v.stored])}

    @property
    def is_known(self) -> bool:
        """Whether the job was stored before."""
        return any(version.stored for version in self.versions)

    @property
    def incoming(self) -> list[Version]:
        """The rows of this load with the newest end time of all."""
        return _at(self.newest, self.loaded)

    def changed(self) -> list[str]:
        """The fields that readers see changed; of a new job those that differ from its first row."""
        seen = [v for v in (self.merged, *self.versions) if v is not None and v.visible and v.stored]
        before = (seen or self.incoming[-1:])[0].known
        return [name for name in JOB_SCHEMA.names if before.get(name) != self.shown.get(name)]

    def kept(self) -> list[str]:
        """The fields that no incoming row knows, and another version does."""
        of_load = together(self.incoming)
        return [name for name in JOB_SCHEMA.names if name in self.shown and name not in of_load]

    def actions(self, number: int, folded: Document | None, merged: Document | None) -> Iterator[Action]:
        """Hide and show what changes with commit ``number``, and write the best version of this load."""
        if self.unchanged:
            # rows that were new to their months
            yield from (delete(v.where, v.name) for v in self.loaded if v.name == v.identity)
            return
        shown = self._shown_by
        for version in self.versions:
            if version.stored and version.visible and version is not shown:
                yield update(version.where, version.name, {"until": number})
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
    """The actions of some jobs; their new documents are made at once."""
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


def row_of(known: Known, document: Mapping[str, Any]) -> dict[str, Any]:
    """Values as Arrow takes them, with the origin that a document names."""
    origin = {name: document.get(name) for name in ORIGIN_SCHEMA.names}
    return {item.name: _value(known.get(item.name), item.type) for item in JOB_SCHEMA} | origin


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
