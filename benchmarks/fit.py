"""Time, memory and answers of the speed-factor fit beside what else one could use.

    python -m benchmarks.fit [--sizes 100x500 ...] [--only CONTESTANT ...]
                             [--peers-python PYTHON] [--out benchmarks/results/fit.md]

The peers are in `benchmarks/requirements.txt`; install them into an environment of their own, together with
this package's dependencies, and name its interpreter with --peers-python. Every contestant runs in a process
of its own with one thread, on the same columns (integer codes and values, in memory), warm: the first fit is
on ten buckets.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import child
from benchmarks.machine import describe

Floats = NDArray[np.float64]

SIZES = {
    # units, tasks, buckets per task
    "100x500": (100, 500, 14.7),
    "200x2000": (200, 2000, 15.9),
    "500x2000": (500, 2000, 20.0),
    "300x20000": (300, 20_000, 16.5),
    "1000x100k": (1000, 100_000, 17.2),
    "3000x100k": (3000, 100_000, 17.4),
    "300x1M": (300, 1_000_000, 17.2),
    "1000x1M": (1000, 1_000_000, 17.2),
}
OURS = (
    "fit",
    "fit by Minuit",
    "fit, gamma",
    "fit, floor and reject",
    "copy of the columns",
)
PEERS = {
    "article's way": ("100x500", "200x2000"),
    "Newton-CG": ("100x500", "200x2000"),
    "least_squares": ("100x500", "200x2000", "300x20000"),
    "feols": ("100x500", "200x2000", "300x20000", "1000x100k", "1000x1M"),
    "feols + fixef": ("100x500", "200x2000", "300x20000", "1000x100k", "1000x1M"),
}
LIBRARIES = ("OMP", "OPENBLAS", "NUMBA", "RAYON")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in LIBRARIES}


def columns(size: str) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Task codes, unit codes and values, shuffled; relative error 0.1. The same for every contestant."""
    units, tasks, per_task = SIZES[size]
    rng = np.random.default_rng(1)
    sizes = np.clip(rng.poisson(per_task, tasks), 2, units).astype(np.int32)
    task = np.repeat(np.arange(tasks, dtype=np.int32), sizes)
    unit = rng.integers(0, units, task.size).astype(np.int32)
    _, first = np.unique(task.astype(np.int64) * units + unit, return_index=True)
    rng.shuffle(first)
    task, unit = task[first], unit[first]
    k, level = np.exp(rng.normal(0, 0.3, units)), np.exp(rng.normal(3, 1, tasks))
    value = level[task] / k[unit] * np.maximum(1 + 0.1 * rng.standard_normal(task.size), 0.05)
    return task, unit, value


@dataclass(frozen=True)
class Data:
    task: NDArray[np.int32]
    unit: NDArray[np.int32]
    value: Floats
    n_units: int
    n_tasks: int


Answer = tuple[Floats, dict[str, float]]


def ours(data: Data, objective: str = "paper", **options: Any) -> Answer:
    """From columns to factors and errors."""
    import fitters

    extra = {"jobs": np.ones(data.value.size)} if options.get("weights") == "floor" else {}
    buckets = fitters.Buckets.from_columns(data.task, data.unit, data.value, **extra)
    result = fitters.fit_speed_factors(buckets, objective, **options)  # type: ignore[arg-type]
    return np.log(result.units.k), dict(result.timings)


def copy(data: Data) -> Answer:
    """What reading and writing every column once takes: the floor of any method."""
    for column in (data.task, data.unit, data.value):
        column.copy()
    return np.zeros(data.n_units), {}


def _full(data: Data) -> tuple[Callable[[Floats], float], Callable[[Floats], Floats], Floats]:
    """The article's cost in ln k and ln A, its gradient and the start k = 1."""
    n = data.n_units
    start = np.zeros(n + data.n_tasks)
    logs = np.log(data.value)
    start[n:] = np.bincount(data.task, logs, data.n_tasks) / np.maximum(np.bincount(data.task), 1)

    def ratio(at: Floats) -> Floats:
        found: Floats = data.value * np.exp(at[data.unit] - at[n:][data.task])
        return found

    def cost(at: Floats) -> float:
        return float(np.sum((ratio(at) - 1) ** 2))

    def gradient(at: Floats) -> Floats:
        x = ratio(at)
        slope = 2 * x * (x - 1)
        of_units = np.bincount(data.unit, slope, n)
        return np.concatenate([of_units, -np.bincount(data.task, slope, data.n_tasks)])

    return cost, gradient, start


