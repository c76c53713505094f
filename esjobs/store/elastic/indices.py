"""Making indices when they are first written to, and refusing those of another layout."""

from collections.abc import Mapping
from typing import Any

from esjobs.core.errors import SchemaError
from esjobs.store.elastic.layout import LAYOUT
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError, ask

_EXISTS = "resource_already_exists_exception"


def ensure_index(cluster: Cluster, name: str, layout: Mapping[str, Any]) -> bool:
    """Make an index; one that an earlier version made gets the fields that it lacks, and our layout.

    Returns True if there was none. Raises :class:`SchemaError` when it has a field of another type, except
    for :func:`outdated_fields`.
    """
    try:
        cluster.call("PUT", f"/{name}", layout)
    except RefusedError as error:
        if error.kind != _EXISTS:
            raise
        _bring_up(cluster, name, layout["mappings"])
        return False
    return True


def _bring_up(cluster: Cluster, name: str, layout: Mapping[str, Any]) -> None:
    mapping = cluster.call("GET", f"/{name}/_mapping")[name]["mappings"]
    _require_readable(name, mapping)
    wanted, mapped = layout["properties"], mapping.get("properties", {})
    for field, kind in wanted.items():
        stored = mapped.get(field, kind)
        if stored.get("type", "object") != kind.get("type", "object") and not _is_outdated(stored, kind):
            raise SchemaError(
                f"field {field} of index {name} is {stored.get('type', 'object')}, this version of esjobs "
                f"has {kind['type']}: name another prefix, or use the version that wrote it"
            )
    missing = {field: kind for field, kind in wanted.items() if field not in mapped}
    # a version of before, which knows nothing of months, refuses our layout
    if missing or mapping["_meta"]["layout"] != LAYOUT:
        cluster.call("PUT", f"/{name}/_mapping", {"_meta": layout["_meta"], "properties": missing})


def missing_fields(cluster: Cluster, name: str, layout: Mapping[str, Any]) -> list[str]:
    """The fields that an index lacks, as an earlier version made it; none of an index that is missing."""
    answer = ask(cluster, f"/{name}/_mapping")
    if answer is None:
        return []
    mapped = answer[name]["mappings"].get("properties", {})
    return [field for field in layout["mappings"]["properties"] if field not in mapped]


def outdated_fields(cluster: Cluster, name: str, layout: Mapping[str, Any]) -> list[str]:
    """The fields of an index that an earlier version mapped in another way, which still works.

    What is mapped cannot be mapped anew: such an index is used as it is. None of an index that is missing.
    """
    answer = ask(cluster, f"/{name}/_mapping")
    mapped = {} if answer is None else answer[name]["mappings"].get("properties", {})
    wanted = layout["mappings"]["properties"]
    return [field for field, kind in wanted.items() if _is_outdated(mapped.get(field, kind), kind)]


def _is_outdated(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a field has its times in nanoseconds, or its texts without what tables show of them."""
    if wanted.get("type") == "date":
        return stored.get("type") == "date_nanos"
    return bool(
        wanted.get("type") == stored.get("type") == "keyword"
        and wanted.get("doc_values", True)
        and not stored.get("doc_values", True)
    )


def require_layout(cluster: Cluster, name: str) -> bool:
    """True if an index exists, or an alias; of an alias only indices of its name are looked at.

    Raises :class:`SchemaError` if another program made it, or a version of esjobs with another layout.
    """
    mappings = ask(cluster, f"/{name}/_mapping")
    if mappings is None:
        return False
    for index, mapping in mappings.items():
        if index.startswith(name):
            _require_readable(index, mapping["mappings"])
    return True


def _require_readable(index: str, mapping: Mapping[str, Any]) -> None:
    layout = mapping.get("_meta", {}).get("layout")
    if layout != LAYOUT:
        raise SchemaError(
            f"index {index} was written by another program or version (layout {layout or 'unknown'}, "
            f"expected {LAYOUT}); load the records again under another prefix"
        )
