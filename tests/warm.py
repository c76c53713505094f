"""Imports of every command, and a fit: processes forked from here find the compiled code loaded."""

from importlib import import_module

import numpy as np

import fitters
from esjobs.cli.registry import COMMANDS

for _command in COMMANDS.values():
    _command.load.load()
for _module in (
    *("esjobs.speed.chain", "esjobs.records.jobs.ingest", "esjobs.records.jobs.undo", "esjobs.api.factory"),
    *("esjobs.records.jobs.corepower", "esjobs.publish.retention", "esjobs.render.report"),
    *("esjobs.records.ingest.formats.sources", "esjobs.store.duck.store", "esjobs.store.elastic.store"),
    *("esjobs.store.elastic.transport.elasticsearch_client", "pandas", "requests"),
):
    import_module(_module)

_task, _name = (index.ravel() for index in np.meshgrid(np.arange(4), np.arange(12)))
_value = 100.0 * (1 + _task) / (9 + _name) * np.random.default_rng(1).normal(1, 0.02, len(_task))
_buckets = fitters.Buckets.from_columns(
    _task.astype(str), _name.astype(str), _value, jobs=np.full(48, 50.0), rel_var=np.full(48, 1e-4)
)
for _objective in ("paper", "gamma"):
    _result = fitters.fit_speed_factors(_buckets, objective=_objective)
    fitters.LinearResponse(_result).without_tasks()
fitters.fit_line(_result.units.k, _result.units.k_err, np.arange(9.0, 21.0))
