"""Monthly indices of the jobs behind one alias.

A job belongs to the month of its end time; its versions may be in several. The cluster reports duplicates
inside an index; other months are searched, and :class:`Brought` remembers what the load itself wrote.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import PublishedError
from esjobs.core.window import Window
from esjobs.store.elastic.indices import ensure_index
from esjobs.store.elastic.jobs.versions import identity_of, named
from esjobs.store.elastic.layout import LONGEST_TARGET, IndexSettings, Names, jobs_index, listed
from esjobs.store.elastic.results.differences import REPAIR, TAKEN
from esjobs.store.elastic.transport.cluster import Cluster, ask
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.row_hash import Hashes, identity_hash

_MOST_INDICES = 10_000


class JobMonths:
    """Indices of jobs."""

    def __init__(self, cluster: Cluster, names: Names, how: IndexSettings) -> None:
        self._cluster = cluster
        self._names = names
        self._how = how

    def indices(self) -> list[str]:
        """Return the existing indices.

        Raises :class:`PublishedError` if the alias is not on exactly these.
        """
        answer = self._aliases()
        if found := self._differences(answer):
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise PublishedError(f"{found[0].what}{more}; nothing was changed: {found[0].to_do}")
        return sorted(filter(self._names.is_jobs, answer))

    def _aliases(self) -> dict[str, dict[str, Any]]:
        answer = ask(self._cluster, f"/{self._names.jobs}*/_alias") or {}
        return {index: of_index["aliases"] for index, of_index in answer.items()}

    def differences(self) -> "list[JobDifference]":
        """Return all faults of the alias of jobs."""
        return self._differences(self._aliases())

    def _differences(self, answer: Mapping[str, Mapping[str, Any]]) -> "list[JobDifference]":
        alias = self._names.jobs
        if alias in answer:
            return [JobDifference(alias, f"index {alias} has the name of the alias for jobs", to_do=TAKEN)]
        found = []
        for index, aliases in sorted(answer.items()):
            facts = aliases.get(alias)
            if not self._names.is_jobs(index):
                if any(map(self._names.is_jobs, aliases)):
                    found.append(JobDifference(index, f"index {index} has the name of an index of jobs"))
                elif facts is not None:
                    what = f"alias {alias} is on index {index}, which does not belong to esjobs"
                    found.append(JobDifference(index, what, {"remove": {"index": index, "alias": alias}}))
            elif facts != {"filter": SHOWN}:
                what = "is missing" if facts is None else "was changed (filter, routing, writing)"
                add = {"add": {"index": index, "alias": alias, "filter": SHOWN}}
                found.append(JobDifference(index, f"alias {alias} of index {index} {what}", add))
        return found

    def repair(self, *, dry_run: bool) -> list[str]:
        """Repair the alias of jobs; return a line per index."""
        found = [each for each in self.differences() if each.action is not None]
        if found and not dry_run:
            # one request: readers never see half of the repair
            self._cluster.call("POST", "/_aliases", {"actions": [each.action for each in found]})
        return [f"{each.what}: repaired" for each in found]

    def target(self, window: Window | None = None) -> str:
        """Return the request target for jobs of a window."""
        indices = self.indices()
        if window is not None:
            months = (moment.isoformat()[:7] for moment in (window.start, window.end))
            # names of months sort like the months
            first, last = map(self._names.jobs_of, months)
            indices = [index for index in indices if first <= index <= last]
        # without any index the alias, which is missing: an empty snapshot
        target = listed(indices) or self._names.jobs
        return target if len(target) <= LONGEST_TARGET else listed(self._names.job_patterns)

    def prepare(self) -> None:
        """Create the first index, which keeps the alias."""
        if not self.indices():
            self.ensure()

    def ensure(self, *, month: str = "") -> None:
        """Create the index of a month, or the undated one that keeps the alias; add missing fields.

        Raises :class:`SchemaError` for an index of another layout.
        """
        layout = jobs_index(self._how, monthly=bool(month))
        layout["aliases"] = {self._names.jobs: {"filter": SHOWN}}
        ensure_index(self._cluster, self._names.jobs_of(month), layout)

    def filled(self) -> list[str]:
        """Return the indices that have documents, as of the last refresh."""
        aggs = {"indices": {"terms": {"field": "_index", "size": _MOST_INDICES}}}
        with PointInTime(self._cluster, self.target()) as at:
            answer = at.search({"size": 0, "track_total_hits": False, "aggs": aggs})
        groups = answer["aggregations"]["indices"]["buckets"] if answer else []
        return [group["key"] for group in groups]

    def dropped(self, days: Collection[date]) -> set[date]:
        """Return those of some days whose month has no index."""
        indices = self.indices()
        return {day for day in days if self._names.jobs_of(f"{day:%Y-%m}") not in indices}

    def elsewhere(self, rows: pa.RecordBatch, index: str) -> pa.Array:
        """Return the identities that other indices have, too."""
        of_rows = named(rows["identity"].to_pylist())
        query: dict[str, Any] = {"filter": [of_rows], "must_not": [{"term": {"_index": index}}]}
        shared: set[str] = set()
        with PointInTime(self._cluster, self.target()) as at:
            for hits in at.pages({"bool": query}, ["identity"]):
                shared.update(map(identity_of, hits))
        return pa.array(sorted(shared), pa.string())

    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[str, str, pa.RecordBatch]]:
        """Yield month, index and rows."""
        months = pc.utf8_slice_codeunits(rows["end_time"].cast(pa.date32()).cast(pa.string()), 0, 7)
        present = pc.unique(months).to_pylist()
        for month in present:
            some = rows if len(present) == 1 else rows.filter(pc.equal(months, month))
            yield month, self._names.jobs_of(month), some

    def of(self, end_time: str) -> str:
        """Return the index of an end time."""
        return self._names.jobs_of(end_time[:7])


@dataclass(frozen=True)
class JobDifference:
    """Index with a wrong alias of jobs, and the repair; None: its name is wrong."""

    index: str
    what: str
    action: dict[str, Any] | None = None
    to_do: str = REPAIR


SHOWN = {"bool": {"filter": [{"range": {"from": {"gt": 0}}}], "must_not": [{"exists": {"field": "until"}}]}}
"""Filter of the alias: the visible versions; while a load is being written, already the new ones."""


class Brought:
    """Jobs that a load wrote to each index, as hashes: 8 bytes per row."""

    def __init__(self) -> None:
        self._sorted: dict[str, list[Hashes]] = {}

    def elsewhere(self, rows: pa.RecordBatch, index: str) -> npt.NDArray[np.bool_]:
        """Return the mask of rows whose job, or an equal hash, went to another index before."""
        hashes = identity_hash(rows["source"], rows["job_id"])
        before = np.zeros(len(hashes), np.bool_)
        for other, runs in self._sorted.items():
            if other != index:
                for run in runs:
                    # searchsorted may point behind the end
                    places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
                    before |= run[places] == hashes
        mine = self._sorted.setdefault(index, [])
        mine.append(np.sort(hashes))
        # runs of falling sizes: a row is sorted a few times, however many there are
        while len(mine) > 1 and len(mine[-2]) <= 2 * len(mine[-1]):
            last = mine.pop()
            mine[-1] = np.sort(np.concatenate([mine[-1], last]), kind="stable")
        return before
