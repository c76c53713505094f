"""The page about asking an archive in Kibana: a data view of the jobs' index, by field map."""

import json

from dashboards.spec import JobsIndex
from dashboards.targets.saved_objects.jobs_view import runtime_fields
from esjobs.render.bundles import jobs_of
from esjobs.store.elastic.fields.field_map import bundled

INDICES = {
    "atlas-panda": "jobs_archive_*",
    "cms-htcondor": "cms-*",
    "esjobs": "jobs-*",
    "rubin-panda": "panda_prod_*",
}
"""An index of each map, as an example."""

_HEAD = """# Jobs in Kibana

{note}
A data view of the jobs' index gives Lens and Discover every job, with fields that the server computes per
query. Nothing is written to the index; the right to read is enough. The names follow from the [field
map](elasticsearch.md#field-maps).

- `cpu_efficiency`: CPU time over wall-clock time x cores; none where the product is 0
- `cpu_s_per_event`: CPU time per event, in seconds; none without events
- `core_h`: wall-clock time x cores, in hours

`esjobs --jobs-index INDEX --field-map MAP dashboards render` writes the data view of an index and map into
the bundle. The efficiency of many jobs is a ratio of sums, not a mean of `cpu_efficiency`; in Lens:

{formulas}

OpenSearch Dashboards has no such fields; `esjobs query --by queue` gives the same ratios. To make the view by
hand, paste into *Dev Tools*, here for jobs that `esjobs ingest` stored:
"""


def jobs_page(note: str) -> str:
    """Return the page: the formula of each field map that comes with the package, and one view."""
    formulas = "\n".join(f"- {name}: {_efficiency(jobs_of(INDICES[name], name))}" for name in bundled())
    view = _view(jobs_of(INDICES["esjobs"], "esjobs"))
    head = _HEAD.format(note=note, formulas=formulas)
    return f"{head}\n```text\nPOST kbn:/api/data_views/data_view\n{view}\n```\n"


def _efficiency(index: JobsIndex) -> str:
    return f"`{_formula(index)}`, filter `{index.columns['cpu_s'].names[0]} : * and core_h : *`"


def _view(index: JobsIndex) -> str:
    view = {
        "title": index.title,
        "name": "jobs",
        "timeFieldName": index.time,
        "runtimeFieldMap": runtime_fields(index),
    }
    return json.dumps({"data_view": view}, indent=1)


def _formula(index: JobsIndex) -> str:
    """CPU time over core time, in Lens; in hours, as ``core_h``."""
    cpu = index.columns["cpu_s"]
    hours = cpu.factor / 3600
    scaled = f"sum({cpu.names[0]})" if hours == 1 else f"sum({cpu.names[0]}) / {1 / hours:g}"
    return f"{scaled} / sum(core_h)"
