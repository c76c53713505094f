"""The indices of the jobs: one per month of the end time, behind one alias.

A job is in the month of its end time; versions of it may be in several. Whoever writes one to an index is
told by the cluster that its place, the document named by its identity, is taken there; of other months it
must ask. :class:`Brought` remembers what the load itself has brought to them.
"""

from collections.abc import Collection, Iterator
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.window import Window
from esjobs.store.elastic.indices import ensure_index
from esjobs.store.elastic.jobs.versions import identity_of, named
from esjobs.store.elastic.layout import LONGEST_TARGET, IndexSettings, Names, jobs_index, listed
from esjobs.store.elastic.transport.cluster import Cluster, ask
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.row_hash import Hashes, identity_hash

_MOST_INDICES = 10_000


class JobMonths:
    """The indices in which jobs are, and are to be."""

    def __init__(self, cluster: Cluster, names: Names, how: IndexSettings) -> None:
        self._cluster = cluster
        self._names = names
        self._how = how

    def indices(self) -> list[str]:
        """The indices that there are; that of an earlier version among them, which had one for all months."""
        names = self._names
        answer = ask(self._cluster, f"/{listed(names.job_patterns)}/_alias") or {}
        # beside the old index it is a copy that a move has not come to the end of
        unfinished = names.jobs_of() if names.jobs in answer else ""
        return sorted(index for index in answer if names.is_jobs(index) and index != unfinished)

    def target(self, window: Window | None = None) -> str:
        """Those that may have jobs of a window as the target of a request.

        Where there are none it is a name that shows none.
        """
        indices = self.indices()
        if window is not None:
            indices = [index for index in indices if self._reaches(index, window)]
        target = listed(indices) or self._names.jobs
        if len(target) <= LONGEST_TARGET:
            return target
        one = [self._names.jobs] if self._names.jobs in indices else []
        return listed([*one, *self._names.job_patterns[1:]])

    def _reaches(self, index: str, window: Window) -> bool:
        months = (moment.isoformat()[:7] for moment in (window.start, window.end))
        first, last = map(self._names.jobs_of, months)
        return index == self._names.jobs or first <= index <= last

    def prepare(self) -> None:
        """Make the first index; that of an earlier version gets what it lacks.

        Raises :class:`SchemaError` when it has a field of another type.
        """
        indices = self.indices()
        if self._names.jobs in indices:
            ensure_index(self._cluster, self._names.jobs, jobs_index(self._how))
        elif not indices:
            self.ensure()

    def ensure(self, *, month: str = "") -> None:
        """Make the index of a month, or that of no month, which keeps the alias."""
        layout = jobs_index(self._how, monthly=bool(month))
        # an index of an earlier version has the name of the alias
        if not self.of_before:
            layout["aliases"] = {self._names.jobs: {"filter": SHOWN}}
        ensure_index(self._cluster, self._names.jobs_of(month), layout)

    def move(self) -> None:
        """Put what an earlier version made, one index for all months, behind an alias of its name.

        Nothing is copied: both indices share their files until the old one goes, in the step in which the
        alias comes. Whoever calls this holds the right to write jobs. Broken off, it is done again.
        """
        old, new = self._names.jobs, self._names.jobs_of()
        if not self.of_before:
            return  # another process was first
        if ask(self._cluster, f"/{new}/_alias") is not None:
            self._cluster.call("DELETE", f"/{new}")
        self._cluster.call("PUT", f"/{old}/_settings", {"index.blocks.write": True})
        settings = {**self._how.of_index(), "index.blocks.write": None}
        del settings["number_of_shards"]
        self._cluster.call("POST", f"/{old}/_clone/{new}", {"settings": settings})
        self._cluster.call("GET", f"/_cluster/health/{new}", params={"wait_for_status": "yellow"})
        months = [index for index in self.indices() if index != old]
        shown = [{"add": {"index": index, "alias": old, "filter": SHOWN}} for index in (new, *months)]
        self._cluster.call("POST", "/_aliases", {"actions": [{"remove_index": {"index": old}}, *shown]})

    @property
    def of_before(self) -> bool:
        """Whether there is the one index of an earlier version."""
        return self._names.jobs in self.indices()

    def filled(self) -> list[str]:
        """The indices that have documents; they must have been refreshed."""
        aggs = {"indices": {"terms": {"field": "_index", "size": _MOST_INDICES}}}
        with PointInTime(self._cluster, self.target()) as at:
            answer = at.search({"size": 0, "track_total_hits": False, "aggs": aggs})
        groups = answer["aggregations"]["indices"]["buckets"] if answer else []
        return [group["key"] for group in groups]

    def dropped(self, days: Collection[date]) -> set[date]:
        """Those of some days whose month has no index; none where one index has several months."""
        indices = self.indices()
        if self._names.jobs in indices or self._names.jobs_of() in self.filled():
            return set()
        return {day for day in days if self._names.jobs_of(f"{day:%Y-%m}") not in indices}

    def elsewhere(self, rows: pa.RecordBatch, index: str) -> pa.Array:
        """The identities among those of some rows that other indices have documents of, too."""
        of_rows = named(rows["identity"].to_pylist())
        query: dict[str, Any] = {"filter": [of_rows], "must_not": [{"term": {"_index": index}}]}
        known: set[str] = set()
        with PointInTime(self._cluster, self.target()) as at:
            for hits in at.pages({"bool": query}, ["identity"]):
                known.update(map(identity_of, hits))
        return pa.array(sorted(known), pa.string())

    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[str, str, pa.RecordBatch]]:
        """Rows by the month that they belong to: month, index, rows."""
        months = pc.utf8_slice_codeunits(rows["end_time"].cast(pa.date32()).cast(pa.string()), 0, 7)
        present = pc.unique(months).to_pylist()
        for month in present:
            some = rows if len(present) == 1 else rows.filter(pc.equal(months, month))
            yield month, self._names.jobs_of(month), some

    def of(self, end_time: str) -> str:
        """The index of an end time as documents spell it."""
        return self._names.jobs_of(end_time[:7])


SHOWN = {
    "bool": {"filter": [{"range": {"from": {"gt": 0}}}], "must_not": [{"exists": {"field": "until"}}]},
}
"""What the alias shows to others: the visible versions; while a load is being written, new ones already."""


class Brought:
    """Which jobs a load has brought to which index, as hashes: 8 bytes a row."""

    def __init__(self) -> None:
        self._sorted: dict[str, list[Hashes]] = {}

    def elsewhere(self, rows: pa.RecordBatch, index: str) -> npt.NDArray[np.bool_]:
        """Which rows of an index are of jobs, or of others of the same hash, that came to another before."""
        hashes = identity_hash(rows["source"], rows["job_id"])
        before = np.zeros(len(hashes), np.bool_)
        for other, runs in self._sorted.items():
            if other != index:
                for run in runs:
                    places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
                    before |= run[places] == hashes
        mine = self._sorted.setdefault(index, [])
        mine.append(np.sort(hashes))
        # runs of falling sizes: a row is sorted a few times, however many there are
        while len(mine) > 1 and len(mine[-2]) <= 2 * len(mine[-1]):
            last = mine.pop()
            mine[-1] = np.sort(np.concatenate([mine[-1], last]), kind="stable")
        return before
