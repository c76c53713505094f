"""The page about asking an archive in Kibana: a data view of the jobs' index, by field map."""

import json

from dashboards.spec import JobsIndex
from dashboards.targets.saved_objects.jobs_view import runtime_fields
from esjobs.render.bundles import jobs_of
from esjobs.store.elastic.fields.field_map import bundled, load_field_map

INDICES = {
    "atlas-panda": "jobs_archive_*",
    "cms-htcondor": "cms-*",
    "esjobs": "jobs-*",
    "rubin-panda": "panda_prod_*",
}
"""An index of each map, as an example."""

_HEAD = """# Asking the archive in Kibana

{note}
A data view of the jobs' index itself shows every job in Lens and Discover, with fields that the server
computes when it is asked. Nothing is written to the index, and the right to read it is enough. The
names follow from the [field map](elasticsearch.md#field-maps).

| field | what it is of a job; none where a number is missing |
|---|---|
| `cpu_efficiency` | CPU time over wall-clock time x cores; none where the product is 0 |
| `cpu_s_per_event` | CPU time per event, in seconds; none without events |
| `core_h` | wall-clock time x cores, in hours |

`esjobs --jobs-index INDEX --field-map MAP dashboards render` puts the view into the bundle for Kibana,
with the names of the map. By hand: paste what stands below into Kibana, Dev Tools, with the name of
your index as `title`. OpenSearch Dashboards has no such fields; there and everywhere `esjobs query --by
site` gives the same ratios.

The efficiency of many jobs is no mean of `cpu_efficiency`, in which a job of a minute counts like one
of a day, but a ratio of sums over the jobs that have all three numbers: in Lens a formula and a filter,
which stand with each map. A server computes these fields from each document of the question, so that
the time it takes grows with the jobs of the time range. The tests run no script: their servers are
minimal distributions without Painless.
"""


def jobs_page(note: str) -> str:
    """The page, with the view of each field map that comes with the package."""
    parts = [_HEAD.format(note=note)]
    for name in bundled():
        index = jobs_of(INDICES[name], name)
        parts += [
            f"## {name}\n",
            f"{load_field_map(name).description}. Efficiency of many jobs: `{_formula(index)}`, of "
            f"`{index.known['cpu_s'].names[0]} : * and core_h : *`.\n",
            f"```text\nPOST kbn:/api/data_views/data_view\n{_view(index)}\n```\n",
        ]
    return "\n".join(parts)


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
    cpu = index.known["cpu_s"]
    hours = cpu.factor / 3600
    scaled = f"sum({cpu.names[0]})" if hours == 1 else f"sum({cpu.names[0]}) / {1 / hours:g}"
    return f"{scaled} / sum(core_h)"
