"""Plants mistakes in a copy of the fits, one by one, and shows that the tests catch each.

    python -m benchmarks.mutations [--check] [--only NAME ...] [--out benchmarks/results/mutations.md]

A checker that cannot reject is no checker. Every mistake is a replacement in one file, which must match
exactly once. Most are caught by a file or two of the tests, which are named beside it so that the whole takes
minutes; with --all the complete suite runs against each. --check runs no test: it says whether each mistake
still has its place.

Not on the list: a start from k = 1. In 360 difficult sets the search that follows ended in the same minimum,
so that the convex start only saves time.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Mistake:
    """What is wrong, where, and the tests that should notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MISTAKES = (
    Mistake(
        "model errors 5 % too small",
        "fit/result_tables.py",
        "propagation.k * np.sqrt(variance *",
        "0.95 * propagation.k * np.sqrt(variance *",
        "minimum",
    ),
    Mistake(
        "statistical errors 5 % too small",
        "fit/result_tables.py",
        "stat[units] = propagation.k",
        "stat[units] = 0.95 * propagation.k",
        "minimum",
    ),
    Mistake(
        "interaction errors 5 % too small",
        "fit/result_tables.py",
        "interaction[units] = propagation.k",
        "interaction[units] = 0.95 * propagation.k",
        "minimum",
    ),
    Mistake("sandwich without its correction", "fit/result_tables.py", "* n_total / dof", "", "minimum"),
    Mistake(
        "sandwich below 20 tasks",
        "fit/result_tables.py",
        "SANDWICH_TASKS = 20",
        "SANDWICH_TASKS = 2",
        "minimum",
    ),
    Mistake(
        "search stops at 1 % of sigma",
        "fit/solve.py",
        "SETTLED_STEP = 1e-7",
        "SETTLED_STEP = 1e-2",
        "hard_starts",
    ),
    Mistake(
        "errors for one unit held fixed",
        "fit/covariance.py",
        "variance: Floats = np.maximum(diagonal - 2.0 * share + p @ share, 0.0)",
        "variance: Floats = np.maximum(diagonal - 2.0 * share[0] + diagonal[0], 0.0)",
        "minimum",
    ),
    Mistake("factors not normalised", "fit/covariance.py", "    k /= k.mean()\n", "", "minimum"),
    Mistake("scale fixed by the first factor", "fit/covariance.py", "k /= k.mean()", "k /= k[0]", "minimum"),
    Mistake(
        "components normalised together",
        "layout/components.py",
        "    rank[order] = np.arange(raw)\n",
        "    rank[order] = 0\n",
        "components",
    ),
    Mistake(
        "tasks with one unit kept",
        "layout/components.py",
        "shared = sizes >= 2",
        "shared = sizes >= 1",
        "components or properties",
    ),
    Mistake(
        "dropped rows not counted",
        "layout/buckets.py",
        "self.rows[reason] = n_rows",
        "self.rows[reason] = 0",
        "buckets",
    ),
    Mistake(
        "duplicates averaged as means",
        "layout/buckets.py",
        "total(mass) / total(gather(sums[1], order))",
        "total(gather(values, order)) / rows",
        "buckets",
    ),
    Mistake(
        "weights ignored",
        "fit/factors.py",
        "buckets, weight, rel_var = source, weighting.weight, all_rel_var",
        "buckets, weight, rel_var = source, EMPTY, all_rel_var",
        "minimum",
    ),
    Mistake(
        "weights taken as their roots",
        "fit/weighting.py",
        "weight=_jobs(buckets) if kind",
        "weight=np.sqrt(_jobs(buckets)) if kind",
        "minimum",
    ),
    Mistake(
        "degrees of freedom too many by one",
        "layout/components.py",
        "self.n_buckets - self.n_tasks - self.n_units + 1",
        "self.n_buckets - self.n_tasks - self.n_units + 2",
        "minimum",
    ),
    Mistake(
        "gradient of the paper's cost without x",
        "fit/kernels.py",
        "twice * x * (2.0 * x - 1.0), twice * x * (x - 1.0)",
        "twice * x * (2.0 * x - 1.0), twice * (x - 1.0)",
        "minimum",
    ),
    Mistake(
        "paper's levels for gamma",
        "fit/passes.py",
        "return first / _task_sums(part, weight)",
        "return _task_sums(part, weight * y * y) / first",
        "minimum",
    ),
    Mistake(
        "levels not eliminated from the Hessian",
        "fit/kernels.py",
        "left, score = -bend[i] / norm, slope[i]",
        "left, score = -0.0 * bend[i], slope[i]",
        "minimum",
    ),
    Mistake(
        "response without what the levels take up",
        "fit/passes.py",
        "left = (0.5 * h * _spread(part, middle) - weighted)",
        "left = (0.5 * h * _spread(part, middle) - 0.9 * weighted)",
        "minimum",
    ),
    Mistake(
        "sigma_int from chi2 = buckets",
        "fit/interaction.py",
        "dof = sum(part.dof for part in parts)",
        "dof = sum(part.n_buckets for part in parts)",
        "pulls",
    ),
    Mistake("sigma_int assumed too late", "fit/interaction.py", "LEAST_DOF = 10", "LEAST_DOF = 4", "pulls"),
    Mistake(
        "sigma_int never estimated",
        "fit/interaction.py",
        "    if dof < LEAST_DOF:\n",
        "    if dof >= 0:\n",
        "pulls",
    ),
    Mistake(
        "floor weights without a floor",
        "fit/weighting.py",
        "np.maximum(of_jobs + state.floor**2, LEAST_VARIANCE)",
        "np.maximum(of_jobs, LEAST_VARIANCE)",
        "weighting",
    ),
    Mistake(
        "scatter of jobs not divided by jobs",
        "fit/weighting.py",
        "np.repeat(per_job, np.diff(buckets.ptr)) / jobs",
        "np.repeat(per_job, np.diff(buckets.ptr))",
        "weighting",
    ),
    Mistake(
        "components without what the fit takes up",
        "fit/weighting.py",
        "residual[used] ** 2 / room[used] / v",
        "residual[used] ** 2 / v",
        "weighting",
    ),
    Mistake(
        "nothing rejected",
        "fit/rejection.py",
        "(np.abs(pull) > REJECT_LIMIT * scale)",
        "(np.abs(pull) > np.inf)",
        "weighting",
    ),
    Mistake("too much rejected", "fit/rejection.py", "REJECT_LIMIT = 4.0", "REJECT_LIMIT = 2.0", "weighting"),
    Mistake(
        "a saddle taken for the minimum",
        "fit/solve.py",
        "if last is None and mode == PAPER:",
        "if False:",
        "hard_starts",
    ),
    Mistake(
        "minima on the wrong side not left",
        "fit/solve.py",
        "FAR_RESIDUAL = 0.5",
        "FAR_RESIDUAL = 1e9",
        "hard_starts",
    ),
    Mistake(
        "a higher minimum of Minuit's taken",
        "fit/migrad.py",
        "if own.converged and not found.cost < own.cost * (1.0 - _LOWER):",
        "if False:",
        "migrad",
    ),
    Mistake(
        "HESSE's errors with the scale in them",
        "fit/migrad.py",
        "- 2.0 * scale / cost.penalty, 0.0)",
        ", 0.0)",
        "migrad",
    ),
    Mistake(
        "line weighted with 1 / sigma^2 alone",
        "line/declarations.py",
        "honest * _density(y[:, None] - m, variance[:, None] + tau**2)",
        "honest * _density(y[:, None] - m, variance[:, None] + 0.0 * tau)",
        "line or declarations",
    ),
    Mistake(
        "a site is left in its own line",
        "line/deviations.py",
        "mixture.lines_without(entries.group, n_codes)",
        "mixture.lines_without(entries.group + n_codes, 2 * n_codes)",
        "line or declarations",
    ),
    Mistake(
        "strays judged without what the fit takes up",
        "fit/rejection.py",
        "pull = ln_ratio * np.sqrt(weight / room)",
        "pull = ln_ratio * np.sqrt(weight)",
        "dense",
    ),
    Mistake(
        "degrees of freedom of kinds too many",
        "variance/of_kinds.py",
        " - (np.unique(of_kind[several]).size - 1)",
        "",
        "dense",
    ),
    Mistake(
        "what a unit gives its tasks is taken from it",
        "fixed_cost/of_units.py",
        "shared = own * weight",
        "shared = 0.0 * weight",
        "unit_costs",
    ),
    Mistake(
        "the best scatter alone",
        "variance/of_estimates.py",
        "density = np.exp(ln_likelihood - ln_likelihood.max())",
        "density = 1.0 * (ln_likelihood == ln_likelihood.max())",
        "unit_costs",
    ),
    Mistake(
        "ten jobs are a link",
        "fit/thin_links.py",
        "LEAST_LINKING_JOBS = 50.0",
        "LEAST_LINKING_JOBS = 5.0",
        "thin_links",
    ),
)


