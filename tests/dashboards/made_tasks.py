"""Tasks of a made-up run: their start-up time, and what the fit left of their buckets."""

from collections.abc import Iterable

import numpy as np

Rows = list[dict[str, object]]

TASKS: tuple[tuple[str, str, str | None, str | None], ...] = tuple(
    (
        "<b onmouseover=alert(6)>task</b>" if place == 1 else str(15_350_577 + 1_013 * place),
        "multi" if place % 3 else "single",
        ("simul", "evgen", "reprocessing", None)[place % 4],
        "merge" if place == 4 else "reconstruction" if place == 5 else None,
    )
    for place in range(32)
)
"""What tells the tasks apart; one carries a hostile name, two are kinds of work of a split one."""

_KEYS = ("task_id", "core_class", "task_type", "work_kind")
_RHO = (14.0, 0.4, 55.0, 0.0, None, 3.0)


def _rho(place: int) -> float | None:
    return _RHO[place % len(_RHO)]


def residual_rows(factors: Iterable[dict[str, object]], seed: int) -> Rows:
    """Buckets of the headline fit of all types, in two of three tasks each name; the worst ten are ranked."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for level in ("queue", "cpu_model"):
        speed = {
            str(row["name"]): float(str(row["k"]))
            for row in factors
            if row["level"] == level
            and row["processing_type"] == "all"
            and row["method"] == "gamma"
            and row["k"] is not None
        }
        found = [
            _bucket(level, name, k, place, rng)
            for place in range(len(TASKS))
            for name, k in speed.items()
            if rng.uniform() < 0.66
        ]
        ranked = sorted(found, key=lambda row: -abs(float(str(row["pull"] or 0))))[:10]
        for rank, row in enumerate(ranked, start=1):
            row["rank"] = rank
        rows += found
    return rows


def _bucket(level: str, name: str, k: float, place: int, rng: np.random.Generator) -> dict[str, object]:
    events = float(rng.lognormal(3.5, 0.7))
    rho = _rho(place) or 0.0
    expected = 60.0 * (1 + place % 5) * (1 + rho / events) / k
    off = 0.9 if rng.uniform() < 0.01 else float(rng.normal(0, 0.08))
    fitted = rng.uniform() > 0.04
    return {
        "level": level,
        "method": "gamma",
        **dict(zip(_KEYS, TASKS[place], strict=True)),
        "name": name,
        "n_jobs": int(rng.lognormal(5 - place / 12, 1)) + 10,
        "events_per_job": events,
        "cpu_s_per_event": expected / (1 + off),
        "expected_cpu_s_per_event": expected if fitted else None,
        "deviation": off if fitted else None,
        "pull": off / 0.08 if fitted else None,
        "status": ("rejected" if off > 0.5 else "used") if fitted else "one unit",
    }


def task_rows(residuals: Rows) -> Rows:
    """The account of each task that has residuals of sites."""
    present = {tuple(row[key] for key in _KEYS) for row in residuals if row["level"] == "queue"}
    return [
        {
            **dict(zip(_KEYS, task, strict=True)),
            "n_jobs": 9000 - 250 * place,
            "n_queues": 30 - place // 2,
            "decision": _decision(place),
            "reason": None if _rho(place) is not None else "no two lengths of jobs inside any site",
            "rho": (rho := _rho(place)),
            "rho_err": None if rho is None else 0.2 + 0.1 * rho,
            "slope": None if rho is None else -rho / (rho + 40),
            "slope_err": None if rho is None else 0.02,
            "events_per_job": 42.0,
            "events_ratio": 6.5,
            "kinds_ratio": 4.2 if task[3] else None,
            "kinds_share": 0.31 if task[3] else None,
        }
        for place, task in enumerate(TASKS)
        if task in present
    ]


def _decision(place: int) -> str:
    rho = _rho(place)
    if rho is None:
        return "start-up time unknown"
    return "split" if TASKS[place][3] else "corrected" if rho > 1 else "kept"
