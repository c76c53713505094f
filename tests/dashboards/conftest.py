"""A made-up run in the shape of the result tables, with every kind of verdict and of hostile name."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from dashboards.targets.html.profile import Columns, Curve, Dot, Fold, Label, Part, Point, Tick, Whiskers
from dashboards.targets.html.report import ReportData
from esjobs.core.text import visible
from esjobs.core.verdict_order import verdict_order
from esjobs.core.words import Verdict, status_shown
from esjobs.render.printing import installed_browser
from esjobs.schema.catalogue import table
from esjobs.speed.judging.conclusions import conclude
from esjobs.speed.judging.verdicts import is_confirmed
from tests.dashboards.browser import without
from tests.dashboards.made_tasks import residual_rows, task_rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Rows = list[dict[str, object]]
MakeData = Callable[..., ReportData]

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script><script>alert(3)</script>",
    "{{7*7}}",
    "line\nbreak",
    "datum.x';alert(4)//",
    "https://example.org/image.png",
    "\u202eright to left",
    "x" * 5000,
)
"""Names that a job record may carry and that must be shown as text, nothing else."""

_TYPES = ("all", "evgen", "simul", "reprocessing")
_SUFFIXES = ("", "_MCORE", "_UCORE", "_HIMEM")
_WINDOW = {
    "run": "run-4f1c2a",
    "window_start": pd.Timestamp("2018-08-01", tz="UTC"),
    "window_end": pd.Timestamp("2018-09-01", tz="UTC"),
    "program_version": "0.1.0",
}
_MODELS = (
    "Xeon E5-2650 v2",
    "Xeon E5-2680 v3",
    "Xeon Gold 6130",
    "Opteron 6376",
    "EPYC 7302",
    "Xeon E5-2630 v4",
)
_SLOPE = 0.0768

PULLS = [6, 1, 2, 4, 9, 17, 38, 71, 108, 142, 149, 118, 75, 40, 17, 8, 4, 1, 0, 2]
"""A histogram of pulls with a tail on either side; 812 buckets."""


def frame(name: str, rows: Rows) -> pd.DataFrame:
    """Rows as a frame with exactly the columns of a result table."""
    columns = table(name).column_names
    unknown = {key for row in rows for key in row} - set(columns)
    assert not unknown, f"{name} has no {unknown}"
    return pd.DataFrame(rows, columns=list(columns))


def site_names(count: int) -> list[tuple[str, str]]:
    """Queues with the site behind each; three of four sites have one queue."""
    names: list[tuple[str, str]] = []
    number = 0
    while len(names) < count:
        site = f"GRID-{number:03d}-T{1 + number % 3}"
        names += [(site + suffix, site) for suffix in _SUFFIXES[: 3 if number % 4 == 0 else 1]]
        number += 1
    return names[:count]


def _verdict(deviation: float, error: float, origin: str) -> Verdict:
    if origin == "default":
        return "undeclared"
    if abs(deviation) - 1.645 * error > 0.2:
        return "deviates"
    return "ok" if abs(deviation) + 1.645 * error < 0.2 else "undecided"


ADVICE = "If this contradicts your hardware list, check SMT and overcommit, or run the benchmark again."


def _finding(name: str, corepower: float, deviation: float, error: float, others: int) -> str:
    middle, low, high = (corepower * (1 + deviation + side * 1.645 * error) for side in (0, -1, 1))
    return (
        f"Jobs of {name} ran as fast as {middle:.1f} HS06 per core (90 % interval: {low:.1f} to {high:.1f}), "
        f"on the scale of {others} other sites."
    )


def _site_rows(count: int, kind: str, method: str, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Factors and flags of sites; the last three names stand alone, without k, and too few."""
    factors: Rows = []
    flags: Rows = []
    more = np.random.default_rng(count)
    names = site_names(count)
    for place, hostile in enumerate(HOSTILE if count >= 40 else ()):
        names[3 * place + 1] = (hostile, names[3 * place + 1][1])
    for place, (name, site) in enumerate(names):
        corepower = 10.0 if place % 11 == 5 else round(float(rng.uniform(8, 19)), 2)
        origin = "default" if corepower == 10.0 else "inherited" if place % 9 == 4 else "own"
        wrong = 1.6 if place % 17 == 2 else 0.7 if place % 23 == 7 else 1.0
        k = corepower * _SLOPE * wrong * float(rng.lognormal(0, 0.07))
        error = k * float(rng.uniform(0.01, 0.09))
        jobs = int(rng.lognormal(6, 1.2)) + 50
        island = place >= count - 2 and count > 10
        alone = place == count - 3 and count > 10
        base = {
            **_WINDOW,
            "level": "queue",
            "name": name,
            "processing_type": kind,
            "method": method,
            "n_units": 1 + place % 7,
            "n_tasks": 1 + place % 7,
            "n_jobs": jobs,
            "component": 1 if island else 0,
            "site": site,
        }
        measured = {"k": None if alone else k, "k_err": None if alone else error}
        factors.append(
            base
            | measured
            | {
                "k_err_stat": error / 2,
                "k_err_int": error * 0.8,
                "k_raw": k * float(more.lognormal(0, 0.05)),
                "rho": float(more.uniform(0, 9)) if method == "gamma" and place % 4 else None,
                "sole_link": names[place - 1][0] if place % 13 == 6 else None,
                "method_shift": (shift := float(more.normal(0, 0.01))) if method == "gamma" else None,
                "method_sigmas": shift * k / error if method == "gamma" else None,
                "n_buckets": 4 + place,
                "status": "no common task" if alone else "ok",
                "reason": "no other site ran a job of its tasks" if alone else None,
                "site_guessed": place % 2 == 0,
                "events_per_job": float(rng.lognormal(3, 0.4)),
                "efficiency": float(rng.uniform(0.3, 0.99)),
            }
        )
        if alone:
            continue
        expected = corepower * _SLOPE
        deviation, deviation_err = k / expected - 1, float(np.hypot(error / expected, 0.03))
        verdict: Verdict = "not comparable" if island else _verdict(deviation, deviation_err, origin)
        judged = verdict in {"deviates", "ok", "undecided"}
        stable = place % 5 != 0 and place != 36
        flags.append(
            base
            | measured
            | {
                "corepower": corepower,
                "benchmark": "HS06",
                "origin": origin,
                "expected_k": expected if judged else None,
                "deviation": deviation if judged else None,
                "deviation_err": deviation_err if judged else None,
                "deviation_raw": deviation + float(more.normal(0, 0.05)) if judged else None,
                "deviation_err_stat": 0.5 * deviation_err if judged else None,
                "deviation_err_int": 0.7 * deviation_err if judged else None,
                "deviation_err_line": 0.5 * deviation_err if judged else None,
                "events_per_job": factors[-1]["events_per_job"],
                "sole_link": factors[-1]["sole_link"],
                "verdict": verdict,
                "significant": verdict == "deviates" if judged else None,
                "p_off": {"deviates": 0.97, "ok": 0.01, "undecided": 0.6}.get(verdict),
                "q_value": 0.01 if verdict == "deviates" else 0.6,
                "stable": stable if judged else None,
                "confirmed": is_confirmed(verdict, verdict == "deviates", stable),
                "unstable_under": None if stable or not judged else "method paper",
                "proposed_corepower": corepower * (1 + deviation) if verdict == "deviates" else None,
                "proposed_corepower_err": 0.6 if verdict == "deviates" else None,
                "finding": _finding(name, corepower, deviation, deviation_err, max(count - 9, 2)),
            }
        )
        advised = flags[-1]["confirmed"] is True
        flags[-1]["advice"] = ADVICE if advised else None
        flags[-1]["sentence"] = f"{flags[-1]['finding']}{f' {ADVICE}' if advised else ''}"
    return factors, flags


