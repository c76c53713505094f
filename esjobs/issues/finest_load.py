"""Load of jobs from the finest metric that tells it: user and system time per core, else ``cpu_load``.

Collectors often record ``cpu_load`` as the load average of a node, which hides idle cores and imbalance, and
beside it the time in user mode of every core or hardware thread.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from esjobs.core.arrays import Floats, Mask
from esjobs.core.metrics import SCOPES
from esjobs.records.series.blocks import Block
from esjobs.records.series.packing import Samples

LOAD, USER, SYSTEM = "cpu_load", "cpu_user", "cpu_system"
_PER_CORE = ("thread", "core")


def user_is_finer(block: Block) -> Mask:
    """Return the mask of jobs whose time in user mode is known per core or thread, their load less finely."""
    n_jobs = len(block.step_s)
    if USER not in block.values:
        return np.zeros(n_jobs, np.bool_)
    loads = block.scopes.get(LOAD, ("",) * n_jobs)
    return np.array(
        [
            scope in _PER_CORE and (not load or SCOPES.index(load) > SCOPES.index(scope))
            for scope, load in zip(block.scopes[USER], loads, strict=True)
        ],
        np.bool_,
    )


def with_finest_load(block: Block, cores: Floats) -> Block:
    """Return a block whose load is that of cores, where :func:`user_is_finer` holds for all of its jobs.

    ``cores``: of each job, NaN if unknown. Two hardware threads of a core are added up, at most 1.
    """
    if not user_is_finer(block).all():
        return block
    jobs = [_job(block, row, float(cores[row])) for row in range(len(block.step_s))]
    most = max(len(units) for units, _ in jobs)
    values = np.full((len(jobs), most, block.n_samples), np.nan, np.float32)
    for row, (_, of_job) in enumerate(jobs):
        values[row, : len(of_job)] = of_job
    units = tuple(names for names, _ in jobs)
    folded = [len(names) < len(block.units[USER][row]) for row, names in enumerate(units)]
    scopes = tuple("core" if of else scope for of, scope in zip(folded, block.scopes[USER], strict=True))
    return replace(
        block,
        values={**block.values, LOAD: values},
        units={**block.units, LOAD: units},
        scopes={**block.scopes, LOAD: scopes},
    )


def _job(block: Block, row: int, cores: float) -> tuple[tuple[str, ...], Samples]:
    units = block.units[USER][row]
    busy = block.values[USER][row, : len(units)]
    # time of the system is work, too; of other units it cannot be added
    if SYSTEM in block.values and block.units[SYSTEM][row] == units:
        busy = busy + block.values[SYSTEM][row, : len(units)]
    # Rounded shares of user and system time may exceed 1 a little.
    busy = np.minimum(busy, 1.0)
    # pairs of threads are known only where a job has all threads of its cores
    if block.scopes[USER][row] != "thread" or len(units) != 2 * cores:
        return units, busy
    pairs = _siblings(units)
    return tuple(units[first] for first, _ in pairs), np.minimum(
        np.array([busy[first] + busy[second] for first, second in pairs], np.float32), 1.0
    )


def _siblings(units: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of threads that share a core.

    Linux numbers the second threads of all cores of a node after the first ones.

    >>> _siblings(["a/0", "a/1", "a/2", "a/3", "b/1", "b/0"])
    [(0, 2), (1, 3), (5, 4)]
    """
    nodes: dict[str, list[int]] = {}
    for position, unit in enumerate(units):
        nodes.setdefault(unit.rpartition("/")[0], []).append(position)
    pairs: list[tuple[int, int]] = []
    for positions in nodes.values():
        ordered = sorted(positions, key=lambda position: _number(units[position]))
        half = len(ordered) // 2
        pairs += zip(ordered[:half], ordered[half:], strict=False)
    return pairs


def _number(unit: str) -> tuple[int, str]:
    number = unit.rpartition("/")[2]
    return (int(number) if number.isdigit() else 0), number
