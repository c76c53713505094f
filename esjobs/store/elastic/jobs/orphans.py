"""Remains of interrupted writes, and the actions that restore the committed state."""

from collections.abc import Iterator, Mapping, Set
from itertools import pairwise
from typing import Any

from esjobs.store.elastic.jobs.versions import MERGED, Version, born_by, identity_of
from esjobs.store.elastic.transport.writing import Action, delete, index, update

KEPT_PLACE = 0
"""Load of a document that only keeps a job's identity taken, so that the next version notices the others."""


def orphans(number: int, loads: Set[int]) -> dict[str, Any]:
    """Return the query of documents of a later commit, or of unknown loads."""
    later = {"gt": number}
    uncommitted = [{"range": {name: later}} for name in ("born", "from", "until")]
    taken_back = [{"range": {"load": gap}} for gap in _gaps(loads)]
    out_of_date = [{"term": {"load": MERGED}}, {"range": {"until": {"lte": number}}}]
    return {"bool": {"should": [*uncommitted, *taken_back, {"bool": {"filter": out_of_date}}]}}


def removal(where: str, name: str, identity: str, others: Set[str]) -> Action:
    """Delete a version; the id of the job stays occupied while it has other versions."""
    # creating the id again would not conflict, and the next load would take the job for a new one
    if name == identity and identity in others:
        return update(where, name, {"load": KEPT_PLACE, "from": 0, "until": 0})
    return delete(where, name)


def emptied(version: Version) -> Action:
    """Delete a covered version; the id of the job stays occupied, emptied."""
    if version.name != version.identity:
        return delete(version.where, version.name)
    kept = {"end_time": version.end_time, "load": KEPT_PLACE, "row": version.row, "from": 0, "until": 0}
    return index(version.where, version.name, kept)


def restored(hit: Mapping[str, Any], number: int, loads: Set[int]) -> Action:
    """Return the action that restores a document to commit ``number``."""
    document, where, name = hit["_source"], hit["_index"], hit["_id"]
    if born_by(document) > number or (
        document["load"] == MERGED and document.get("until", number + 1) <= number
    ):
        return delete(where, name)
    if document["load"] not in {*loads, MERGED}:  # other versions of the job may need its place
        identity = identity_of(hit)
        return removal(where, name, identity, {identity})
    if document["from"] > number:
        return update(where, name, {"from": 0, "until": 0})
    return update(where, name, {"until": None})


def _gaps(loads: Set[int]) -> Iterator[dict[str, int]]:
    """Yield the numbers outside all loads as ranges, which are cheaper than a negation.

    >>> list(_gaps({0, 1, 2, 5}))
    [{'gt': 2, 'lt': 5}, {'gt': 5}]
    """
    ordered = sorted(loads)
    yield from ({"gt": low, "lt": high} for low, high in pairwise(ordered) if high - low > 1)
    yield {"gt": ordered[-1]}
