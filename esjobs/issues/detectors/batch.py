"""Batch of jobs as detectors take it."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from esjobs.issues.detectors.measured import Floats, Mask
from esjobs.issues.detectors.samples import Samples, samples
from esjobs.issues.detectors.spectra import LoadPhases, load_phases

# scopes whose load is the sum over several cores
_SHARED = ("socket", "node", "job")


class Series(Protocol):
    """Series of jobs by metric: values (jobs, units, samples), and units and scope of each job."""

    @property
    def values(self) -> Mapping[str, NDArray[np.float32]]: ...
    @property
    def units(self) -> Mapping[str, Sequence[Sequence[str]]]: ...
    @property
    def scopes(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def step_s(self) -> Floats: ...


class Batch:
    """Jobs of a block of series; samples and spectra that detectors share are computed once.

    ``cores``: of each job, NaN if unknown; divides the load of nodes, so that limits per core apply.
    """

    def __init__(self, block: Series, cores: Floats) -> None:
        self.block = block
        self._cores = cores

    def has(self, metric: str) -> Mask:
        """Return the mask of jobs with a metric."""
        if metric not in self.block.units:
            return np.zeros(len(self._cores), np.bool_)
        return np.array([bool(units) for units in self.block.units[metric]], np.bool_)

    def present(self, metrics: Sequence[str]) -> tuple[str, ...]:
        """Return the metrics that any job of the block has."""
        values = self.block.values
        return tuple(name for name in metrics if name in values and values[name].shape[1])

    @property
    def step_s(self) -> Floats:
        """Seconds between samples, per job."""
        return self.block.step_s

    @cached_property
    def load(self) -> Samples:
        """Load per core, or of each node as a mean over its cores; NaN if their number is unknown."""
        values = self.block.values["cpu_load"]
        by = np.ones(len(values))
        for number, scope in enumerate(self.block.scopes["cpu_load"]):
            if scope in _SHARED:
                # cores of one unit, as if all units had as many
                by[number] = self._cores[number] / max(1, len(self.block.units["cpu_load"][number]))
        # the survey of the raw load is made anyway
        if (by == 1).all():
            return self.raw_load
        with np.errstate(all="ignore"):
            return samples(np.where(by > 0, values.T / by, np.nan).T.astype(np.float32))

    @cached_property
    def raw_load(self) -> Samples:
        """Load as recorded, of cores or of nodes."""
        return samples(self.block.values["cpu_load"])

    @cached_property
    def phases(self) -> LoadPhases:
        """Spectrum of the load."""
        return load_phases(self.load)

    @cached_property
    def gpu_load(self) -> Samples:
        """Load of GPUs."""
        return samples(self.block.values["gpu_load"])

    @cached_property
    def per_core(self) -> Mask:
        """Mask of jobs whose load is known per core."""
        # a comparison with NaN is false: cores unknown, load per core unknown
        shared = np.array([scope in _SHARED for scope in self.block.scopes["cpu_load"]], np.bool_)
        return ~shared | (self._cores > 0)