def articles_way(data: Data) -> Answer:
    """iminuit with k and A as parameters, one k fixed, numeric gradient, MIGRAD."""
    from iminuit import Minuit  # type: ignore[import-untyped]

    n = data.n_units
    level = np.bincount(data.task, data.value, data.n_tasks) / np.bincount(data.task)

    def cost(at: Floats) -> float:
        return float(np.sum((data.value * at[:n][data.unit] / at[n:][data.task] - 1) ** 2))

    minuit = Minuit(cost, np.concatenate([np.ones(n), level]))
    minuit.errordef = Minuit.LEAST_SQUARES
    minuit.fixed["x0"] = True
    minuit.strategy = 0
    minuit.migrad(ncall=10**8)
    k = np.abs(np.asarray(minuit.values)[:n])
    return np.log(k / k.mean()), {"valid": float(minuit.valid)}


def newton_cg(data: Data) -> Answer:
    """SciPy's Newton-CG with gradient and Hessian products in all parameters."""
    from scipy.optimize import minimize

    n = data.n_units
    cost, gradient, start = _full(data)

    def product(at: Floats, vector: Floats) -> Floats:
        x = data.value * np.exp(at[data.unit] - at[n:][data.task])
        bend = 2 * x * (2 * x - 1) * (vector[data.unit] - vector[n:][data.task])
        of_units = np.bincount(data.unit, bend, n)
        return np.concatenate([of_units, -np.bincount(data.task, bend, data.n_tasks)])

    found = minimize(cost, start, jac=gradient, hessp=product, method="Newton-CG", options={"xtol": 1e-9})
    k = np.exp(found.x[:n])
    return np.log(k / k.mean()), {"success": float(found.success)}


def least_squares(data: Data) -> Answer:
    """SciPy's least_squares with a sparse Jacobian."""
    from scipy.optimize import least_squares as search
    from scipy.sparse import csr_array

    n, rows = data.n_units, np.arange(data.value.size)
    _, _, start = _full(data)

    def residual(at: Floats) -> Floats:
        found: Floats = data.value * np.exp(at[data.unit] - at[n:][data.task]) - 1
        return found

    def jacobian(at: Floats) -> Any:
        x = residual(at) + 1
        places = np.concatenate([rows, rows]), np.concatenate([data.unit, n + data.task])
        return csr_array((np.concatenate([x, -x]), places), shape=(rows.size, start.size))

    found = search(residual, start, jacobian, method="trf", tr_solver="lsmr", x_scale=1.0)
    k = np.exp(found.x[:n])
    return np.log(k / k.mean()), {"status": float(found.status)}


def feols(data: Data, *, fixef: bool = False) -> Answer:
    """pyfixest on ln a: demeaned with both effects; with fixef also the factors. No errors of factors."""
    import pandas as pd
    import pyfixest as pf

    frame = pd.DataFrame({"y": np.log(data.value), "task": data.task, "unit": data.unit})
    frame["one"] = np.random.default_rng(0).standard_normal(data.value.size)  # feols wants a slope
    model = pf.feols("y ~ one | task + unit", frame, copy_data=False, store_data=False, fixef_tol=1e-8)
    theta = np.zeros(data.n_units)
    if fixef:
        model._data = frame
        effects = model.fixef()["C(unit)"]
        for name, value in effects.items():
            theta[int(float(name))] = -value
    return theta - np.log(np.exp(theta).mean()), {}


CONTESTANTS: dict[str, Callable[[Data], Answer]] = {
    "fit": ours,
    "fit by Minuit": lambda data: ours(data, search="minuit"),
    "fit, gamma": lambda data: ours(data, "gamma"),
    "fit, floor and reject": lambda data: ours(data, "gamma", weights="floor", robust="reject"),
    "copy of the columns": copy,
    "article's way": articles_way,
    "Newton-CG": newton_cg,
    "least_squares": least_squares,
    "feols": feols,
    "feols + fixef": lambda data: feols(data, fixef=True),
}


