"""Buckets of tasks at units on classes with planted effects."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
NOISE = 0.02


@dataclass(frozen=True)
class World:
    """Columns of buckets, and the truth: effects in ln, positive is faster."""

    codes: tuple[Codes, Codes, Codes]
    value: Floats
    variance: Floats
    mix: Floats
    unit: Floats
    of_class: Floats

    @property
    def speed(self) -> Floats:
        return self.unit + self.mix @ self.of_class


def world(
    rng: np.random.Generator,
    *,
    n_units: int = 60,
    n_classes: int = 12,
    per_unit: int = 3,
    tasks_per_unit: int = 4,
    units_per_task: int = 15,
    interaction: float = 0.10,
    scatter: float = 0.05,
    sorted_by: float = 0.0,
    apart: int = 0,
    common: int = 3,
) -> World:
    """Draw it; ``sorted_by``: correlation of a unit with its classes; ``apart``: units with tasks of their
    own, on ``per_unit`` of the first ``common`` classes.
    """
    every = n_units + apart
    of_class = rng.normal(0, 0.15, n_classes)
    classes = [rng.choice(n_classes, per_unit, replace=False) for _ in range(n_units)]
    classes += [rng.choice(common, min(per_unit, common), replace=False) for _ in range(apart)]
    mix = np.zeros((every, n_classes))
    for at, own in enumerate(classes):
        mix[at, own] = 1.0 / len(own)
    psi = mix @ of_class
    unit = sorted_by * scatter * psi / psi.std()
    unit = unit + np.sqrt(1 - sorted_by**2) * rng.normal(0, scatter, every)
    rows, values = [], []
    n_tasks = round(n_units * tasks_per_unit / units_per_task)
    for task in range(n_tasks + (10 if apart else 0)):
        inside = task < n_tasks
        runs = rng.choice(n_units, units_per_task, replace=False) if inside else np.arange(n_units, every)
        level = rng.normal(0, 2.0)
        for at in runs:
            pair = rng.normal(0, interaction)
            for own in classes[at]:
                rows.append((task, at, own))
                values.append(level - unit[at] - of_class[own] + pair + rng.normal(0, NOISE))
    task_of, unit_of, class_of = np.array(rows, np.int32).T.copy()
    variance = np.full(len(values), NOISE**2)
    return World((task_of, unit_of, class_of), np.array(values), variance, mix, unit, of_class)
