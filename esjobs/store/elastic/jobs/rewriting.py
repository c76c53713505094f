"""Rewriting of texts in all versions of stored jobs.

Visibility does not change. A document whose identity changes gets another id; the old one is deleted
afterwards.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.store.base import Rewrite
from esjobs.store.elastic.jobs.stamps import stamped
from esjobs.store.elastic.jobs.versions import identity_of, row_of, values_of
from esjobs.store.elastic.layout import SCAN_ONLY
from esjobs.store.elastic.results.lines import documents
from esjobs.store.elastic.transport.writing import Action, delete, index

_TEXTS = tuple(item.name for item in PUT_SCHEMA if pa.types.is_string(item.type))
# Fields of a document about itself, beside those of the job
_CONTROL = ("load", "row", "from", "until", "born", "identity")
_CHUNK = 1000


def containing(text: str) -> dict[str, Any]:
    """Return the query of versions that may contain a text, in any case."""
    literal = "".join(f"\\{character}" if character in "*?\\" else character for character in text)
    inside = {"value": f"*{literal}*", "case_insensitive": True}
    wildcards: list[dict[str, Any]] = [{"wildcard": {name: inside}} for name in _TEXTS]
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
        made = documents(stamped(after, 0), {"load": 0})
        identities = [document.pop("identity") for document in made]
        texts = (
            zip(*(batch.column(name).to_pylist() for name in _TEXTS), strict=True)
            for batch in (before, after)
        )
        written: list[Action] = []
        gone: list[Action] = []
        for hit, document, identity, old, new in zip(some, made, identities, *texts, strict=True):
            if old == new:
                continue
            control = {name: hit["_source"][name] for name in _CONTROL if name in hit["_source"]}
            if "identity" in control:
                control["identity"] = identity
            name = hit["_id"].removesuffix(identity_of(hit)) + identity
            written.append(index(hit["_index"], name, {**document, **control}))
            if name != hit["_id"]:
                gone.append(delete(hit["_index"], hit["_id"]))
        yield written, gone