def peak_b(*, reset: bool = False) -> int:
    """Largest resident memory of this process since the last reset (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def contest(name: str, size: str, folder: Path) -> None:
    """In a process of its own: warm up, time the best of up to three, write the answer."""
    units, tasks, _ = SIZES[size]
    task, unit, value = (np.load(folder / f"{size}-{what}.npy") for what in ("task", "unit", "value"))
    data = Data(task, unit, value, units, tasks)
    tiny = np.repeat(np.arange(5, dtype=np.int32), 2), np.tile(np.arange(2, dtype=np.int32), 5)
    CONTESTANTS[name](Data(*tiny, np.linspace(1.0, 2.0, 10), 2, 5))
    before = peak_b(reset=True)
    details: dict[str, float] = {}
    repeats = 10 if data.value.size < 1_000_000 else 3
    best, cpu, fit_cpu, spent = np.inf, np.inf, np.inf, 0.0
    after = 0
    for _ in range(repeats):
        began, cpu_began = time.perf_counter(), time.process_time()
        theta, details = CONTESTANTS[name](data)
        took = time.perf_counter() - began
        best, cpu, spent = min(best, took), min(cpu, time.process_time() - cpu_began), spent + took
        after = after or peak_b()
        if name in PEERS:
            fit_cpu = min(fit_cpu, fit_beside(data))
        if spent + took > 20:
            break
    np.save(folder / f"{size}-{name}.npy", theta)
    found = {"seconds": best, "cpu": cpu, "extra_b": after - before, "details": details}
    print(json.dumps(found | ({"fit_cpu": fit_cpu} if name in PEERS else {})))


def fit_beside(data: Data) -> float:
    """Processor seconds of our fit in the process of a peer, in turns with it: the best of three."""
    best = np.inf
    for _ in range(3):
        began = time.process_time()
        ours(data)
        best = min(best, time.process_time() - began)
    return best


def measure(name: str, size: str, folder: Path, python: str) -> dict[str, Any] | None:
    """Run one contestant in a process; None if it failed, with the reason on stderr."""
    command = [python, "-m", "benchmarks.fit", "--contest", name, size, str(folder)]
    try:
        run = child.run(command)
    except RuntimeError as error:
        print(f"{name} at {size}: {error}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def report(results: dict[str, dict[str, dict[str, Any]]], remarks: str) -> str:
    """Make the page from what was measured."""
    machine = describe()
    names = ("numpy", "scipy", "numba", "iminuit")
    versions = ", ".join([f"Python {machine['python']}", *(f"{name} {version(name)}" for name in names)])
    lines = [
        "# Time, memory and answers of the speed-factor fit\n",
        f"Written by `python -m benchmarks.fit` on {machine['cpu']}, {machine['cores']} cores; {versions};",
        "peers as in `benchmarks/requirements.txt`. Seconds are the best of up to ten warm runs. Processor",
        "seconds stand beside them because other work shared the cores, and ratios are made of these: those",
        "of a peer and of our fit in the same process, in turns. Extra",
        "memory is the growth of the peak above the input. The last column is the largest difference of ln k",
        "from our fit in units of 0.1 / sqrt(buckets per unit), about its error; pyfixest fits ln a and",
        "gamma another cost, so that they differ by a fraction of an error.\n",
        "| units x tasks (buckets) | contestant | s | processor s | peer / fit | extra B/bucket | differs |",
        "|---|---|---|---|---|---|---|",
    ]
    for size, found in results.items():
        ours_s = found.get("fit", {}).get("cpu", float("nan"))
        for name, row in found.items():
            sigma = 0.1 / np.sqrt(row["buckets"] / SIZES[size][0])
            compares = name not in ("copy of the columns", "feols") and "differs" in row
            differs = f"{row['differs'] / sigma:.1g}" if compares else ""
            ratio, extra = row["cpu"] / row.get("fit_cpu", ours_s), max(row["extra_b"], 0) / row["buckets"]
            lines.append(
                f"| {size} ({row['buckets']}) | {name} | {row['seconds']:.4g} | {row['cpu']:.4g} "
                f"| {ratio:.3g} | {extra:.0f} | {differs} |"
            )
    return "\n".join([*lines, "", remarks.strip(), ""])


def main() -> None:
    """Run all, or one contestant when called by itself."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contest", nargs=3)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--json", type=Path, default=Path("fit.json"), help="results so far, added to")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)
    if options.contest:
        contest(options.contest[0], options.contest[1], Path(options.contest[2]))
        return
    results = json.loads(options.json.read_text()) if options.json.exists() else {}
    run_all(options, results)
    if options.out:
        old = options.out.read_text(encoding="utf-8") if options.out.exists() else ""
        _, mark, remarks = old.partition("## Remarks")
        options.out.write_text(report(results, mark + remarks), encoding="utf-8")


def run_all(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Run the chosen contestants at the chosen sizes; add to the results and save after each."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for size in options.sizes:
            task, unit, value = columns(size)
            for what, column in (("task", task), ("unit", unit), ("value", value)):
                np.save(folder / f"{size}-{what}.npy", column)
            chosen = [*OURS, *(peer for peer, sizes in PEERS.items() if size in sizes)]
            for name in chosen:
                if options.only and name not in options.only:
                    continue
                python = options.peers_python if name in PEERS else sys.executable
                found = measure(name, size, folder, python)
                if found is None:
                    continue
                reference = folder / f"{size}-fit.npy"
                if reference.exists():
                    theta, mine = np.load(folder / f"{size}-{name}.npy"), np.load(reference)
                    found["differs"] = float(np.abs(theta - mine).max())
                found["buckets"] = int(value.size)
                results.setdefault(size, {})[name] = found
                seconds, extra = found["seconds"], found["extra_b"] / value.size
                print(
                    f"{size:10} {name:22} {seconds:9.4f} s  {found['cpu']:9.4f} cpu  {extra:7.1f} B/bucket",
                    flush=True,
                )
                options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
