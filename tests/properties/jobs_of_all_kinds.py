"""Hypothesis strategies for dirty jobs: what is missing, zero, at a limit, written in several ways."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

from esjobs.api.session import Session
from esjobs.core.arrow import PUT_SCHEMA

MODELS: dict[str | None, str | None] = {
    "s+Intel(R) Xeon(R) CPU           E5-2650 v2 @ 2.60GHz 20480 KB": "Intel Xeon E5-2650 v2",
    "Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz": "Intel Xeon E5-2650 v2",
    "Intel Xeon E5-2650v2": "Intel Xeon E5-2650 v2",
    "s+AMD EPYC 7302 16-Core Processor 512 KB": "AMD EPYC 7302",
    "s+UNKNOWN": None,
    "ARM": None,
    None: None,
}
"""CPU strings as jobs report them, and the model that each names."""

FIRST = datetime(2018, 8, 10, tzinfo=UTC)
N_DAYS = 4
_US = timedelta(microseconds=1)
_EDGES = [FIRST + timedelta(days=day) + shift for day in range(1, N_DAYS) for shift in (-_US, timedelta(0))]


def _numbers(*special: float | None, largest: float) -> st.SearchStrategy[float | None]:
    usual = st.floats(0, largest, allow_nan=False, allow_subnormal=False).map(lambda x: round(x, 3))
    return st.one_of(usual, usual, usual, st.sampled_from(special))


_TYPES = ["simul", "simul", "pile", None, "mergesim", "simul*", "_"]
_TYPES += ["merge", "Merge", "pmerge", "panda-client-1.5", "HammerCloud-fct", "gangarobot", "ganga"]

JOBS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "task_id": st.sampled_from(["1", "2", "2", "13332803", None]),
        "queue": st.sampled_from(["CERN", "RAL", "cern", "IN2P3-CC_CL7"]),
        "cpu_raw": st.sampled_from(list(MODELS)),
        "processing_type": st.sampled_from(_TYPES),
        "user": st.sampled_from(["me", "you", None, "' OR 1=1 --", "%", "*"]),
        "state": st.sampled_from(["finished"] * 6 + [None, "failed", "FINISHED", "closed"]),
        "end_time": st.one_of(
            st.integers(0, N_DAYS * 86_400 - 1).map(lambda s: FIRST + timedelta(seconds=s)),
            st.sampled_from(_EDGES),
        ),
        "cores": st.sampled_from([1, 1, 1, 2, 8, 8, 0, None]),
        "events": st.one_of(st.integers(1, 2000), st.sampled_from([0, None, 100_000])),
        "cpu_s": _numbers(0.0, None, largest=2e5),
        "wall_s": _numbers(0.0, None, 60.0, 60.001, 30 * 86_400.0, 5.0, largest=1e5),
        "hs06_s": _numbers(0.0, None, largest=1e6),
    }
)


def batch_of(jobs: Sequence[Mapping[str, Any]], prefix: str = "") -> pa.RecordBatch:
    """Jobs in the columns that a store takes; numbered, so that each is another job."""
    rows = [
        {
            "source": "test",
            "job_id": f"{prefix}{number}",
            "origin_file": "made up",
            "origin_line": number,
            **job,
        }
        for number, job in enumerate(jobs, 1)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=PUT_SCHEMA)


def put(session: Session, jobs: Sequence[Mapping[str, Any]], load: str = "load") -> None:
    """Store jobs as one load."""
    session.store.put_jobs([batch_of(jobs, load)], load)


def frame_of_jobs(jobs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The same jobs for the second implementation, with the fields that follow from others."""
    frame = pd.DataFrame(list(jobs)).astype({"cores": "float64", "events": "float64"})
    for name in ("cpu_s", "wall_s", "hs06_s"):
        frame[name] = frame[name].astype("float64")
    for name in ("task_id", "cpu_raw", "processing_type", "state", "user"):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    frame["day"] = pd.to_datetime(frame["end_time"], utc=True).dt.date
    frame["cpu_model"] = [MODELS[raw] for raw in frame["cpu_raw"]]
    frame["core_class"] = [
        None if not cores >= 1 else "single" if cores == 1 else "multi" for cores in frame["cores"]
    ]
    return frame
