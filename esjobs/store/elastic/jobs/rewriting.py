"""Rewriting of texts in all versions of stored jobs.

Visibility does not change. A document whose identity changes gets another id; the old one is deleted
afterwards.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.store.base import Rewrite
from esjobs.store.batches import TEXTS, texts_of
from esjobs.store.elastic.jobs.stamps import stamped
from esjobs.store.elastic.jobs.versions import identity_of, row_of, values_of
from esjobs.store.elastic.layout import SCAN_ONLY
from esjobs.store.elastic.results.lines import documents
from esjobs.store.elastic.transport.writing import Action, delete, index

# Fields of a document about itself, beside those of the job
_CONTROL = ("load", "row", "from", "until", "born", "identity")
_CHUNK = 1000


def containing(text: str) -> dict[str, Any]:
    """Return the query of versions that may contain a text, in any case."""
    literal = "".join(f"\\{character}" if character in "*?\\" else character for character in text)
    inside = {"value": f"*{literal}*", "case_insensitive": True}
    # documents with a text that is too long for the index may contain it too
    wildcards: list[dict[str, Any]] = [{"wildcard": {name: inside}} for name in TEXTS]
    return {"bool": {"should": [*wildcards, {"term": {SCAN_ONLY: True}}]}}


def changes(
    hits: Sequence[Mapping[str, Any]], rewrite: Rewrite
) -> Iterator[tuple[list[Action], list[Action]]]:
    """Yield actions that write changed documents, and that delete old ids."""
    for start in range(0, len(hits), _CHUNK):
        some = hits[start : start + _CHUNK]
        rows = [row_of(values_of(hit["_source"]), hit["_source"]) for hit in some]
        before = pa.RecordBatch.from_pylist(rows, schema=PUT_SCHEMA)
        after = rewrite(before)
        # stamped anew: the mark follows the texts, and so do fingerprints
        made = documents(stamped(after, 0), {"load": 0})
        written: list[Action] = []
        gone: list[Action] = []
        for hit, document, old, new in zip(some, made, texts_of(before), texts_of(after), strict=True):
            if old == new:
                continue
            action, name = _rewritten(hit, document)
            written.append(action)
            if name != hit["_id"]:
                gone.append(delete(hit["_index"], hit["_id"]))
        yield written, gone


def _rewritten(hit: Mapping[str, Any], document: dict[str, Any]) -> tuple[Action, str]:
    """Return the action that writes a changed document with its visibility, and its id."""
    identity = document.pop("identity")
    control = {name: hit["_source"][name] for name in _CONTROL if name in hit["_source"]}
    if "identity" in control:
        control["identity"] = identity
    # an id ends with the identity; what stands before tells versions of a job apart
    name = hit["_id"].removesuffix(identity_of(hit)) + identity
    return index(hit["_index"], name, {**document, **control}), name
