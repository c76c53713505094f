"""Creation of indices on first write, and layout checks."""

from collections.abc import Mapping
from typing import Any

from esjobs.core.errors import SchemaError
from esjobs.store.elastic.layout import LAYOUT
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError, ask

_EXISTS = "resource_already_exists_exception"


def ensure_index(cluster: Cluster, name: str, layout: Mapping[str, Any]) -> bool:
    """Create an index, or add missing fields to an older one; return True if created.

    Raises :class:`SchemaError` for a field of another type, except :func:`outdated_fields`.
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
    """Return the fields that an existing index lacks."""
    answer = ask(cluster, f"/{name}/_mapping")
    if answer is None:
        return []
    mapped = answer[name]["mappings"].get("properties", {})
    return [field for field in layout["mappings"]["properties"] if field not in mapped]


def outdated_fields(cluster: Cluster, name: str, layout: Mapping[str, Any]) -> list[str]:
    """Return fields that an earlier version mapped differently; they are used unchanged."""
    answer = ask(cluster, f"/{name}/_mapping")
    mapped = {} if answer is None else answer[name]["mappings"].get("properties", {})
    wanted = layout["mappings"]["properties"]
    return [field for field, kind in wanted.items() if _is_outdated(mapped.get(field, kind), kind)]


def _is_outdated(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """True if the stored field has times in nanoseconds, or texts without doc values."""
    if wanted.get("type") == "date":
        return stored.get("type") == "date_nanos"
    return bool(
        wanted.get("type") == stored.get("type") == "keyword"
        and wanted.get("doc_values", True)
        and not stored.get("doc_values", True)
    )


def require_layout(cluster: Cluster, name: str) -> bool:
    """True if an index or alias exists. Raises :class:`SchemaError` for a foreign layout."""
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
