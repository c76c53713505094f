"""The real jobs as columns, and their sums."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SUMS = ("n_jobs", "events", "cpu_s", "events_sq", "cpu_s_sq", "events_cpu_s")


def read_jobs(path: Path) -> pd.DataFrame:
    """Finished jobs with events and CPU time; a task is the number in the file's name and the core class."""
    table = pd.read_csv(path)
    if "jobstatus" in table:
        table = table[table["jobstatus"] == "finished"]
    good = (table["cpuconsumptiontime"] > 0) & (table["nevents"] > 0) & (table["actualcorecount"] > 0)
    table = table[good]
    number = path.name.split("_")[-1].split(".")[0]
    cores = np.where(table["actualcorecount"] > 1, "multi", "single")
    return pd.DataFrame(
        {
            "task": [f"{number} {core_class}" for core_class in cores],
            "unit": table["computingsite"].to_numpy(),
            "events": table["nevents"].to_numpy(float),
            "cpu_s": table["cpuconsumptiontime"].to_numpy(float),
        }
    )


def sum_jobs(jobs: pd.DataFrame, by: Sequence[str] = ("task", "unit")) -> Any:
    """Sums over the jobs of each combination of some columns."""
    n, c = jobs["events"], jobs["cpu_s"]
    wide = jobs.assign(n_jobs=1.0, events_sq=n * n, cpu_s_sq=c * c, events_cpu_s=n * c)
    return wide.groupby(list(by), as_index=False)[list(SUMS)].sum()
