"""Creation of indices on first write, and layout checks."""

from collections.abc import Mapping
from typing import Any

from esjobs.core.errors import SchemaError
from esjobs.store.elastic.layout import LAYOUT
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError, ask

_EXISTS = "resource_already_exists_exception"


def ensure_index(cluster: Cluster, name: str, layout: Mapping[str, Any]) -> bool:
    """Create an index, or add missing fields to an existing one; return True if created.

    Raises :class:`SchemaError` for another layout, or a field of another type.
    """
    try:
        cluster.call("PUT", f"/{name}", layout)
    except RefusedError as error:
        if error.kind != _EXISTS:
            raise
        _add_fields(cluster, name, layout["mappings"]["properties"])
        return False
    return True


def _add_fields(cluster: Cluster, name: str, wanted: Mapping[str, Any]) -> None:
    mapping = cluster.call("GET", f"/{name}/_mapping")[name]["mappings"]
    _require_our_layout(name, mapping)
    mapped = mapping.get("properties", {})
    for field, kind in wanted.items():
        # an answer omits the type of objects
        stored = mapped.get(field, kind)
        if stored.get("type", "object") != kind.get("type", "object"):
            raise SchemaError(
                f"field {field} of index {name} is {stored.get('type', 'object')}, expected {kind['type']}; "
                "use a different prefix, or the version that wrote the index"
            )
    missing = {field: kind for field, kind in wanted.items() if field not in mapped}
    if missing:
        cluster.call("PUT", f"/{name}/_mapping", {"properties": missing})


def require_layout(cluster: Cluster, name: str) -> bool:
    """True if an index or alias exists. Raises :class:`SchemaError` for a foreign layout."""
    mappings = ask(cluster, f"/{name}/_mapping")
    if mappings is None:
        return False
    for index, mapping in mappings.items():
        # an alias of ours on an index of somebody else is no layout of ours
        if index.startswith(name):
            # before anything is added: the index may belong to somebody else
            _require_our_layout(index, mapping["mappings"])
    return True


def _require_our_layout(index: str, mapping: Mapping[str, Any]) -> None:
    layout = mapping.get("_meta", {}).get("layout")
    if layout != LAYOUT:
        raise SchemaError(
            f"index {index} was written by another program or version (layout {layout or 'unknown'}, "
            f"expected {LAYOUT}); load the records again under a different prefix"
        )