def plant(mistake: Mistake, folder: Path) -> None:
    """Copy package and tests, and put the mistake in; raises ValueError unless its place is found once."""
    for package in ("fitters", "esjobs", "dashboards", "scheduler"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    ignored = shutil.ignore_patterns("__pycache__", "test_speed.py")
    for tests in ("fitters", "servers", "golden/messages"):  # the latter two are what plugins of pytest read
        shutil.copytree(ROOT / "tests" / tests, folder / "tests" / tests, ignore=ignored)
    for plugin in ("conftest", "durations", "messages"):
        shutil.copy(ROOT / "tests" / f"{plugin}.py", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    target = folder / "fitters" / mistake.file
    target.write_text(with_mistake(mistake), encoding="utf-8")


def with_mistake(mistake: Mistake) -> str:
    """The file with the mistake in it; raises ValueError unless its place is found once."""
    text = (ROOT / "fitters" / mistake.file).read_text(encoding="utf-8")
    if text.count(mistake.old) != 1:
        raise ValueError(f"{mistake.name}: found {text.count(mistake.old)} times in {mistake.file}, not once")
    return text.replace(mistake.old, mistake.new)


def caught_by(mistake: Mistake, place: Path, *, everything: bool) -> tuple[str, float]:
    """The first test that fails, empty if none does; and the seconds. ``place``: where copies are made."""
    folder = place / "checkout"
    shutil.rmtree(folder, ignore_errors=True)
    plant(mistake, folder)
    chosen = [] if everything else ["-k", mistake.tests]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "tests/fitters"]
    began = time.perf_counter()
    # one folder for all: what a mistake leaves as it is is compiled once
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(place / "kernels"),
    }
    run = subprocess.run(
        [*command, *chosen], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if run.returncode not in (0, 1):
        raise RuntimeError(f"{mistake.name}: pytest ended with {run.returncode}\n{run.stderr[-2000:]}")
    if run.returncode and "FAILED" not in run.stdout:
        raise RuntimeError(f"{mistake.name}: the tests do not even start\n{run.stdout[-2000:]}")
    failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    return (failed[0].split("::")[1].split(" - ")[0].split("[")[0] if failed else ""), seconds


def main() -> int:
    """Plant all, print and write the table; 1 if one was not caught."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--all", action="store_true", help="run the complete suite against each")
    parser.add_argument("--check", action="store_true", help="run nothing, look for the place of each")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.check:
        for mistake in MISTAKES:
            with_mistake(mistake)
        print(f"{len(MISTAKES)} mistakes have their place")
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "shared").symlink_to(ROOT.parent / "shared")  # tests look for real jobs beside them
        for mistake in MISTAKES:
            if options.only and mistake.name not in options.only:
                continue
            test, seconds = caught_by(mistake, place, everything=options.all)
            rows.append((mistake, test))
            print(f"{'caught' if test else 'MISSED':8} {seconds:5.1f} s  {mistake.name}: {test}", flush=True)
    missed = sum(not test for _, test in rows)
    if options.out:
        lines = [
            f"| {mistake.name} | `fitters/{mistake.file}` | {test or '**none**'} |" for mistake, test in rows
        ]
        page = "# Planted mistakes and the test that caught each first\n\n"
        page += f"Written by `python -m benchmarks.mutations{' --all' if options.all else ''}`"
        page += (
            f"; {len(rows) - missed} of {len(rows)} caught.\n\n| mistake | in | caught by |\n|---|---|---|\n"
        )
        options.out.write_text(page + "\n".join(lines) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