def _model_rows(kind: str, method: str, rng: np.random.Generator) -> tuple[Rows, Rows]:
    factors: Rows = []
    flags: Rows = []
    for place, name in enumerate(_MODELS):
        k = float(rng.uniform(0.6, 1.5))
        base = {**_WINDOW, "level": "cpu_model", "name": name, "processing_type": kind, "method": method}
        base |= {"k": k, "k_err": 0.04, "component": 0, "n_units": 9, "n_jobs": 400}
        factors.append(
            base | {"status": "ok", "n_buckets": 30 + place, "events_per_job": 20.0, "efficiency": 0.9}
        )
        flags.append(
            base | {"verdict": "undeclared", "origin": "none", "sentence": f"{name} has no reference."}
        )
    return factors, flags


def _line(kind: str, method: str, flags: Rows) -> dict[str, object]:
    return {
        **_WINDOW,
        "level": "queue",
        "processing_type": kind,
        "method": method,
        "benchmark": "HS06",
        "component": 0,
        "status": "ok" if len(flags) >= 10 else "too few sites",
        "reason": None if len(flags) >= 10 else "verdicts need at least 10 sites",
        "slope": _SLOPE,
        "slope_err": 0.0008,
        "tau": 0.07,
        "n_names": len(flags),
        "n_entries": max(len(flags) - 6, 1),
        "n_groups": len(flags) // 2,
        "pearson": 0.71,
        "spearman": 0.69,
        "pearson_groups": 0.74,
        "spearman_groups": 0.7,
    }


