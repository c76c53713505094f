"""Fits once when imported: processes forked from here find the compiled code loaded, and die at work."""

import numpy as np

import fitters

_task, _name = (index.ravel() for index in np.meshgrid(np.arange(4), np.arange(12)))
_value = 100.0 * (1 + _task) / (9 + _name) * np.random.default_rng(1).normal(1, 0.02, len(_task))
_buckets = fitters.Buckets.from_columns(
    _task.astype(str), _name.astype(str), _value, jobs=np.full(48, 50.0), rel_var=np.full(48, 1e-4)
)
for _objective in ("paper", "gamma"):
    _result = fitters.fit_speed_factors(_buckets, objective=_objective)
    fitters.LinearResponse(_result).without_tasks()
fitters.fit_line(_result.units.k, _result.units.k_err, np.arange(9.0, 21.0))
