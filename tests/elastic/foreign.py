"""Indices of other programs, made on a real server, and what esjobs reads in them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from esjobs.schema.catalogue import TABLES
from esjobs.store.elastic.fields.field_map import FieldMap
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.servers.server import Server

Document = Mapping[str, Any]

CATALOGUE: Mapping[str, Any] = {
    name: {"type": kind}
    for kind, names in {
        "keyword": ("source", "job_id", "task_id", "queue", "cpu_raw", "processing_type", "state", "user"),
        "long": ("cores", "events"),
        "double": ("cpu_s", "wall_s", "hs06_s"),
        "date_nanos": ("end_time",),
    }.items()
    for name in names
}
"""Mapping of an index that calls its fields as the catalogue does."""


def make_index(
    server: Server,
    name: str,
    properties: Mapping[str, Any],
    documents: Iterable[Document] = (),
    *,
    shards: int = 1,
) -> None:
    """Make an index of another program and fill it."""
    settings = {"number_of_shards": shards, "number_of_replicas": 0}
    server.json("PUT", name, {"settings": settings, "mappings": {"properties": properties}})
    write(server, name, documents)


def write(server: Server, name: str, documents: Iterable[Document]) -> None:
    """Add documents, visible at once; ``_id`` names one."""
    lines: list[str] = []
    for document in documents:
        held = dict(document)
        head = {"_index": name} | ({"_id": held.pop("_id")} if "_id" in held else {})
        lines += [json.dumps({"index": head}), json.dumps(held)]
    if lines:
        answer = server.json("POST", "_bulk?refresh=true", "\n".join([*lines, ""]))
        assert not answer["errors"], str(answer)[:500]


def reader(server: Server, prefix: str, index: str, held: FieldMap) -> ElasticStore:
    """A store that reads jobs from an index of others."""
    return ElasticStore(
        connect(Access(server.url)), f"{prefix}own", jobs_index=index, field_map=held, tables=TABLES
    )


def plain(job: Mapping[str, Any]) -> dict[str, Any]:
    """A job as the document of an index with the catalogue's names."""
    found = {name: value for name, value in job.items() if value is not None}
    found["end_time"] = job["end_time"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return found
