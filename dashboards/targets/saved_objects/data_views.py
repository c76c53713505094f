"""Result tables as data views: what a server shows of an index when people look for themselves.

The list of fields is written, because our mappings are known: without it OpenSearch Dashboards writes one
when it is first opened, several panels at once, of which some fail.
"""

import json
from dataclasses import replace
from typing import Any

from dashboards.spec import View
from dashboards.targets.saved_objects.objects import PREFIX, SavedObject, text_of
from dashboards.targets.vegalite.index import index_of, is_latest
from esjobs.core.fields import Field, FieldType
from esjobs.schema.catalogue import table

# By type of a column: what a server calls it, what the index calls it, whether it can be searched. Tables
# show all of them; nobody searches in sentences.
KINDS: dict[FieldType, tuple[str, str, bool]] = {
    "keyword": ("string", "keyword", True),
    "text": ("string", "keyword", False),
    "integer": ("number", "long", True),
    "number": ("number", "double", True),
    "boolean": ("boolean", "boolean", True),
    "time": ("date", "date", True),
    "day": ("date", "date", True),
}

# Fields of the index that are no columns; hidden
INTERNAL = (
    *("generation", "partition", "scan_only", "not_finite", "not_finite.*", "written", "writer", "begun"),
    *("over", "n_written"),
)

# Relative numbers that people read in percent
_PERCENT = {
    *("deviation", "deviation_err", "deviation_raw", "deviation_err_stat", "deviation_err_int"),
    *("deviation_err_line", "efficiency", "jobs_share", "share", "share_err", "kinds_share", "method_shift"),
    *("estimate_level", "tau", "sigma_int", "sigma_int_err", "sigma_type", "sigma_type_err", "sigma_class"),
    "p_off",
    *("cpu_efficiency", "cpu_efficiency_unclipped", "efficiency_expected", "efficiency_low"),
    *("efficiency_high", "failed", "failed_expected", "failed_low", "failed_high", "cpu_share"),
    *(
        "sigma_class_err",
        *("mix_share", "deviation_low", "deviation_high"),
        "sigma_cost",
        "sigma_cost_err",
        "sigma_inner",
        "spread",
        "rel_spread",
        "cost_factor_err",
    ),
}

# Columns with a sign
_SIGNED = {"deviation", "deviation_raw", "deviation_low", "deviation_high", "method_shift"}

# Patterns of the servers, one for all sizes of a number; their minus is a hyphen
PLAIN_PERCENT, SIGNED_PERCENT = "0.0 %", "+0.0 %"

# Speed factors and their errors, which are near 1
_FACTORS = {
    *("k", "k_err", "k_err_stat", "k_err_sandwich", "k_err_int", "k_err_model", "k_err_type", "k_err_class"),
    *("k_err_cost", "k_raw", "k_low", "k_high", "expected_k", "k_before", "mix_k", "mix_k_err"),
}

# Benchmark scores per core, and the width of pulls
_TWO_DECIMALS = {
    "pull_width",
    *("corepower", "corepower_before", "corepower_from_records", "corepower_parent", "served_corepower"),
    *("parent_corepower", "proposed_corepower", "proposed_corepower_err"),
    *("estimate", "estimate_low", "estimate_high"),
}

# Units of hours, of which nobody reads more than a tenth
_HOURS = ("h", "core h", "GPU h")

# Times of the clock; every other time is the end of a day
_MOMENTS = {"at", "loaded_at", "imported_at", "first_end", "last_end"}


def data_view(view: View, prefix: str = PREFIX) -> SavedObject:
    """The data view of the index in which the rows of a view are."""
    rows_table = table(view.table)
    index = index_of(view, prefix)
    of_latest = index.startswith(f"{prefix}-latest-") and view.table != "latest_runs"
    attributes: dict[str, Any] = {
        "allowNoIndex": True,
        "fieldAttrs": text_of(
            {column.name: {"customLabel": label_of(column)} for column in rows_table.columns}
        ),
        "fieldFormatMap": text_of(
            {column.name: form for column in rows_table.columns if (form := form_of(column)) is not None}
        ),
        "fields": text_of([*META_FIELDS, *(listed(column) for column in rows_table.columns)]),
        "name": f"{prefix}: {rows_table.name}" + (", latest run" if of_latest else ""),
        "runtimeFieldMap": "{}",
        # hides them in Discover, where people look at documents
        "sourceFilters": text_of([{"value": name} for name in INTERNAL]),
        "title": index,
    }
    # the latest run is shown whole, whatever range is chosen
    if rows_table.time and not is_latest(view):
        attributes["timeFieldName"] = rows_table.time
    return SavedObject("index-pattern", index.removeprefix(f"{prefix}-"), attributes, prefix=prefix)