def _conclusion(kind: str, method: str, flags: Rows) -> dict[str, object]:
    fit = {**_WINDOW, "level": "queue", "processing_type": kind, "method": method}
    return fit | conclude(flags, "queue", limit=0.2)


def _fit(level: str, kind: str, method: str, factors: Rows) -> dict[str, object]:
    return {
        **_WINDOW,
        "level": level,
        "processing_type": kind,
        "method": method,
        "status": "ok",
        "n_names": sum(row["k"] is not None for row in factors),
        "n_names_without": sum(row["k"] is None for row in factors),
        "n_components": 2,
        "n_units": 41,
        "n_buckets": 812,
        "n_jobs": 11_900,
        "n_jobs_dropped": 700,
        "dof": 700,
        "rel_spread": 0.11,
        "sigma_int": 0.08,
        "sigma_int_err": 0.01,
        "sigma_int_kind": "estimated",
        "minuit_valid": True,
        "chi2": 690.0,
        "n_jobs_excluded": 240,
        "n_rejected": 9,
        "pull_width": 1.06,
    }


def _bars(fit: dict[str, object]) -> Rows:
    if fit["processing_type"] != "all":
        return []
    key = {column: fit[column] for column in ("run", "level", "processing_type", "method")}
    return [
        {**key, "low": n / 2 - 5, "high": n / 2 - 4.5, "n_buckets": count} for n, count in enumerate(PULLS)
    ]


def _components(kind: str, method: str, factors: Rows) -> Rows:
    rows: Rows = []
    for component in sorted({int(str(row["component"])) for row in factors}):
        names = [str(row["name"]) for row in factors if row["component"] == component]
        rows.append(
            {
                **_WINDOW,
                "level": "queue",
                "processing_type": kind,
                "method": method,
                "component": component,
                "n_names": len(names),
                "n_units": 40 - 30 * component,
                "n_jobs": 9000 - 8000 * component,
                "dof": 300,
                "rel_spread": 0.1,
                "minuit_valid": True,
                "names": ", ".join(names),
                "link": f"a task that runs at {names[0]} and at GRID-000-T1" if component else None,
            }
        )
    return rows


def _days() -> pd.DataFrame:
    rows: Rows = []
    for day in range(1, 31):
        counts = {"binned": 420, "not finished": 11, "no events": 2, "efficiency out of range": 1}
        for outcome, jobs in counts.items():
            kind = "binned" if outcome == "binned" else "dropped"
            rows.append({"day": date(2018, 8, day), "outcome": outcome, "kind": kind, "n_jobs": jobs})
        rows.append({"day": date(2018, 8, day), "outcome": "state unknown", "kind": "note", "n_jobs": 3})
    return frame("day_books", rows)


def _runs() -> pd.DataFrame:
    rows: Rows = [
        {
            "run_step": f"run-4f1c2a/{step}",
            "run": "run-4f1c2a",
            "step": step,
            "at": datetime(2018, 9, 2, 3, place, tzinfo=UTC),
            "seconds": 1.25 + place,
            "rows_in": 13_020,
            "rows_out": 812,
            "notes": json.dumps(["state unknown passes"]) if place == 0 else "[]",
            "settings": json.dumps({"minimum jobs per bucket": 20, "limit": 0.2}),
        }
        for place, step in enumerate(("aggregate", "fit", "correlate", "flag"))
    ]
    return frame("runs", rows)


