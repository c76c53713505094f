"""The jobs themselves as a data view: an archive that is asked directly, with fields computed when asked."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dashboards.spec import IndexFields, JobsIndex
from dashboards.targets.saved_objects.data_views import (
    KINDS,
    META_FIELDS,
    PLAIN_PERCENT,
    field_entry,
    form_of,
    label_of,
)
from dashboards.targets.saved_objects.objects import PREFIX, SavedObject, text_of
from esjobs.core import fields

# Fields of our own index of jobs that are bookkeeping; hidden
INTERNAL = (
    *("identity", "load", "row", "born", "from", "until", "mark_low", "scan_only"),
    *("not_finite", "not_finite.*", "origin_file", "origin_line"),
)


def jobs_view(index: JobsIndex, prefix: str = PREFIX, *, computed: bool = True) -> SavedObject:
    """The data view of the jobs; ``computed``: with runtime fields, which OpenSearch Dashboards lacks."""
    mapped = list(_mapped(index))
    scripts = runtime_fields(index) if computed else {}
    labels = {place: label_of(item) for place, item, _ in mapped} if index.own else {}
    labels |= {name: _MEANINGS[name] for name in scripts}
    forms = _forms(mapped) | {name: _FORMS[name] for name in scripts}
    listed = {place: _entry(place, item, index) for place, item, _ in mapped}
    attributes = {
        "allowNoIndex": True,
        "fieldAttrs": text_of({name: {"customLabel": label} for name, label in labels.items()}),
        "fieldFormatMap": text_of(forms),
        "fields": text_of([*META_FIELDS, *listed.values()]),
        "name": f"{prefix}: jobs",
        "runtimeFieldMap": text_of(scripts),
        "sourceFilters": text_of([{"value": name} for name in (INTERNAL if index.own else ())]),
        "timeFieldName": index.time,
        "title": index.name(prefix),
    }
    return SavedObject("index-pattern", "jobs", attributes, prefix=prefix)


def _mapped(index: JobsIndex) -> Iterator[tuple[str, fields.Field, float]]:
    """Yield the fields of the index, each with that of the catalogue and its factor."""
    for name, source in index.columns.items():
        item = fields.field(name)
        if item.type in KINDS:
            yield from ((place, item, source.factor) for place in source.names)


def _forms(mapped: Iterable[tuple[str, fields.Field, float]]) -> dict[str, Any]:
    # a count in units of others may have a fraction
    exact = ((place, item) for place, item, factor in mapped if factor == 1 or item.type != "integer")
    return {place: form for place, item in exact if (form := form_of(item)) is not None}


def _entry(place: str, item: fields.Field, index: JobsIndex) -> dict[str, Any]:
    kind, known_as, searchable = KINDS[item.type]
    # our jobs keep what a record says; results are milliseconds
    known_as = "date_nanos" if index.own and item.type == "time" else known_as
    # our texts have no doc values, by which a server counts
    counted = not index.own or item.type != "text"
    return field_entry(place, kind, known_as, searchable=searchable, counted=counted)


# Labels of computed fields
_MEANINGS = {
    "cpu_efficiency": "CPU efficiency: CPU time over wall-clock time x cores",
    "cpu_s_per_event": "CPU time per event, s",
    "core_h": "core-hours: wall-clock time x cores, h",
}

_FORMS = {
    "cpu_efficiency": {"id": "percent", "params": {"pattern": PLAIN_PERCENT}},
    "cpu_s_per_event": {"id": "number", "params": {"pattern": "0,0.[000]"}},
    "core_h": {"id": "number", "params": {"pattern": "0,0.[0]"}},
}


def runtime_fields(index: JobsIndex) -> dict[str, Any]:
    """Fields that the server computes of each job: efficiency, CPU time per event, core-hours.

    One is left out where the index has not what it needs.
    """
    computed = {
        "cpu_efficiency": (("cpu_s", "wall_s", "cores"), "wall_s * cores > 0", "cpu_s / (wall_s * cores)"),
        "cpu_s_per_event": (("cpu_s", "events"), "events > 0", "cpu_s / events"),
        "core_h": (("wall_s", "cores"), "wall_s * cores >= 0", "wall_s * cores / 3600"),
    }
    return {
        name: {"script": {"source": _script(index, needed, sense, value)}, "type": "double"}
        for name, (needed, sense, value) in computed.items()
        if all(item in index.columns and index.columns[item].names for item in needed)
    }


def _script(index: JobsIndex, needed: Sequence[str], sense: str, value: str) -> str:
    """Nothing is emitted where a number is missing, so that missing is not 0."""
    taken = "".join(_taken(item, index.columns[item]) for item in needed)
    present = " && ".join(f"{item} != null" for item in needed)
    return f"{taken}if ({present} && {sense}) emit({value});"


def _taken(item: str, mapped: IndexFields) -> str:
    lines = [f"Double {item} = null; "]
    for name in mapped.names:
        # names of other indices may hold anything: none ends the text
        place = "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
        number = f"(double) doc[{place}].value"
        unset = "" if mapped.unset is None else f" && {number} != {float(mapped.unset)!r}"
        lines.append(
            # a field without a mapping is an error, not a missing value
            f"if ({item} == null && doc.containsKey({place}) && doc[{place}].size() > 0{unset}) "
            f"{item} = {number} * {mapped.factor!r}; "
        )
    return "".join(lines)