def label_of(column: Field) -> str:
    """Return the label of a column.

    >>> from esjobs.schema.catalogue import table
    >>> [label_of(table("flags").column(name)) for name in ("deviation_err", "n_jobs", "site", "k")]
    ['deviation, standard error', 'jobs (number)', 'Site', 'k']
    """
    unit = f", {column.unit}" if column.unit in _UNITS else ""
    if column.name in _LABELS:
        return _LABELS[column.name] + unit
    if column.name.startswith("n_"):
        return column.name.removeprefix("n_").replace("_", " ") + " (number)"  # columns cut long labels
    if column.name.endswith("_err"):
        return column.name.removesuffix("_err").replace("_", " ") + ", standard error"
    return column.name.replace("_", " ") + unit


# Units that a label tells; counts say themselves what they count
_UNITS = ("s", "core s", "B", "s²", "events s", "events²")

_LABELS = {
    "site": "Site",
    "p_off": "how sure it is off",
    "q_value": "share of false ones among those as sure",
    "cpu_s": "CPU time",
    "wall_s": "wall-clock time",
    "core_s": "wall-clock time x cores",
    "corepower": "declared corepower",
    "corepower_before": "declared corepower in the run before",
    "k_before": "k in the run before",
    "verdict_before": "verdict in the run before",
    "status_shown_before": "standing in the run before",
    "proposed_corepower": "corepower to declare",
    "events_sq": "sum of squared events",
    "cpu_model": "CPU model",
}


# Columns of names that have a page over HTTP, with its address there
_PAGES = {
    **{name: name for name in ("queue", "site", "user", "project")},
    "job_id": "job",
    "task_id": "task",
    "cpu_model": "cpu",
}


def linked(each: SavedObject, base_url: str) -> SavedObject:
    """A data view in whose cells names lead to their page below an address; other objects as they are."""
    if each.type != "index-pattern" or not base_url:
        return each
    forms = json.loads(each.attributes["fieldFormatMap"])
    for field in json.loads(each.attributes["fields"]):
        if (name := field["name"]) in _PAGES:
            address = f"{base_url}/{_PAGES[name]}/{{{{value}}}}"
            shown = {"type": "a", "urlTemplate": address, "labelTemplate": "{{value}}"}
            forms[name] = {"id": "url", "params": {**shown, "openLinkInCurrentTab": True}}
    return replace(each, attributes={**each.attributes, "fieldFormatMap": text_of(forms)})


def form_of(column: Field) -> dict[str, Any] | None:
    """Return the number or time format of a column; None for the server's default.

    >>> from esjobs.schema.catalogue import table
    >>> form_of(table("flags").column("deviation"))["params"]
    {'pattern': '+0.0 %'}
    """
    if column.type in ("time", "day"):
        pattern = "YYYY-MM-DD HH:mm" if column.name in _MOMENTS else "YYYY-MM-DD"
        return {"id": "date", "params": {"pattern": pattern, "timezone": "UTC"}}
    is_share = column.name in _PERCENT or column.name.endswith("_frac")
    patterns = (
        (column.name in _SIGNED, "percent", SIGNED_PERCENT),
        (column.type == "number" and is_share, "percent", PLAIN_PERCENT),
        (column.name in _TWO_DECIMALS, "number", "0.00"),
        (column.unit in _HOURS, "number", "0,0.0"),
        (column.name in _FACTORS, "number", "0.000"),
        (column.type == "integer", "number", "0,0"),
        (column.type == "number", "number", "0,0.[000]"),
    )
    # the first one that applies: a score is a number, too
    found = ({"id": kind, "params": {"pattern": pattern}} for applies, kind, pattern in patterns if applies)
    return next(found, None)


def listed(column: Field) -> dict[str, Any]:
    """A column in the list of fields."""
    kind, known_as, searchable = KINDS[column.type]
    return field_entry(column.name, kind, known_as, searchable=searchable)


def field_entry(
    name: str, kind: str, known_as: str, *, searchable: bool = True, counted: bool = True
) -> dict[str, Any]:
    """An entry of the list of fields; ``counted``: whether aggregations know it."""
    return {
        "aggregatable": counted,
        "count": 0,
        "esTypes": [known_as],
        "name": name,
        "readFromDocValues": counted,
        "scripted": False,
        "searchable": searchable,
        "type": kind,
    }


# Fields of every document
META_FIELDS: tuple[dict[str, Any], ...] = (
    {**field_entry("_id", "string", "_id"), "readFromDocValues": False},
    {**field_entry("_index", "string", "_index"), "readFromDocValues": False},
    field_entry("_source", "_source", "_source", searchable=False, counted=False),
)