def build(sites: int = 60, types: tuple[str, ...] = _TYPES, seed: int = 3) -> ReportData:
    """The results of a run over so many sites, for each processing type and both methods."""
    rng = np.random.default_rng(seed)
    rows: dict[str, Rows] = {
        name: [] for name in ("factors", "flags", "fit_summaries", "lines", "fits", "components")
    }
    for method in ("gamma", "paper"):
        for kind in types:
            factors, flags = _site_rows(sites, kind, method, rng)
            model_factors, model_flags = _model_rows(kind, method, rng)
            rows["factors"] += factors + model_factors
            rows["flags"] += flags + model_flags
            rows["lines"].append(_line(kind, method, flags))
            rows["fit_summaries"].append(_conclusion(kind, method, flags))
            rows["fits"] += [
                _fit("queue", kind, method, factors),
                _fit("cpu_model", kind, method, model_factors),
            ]
            rows["components"] += _components(kind, method, factors)
    compared = {"confirmed": None, "deviation": None}
    for rank, row in enumerate(sorted(rows["flags"], key=lambda row: verdict_order(compared | row)), 1):
        shown = status_shown(str(row["verdict"]), row.get("confirmed"))
        row |= {"rank": rank, "status_shown": shown, "finding": row.get("finding") or row.get("sentence")}
    residuals = residual_rows(rows["factors"], seed)
    return ReportData(
        factors=frame("factors", rows["factors"]),
        fits=frame("fits", rows["fits"]),
        components=frame("components", rows["components"]),
        lines=frame("lines", rows["lines"]),
        flags=frame("flags", rows["flags"]),
        fit_summaries=frame("fit_summaries", rows["fit_summaries"]),
        tasks=frame("tasks", [_WINDOW | row for row in task_rows(residuals)]),
        residuals=frame("residuals", [_WINDOW | row for row in residuals]),
        pull_histograms=frame("pull_histograms", [bar for fit in rows["fits"] for bar in _bars(fit)]),
        day_books=_days(),
        runs=_runs(),
        provenance={"Store": "made-up grid", "Versions": {"esjobs": "0.1.0", "altair": "6"}},
        jobs_in=30 * 434,
        trends=Part("Over time", "", [], [_curve()], None),
        profiles=[_fold(name) for name in (*HOSTILE[:3], "SITE-001")],
    )


def _curve() -> Curve:
    dots = [Dot(20.0, 30.0, "2018-W31: 7"), Dot(60.0, 20.0, "2018-W32: 9")]
    return Curve(
        "Core hours",
        "By week.",
        100,
        60,
        10,
        40,
        [Tick(30.0, "7")],
        [Tick(20.0, "W31")],
        "M20,30L60,20",
        dots,
    )


def _fold(name: str) -> Fold:
    """A site as the report has it one by one, whatever it is called."""
    table = Columns(["queue", "jobs"], [[visible(name), "12"]], frozenset({1}))
    point = Point(40.0, 20.0, 30.0, 50.0, name, "deviates", "own", confirmed=True)
    labels = [Label(24.0, name, strong=True)]
    band = (35.0, 45.0)
    figure = Whiskers(
        "Deviations", name, 100, 60, 10, 100, 40, band, 40.0, [Tick(40.0, "0 %")], labels, [point]
    )
    return Fold(name, "deviates", [name], [Part("Verdict", "About.", [name], [figure], table)])


@pytest.fixture(scope="session")
def make_data() -> MakeData:
    """The function that makes up a run."""
    return build


@pytest.fixture(scope="session")
def data() -> ReportData:
    """A run over 60 sites."""
    return build()


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """One headless browser for all tests."""
    if find_spec("playwright") is None:
        without("playwright is missing: pip install playwright")
    path = installed_browser()
    if path is None:
        without("chromium is missing: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as control:
        started = control.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()
