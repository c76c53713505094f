"""Stored versions of jobs."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import pyarrow as pa

from esjobs.store.elastic.jobs.versions import MERGED, Document, Version, born_by, identity_of, named
from esjobs.store.elastic.results.lines import documents
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime

CHUNK = 1000
"""Identities of one search."""


def stored_versions(
    at: PointInTime, names: Sequence[str], number: int, loads: Set[int], gone: int | None = None
) -> Iterator[Version]:
    """Yield all versions of some jobs, those of this commit as not stored; merged documents if visible."""
    for start in range(0, len(names), CHUNK):
        query: dict[str, Any] = {"filter": [named(names[start : start + CHUNK])]}
        # of a load that is being undone
        if gone is not None:
            query["must_not"] = [{"term": {"load": gone}}]
        for hits in at.pages({"bool": query}):
            for hit in hits:
                document = hit["_source"]
                visible, fresh = _was_visible(document, number), born_by(document) == number
                if not (visible if document["load"] == MERGED else fresh or document["load"] in loads):
                    continue  # of a load that was taken back, or merged and out of date
                yield _version(hit, visible, stored=not fresh)


def versions_of_load(cluster: Cluster, index: str, load: int, number: int) -> Iterator[Version]:
    """Yield all versions of a load, without values."""
    source = ["identity", "end_time", "load", "row", "from", "until"]
    with PointInTime(cluster, index) as at:
        for hits in at.pages({"term": {"load": load}}, source):
            yield from (_version(hit, _was_visible(hit["_source"], number), stored=True) for hit in hits)


def _was_visible(document: Mapping[str, Any], number: int) -> bool:
    return 0 < document["from"] < number and (document.get("until") or number) >= number


def _version(hit: Mapping[str, Any], visible: bool, *, stored: bool) -> Version:
    document = hit["_source"]
    return Version(
        hit["_index"],
        hit["_id"],
        identity_of(hit),
        document["end_time"],
        document["load"],
        document["row"],
        visible,
        stored,
        document,
    )


def rows_by_job(again: Sequence[pa.RecordBatch], common: Mapping[str, int]) -> Iterator[list[Document]]:
    """Yield rows as documents, about 1000 at a time, those of a job together."""
    rows = pa.Table.from_batches(again).combine_chunks().sort_by("identity").to_batches()
    of_job: list[Document] = []
    for batch in rows:
        for start in range(0, batch.num_rows, CHUNK):
            for document in documents(batch.slice(start, CHUNK), common):
                # versions of a job stay in one piece: together they decide which one is shown
                if len(of_job) >= CHUNK and document["identity"] != of_job[-1]["identity"]:
                    yield of_job
                    of_job = []
                of_job.append(document)
    if of_job:
        yield of_job
