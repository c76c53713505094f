"""Are honest sites accused, wrong ones found, and do the errors hold, whatever assumption a grid breaks?

    python -m benchmarks.honesty [--seeds 5] [--only WORD] [--out benchmarks/results/honesty.md]

Each grid goes through everything that users run: records are ingested, aggregated, fitted, compared and
judged; the tables of the run are read. See ``grids`` for what is planted.
"""

import argparse
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

import esjobs
from benchmarks.grids import Grid, Truth, make_jobs, window
from esjobs import Settings
from esjobs.core.window import Window
from esjobs.schema.speed import METHOD_VERSION
from esjobs.speed.settings import FitSettings

Floats = npt.NDArray[np.float64]
JUDGED = ("deviates", "ok", "undecided")

BASE = Grid()
SURVIVORS = BASE.but(limited=8, jobs=60, rho=1.0, lengths=3.0, rho_scatter=0.15)
ALIKE = (0.10, 0.20, 0.25, 0.30)
CASES: dict[str, Grid] = {
    "base": BASE,
    "no interaction": BASE.but(interaction=0.0),
    "10 % interaction": BASE.but(interaction=0.10),
    "noise 0.5": BASE.but(noise=0.5),
    "noise 0.7": BASE.but(noise=0.7),
    "bimodal": BASE.but(bimodal=0.5),
    "stray 2 %": BASE.but(stray=0.02),
    "5 tasks a site": BASE.but(tasks=14),
    "thin": BASE.but(sparse=0.8),
    **{f"{jobs} a bucket": BASE.but(jobs=jobs, noise=0.5) for jobs in (1, 2, 3, 5)},
    **{
        f"{jobs} a bucket, garbage": BASE.but(jobs=jobs, noise=0.5, garbage=3, tasks=120)
        for jobs in (1, 2, 3, 5, 20)
    },
    **{
        f"{jobs} a bucket, rho": BASE.but(jobs=jobs, rho=1.0, lengths=4.0, tasks=120)
        for jobs in (1, 2, 3, 5, 20)
    },
    "rho 1, lengths 3": BASE.but(rho=1.0, lengths=3.0),
    "rho 1, lengths 11, few jobs": BASE.but(rho=1.0, lengths=11.0, jobs=8, length_scatter=0.15),
    "rho 2, lengths 11, fewer jobs": BASE.but(rho=2.0, lengths=11.0, jobs=8, length_scatter=0.06),
    "small rho, lengths 11": BASE.but(rho=0.1, lengths=11.0, jobs=10, length_scatter=0.2),
    "rho 0, lengths 11": BASE.but(rho=0.0, lengths=11.0),
    **{
        f"rho by site e^{size}": BASE.but(rho=1.0, lengths=3.0, rho_scatter=size) for size in (0.15, 0.3, 0.6)
    },
    **{f"rho by site e^{size}, equal lengths": BASE.but(rho=1.0, rho_scatter=size) for size in (0.3, 0.6)},
    "type 10 %": BASE.but(type_effect=0.10),
    "type 20 %": BASE.but(type_effect=0.20),
    "type 10 %, 6 types": BASE.but(type_effect=0.10, types=6),
    "type 10 %, one type": BASE.but(type_effect=0.10, types=1),
    "core class 10 %": BASE.but(core_effect=0.10),
    "core class 20 %": BASE.but(core_effect=0.20),
    "type and core class 10 %": BASE.but(core_effect=0.10, type_effect=0.10),
    "wrong events at 3": BASE.but(wrong_events=3, rho=1.0, lengths=3.0),
    "wrong events at 3, no rho": BASE.but(wrong_events=3, lengths=3.0),
    "garbage at 3": BASE.but(garbage=3),
    "garbage at 3, rho": BASE.but(garbage=3, rho=1.0, lengths=3.0),
    **{
        f"{share:.0%} wrong alike".replace("%", " %"): BASE.but(misdeclared=0.0, alike=share)
        for share in ALIKE
    },
    **{
        f"{share:.0%} wrong alike, 5 tasks a site".replace("%", " %"): BASE.but(
            misdeclared=0.0, alike=share, tasks=14
        )
        for share in ALIKE
    },
    "survivors at 8": SURVIVORS,
    "survivors at 8, thin": SURVIVORS.but(sparse=0.5),
    "survivors at 8, no rho": BASE.but(limited=8, jobs=60),
    "two speeds at 8": BASE.but(two_speeds=8),
    "two speeds at 8, rho": BASE.but(two_speeds=8, rho=1.0, lengths=3.0),
    "two speeds at 8, 5 tasks a site": BASE.but(two_speeds=8, tasks=14),
    "wrong cores at 8": BASE.but(wrong_cores=8),
    "wrong cores at 8, all multi-core": BASE.but(wrong_cores=8, multi=1.0),
    "overstating 30 %": BASE.but(overstating=0.30, misdeclared=0.0),
    "overstating 45 %": BASE.but(overstating=0.45, misdeclared=0.0),
    **{
        f"tasks drift by {size:.0%}".replace("%", " %"): BASE.but(days=28, task_drift=size)
        for size in (0.15, 0.30, 0.60)
    },
    **{
        f"half of the tasks {size:.0%} slower on half of {what}".replace("%", " %"): grid.but(**{knob: size})
        for what, knob, grid in (
            ("the CPU models", "wide_vectors", BASE.but(models=4)),
            ("the sites", "load", BASE),
        )
        for size in (0.15, 0.30)
    },
    **{
        f"CPU time ~ events^{power}, lengths {lengths:.0f}": BASE.but(power=power, lengths=lengths)
        for power in (0.8, 0.9, 1.15)
        for lengths in (3.0, 11.0)
    },
    "28 days": BASE.but(days=28),
}
WEEKS: dict[str, Grid] = {
    f"rho by site e^{size}, last of four weeks": BASE.but(
        days=28, jobs=80, rho=1.0, lengths=3.0, rho_scatter=size
    )
    for size in (0.0, 0.05, 0.15, 0.3)
}
"""Grids fitted week by week, with the start-up times of earlier weeks; the last week is judged."""


@dataclass
class Tally:
    """Sums over the grids of one case."""

    honest: int = 0
    judged: int = 0
    accused: int = 0
    sent_wrongly: int = 0
    planted: int = 0
    planted_judged: int = 0
    found: int = 0
    sendable: int = 0
    broken: int = 0
    broken_implausible: int = 0
    broken_accused: int = 0
    moves: list[Floats] = field(default_factory=list)
    pulls: list[Floats] = field(default_factory=list)
    estimates: list[Floats] = field(default_factory=list)
    """Of what a site should declare: (ln estimate - truth) / error, the error that of its interval."""
    fits: list[dict[str, Any]] = field(default_factory=list)
    tasks: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def row(self) -> list[str]:
        pulls = np.concatenate(self.pulls) if self.pulls else np.array([np.nan])
        moves = np.concatenate(self.moves) if self.moves else np.array([np.nan])
        share = self.accused / max(self.judged, 1)
        told = ("sigma_int", "sigma_type", "sigma_class", "sigma_cost", "jobs_share")
        mean = {name: _mean(row.get(name) for row in self.fits) for name in told}
        estimates = np.concatenate(self.estimates) if self.estimates else np.array([np.nan])
        held = [f"{np.mean(np.abs(estimates) < limit):.2f}" for limit in (0.9945, 1.6449, 1.96)]
        return [
            f"{self.accused}/{self.judged} ({share:.1%}; {self.sent_wrongly} sendable)",
            f"{self.found}/{self.planted_judged}/{self.planted} ({self.sendable})",
            f"{pulls.std():.2f}",
            f"{np.mean(np.abs(pulls) < 1):.2f}",
            f"{np.mean(np.abs(pulls) < 1.96):.3f}",
            f"{100 * moves.std():.2f}",
            ", ".join(f"{name} {value:.3f}" for name, value in mean.items() if np.isfinite(value)),
            ", ".join(f"{count} {what}" for what, count in sorted(self.tasks.items()) if count),
            f"{self.broken_implausible}/{self.broken_accused}/{self.broken}" if self.broken else "",
            f"{self.seconds / max(len(self.fits), 1):.1f}",
            str(len(self.fits)),
            f"{self.coverage_error():.3f}",
            " / ".join(held) if np.isfinite(estimates).any() else "",
        ]

    def coverage_error(self, draws: int = 1000) -> float:
        """Standard error of the 95 % coverage, from grids drawn again: pulls of one grid go together."""
        if len(self.pulls) < 2:
            return float("nan")
        inside = np.array([np.sum(np.abs(pulls) < 1.96) for pulls in self.pulls])
        number = np.array([pulls.size for pulls in self.pulls])
        drawn = np.random.default_rng(1).integers(0, inside.size, (draws, inside.size))
        return float(np.std(inside[drawn].sum(axis=1) / number[drawn].sum(axis=1)))


def _mean(values: Iterable[Any]) -> float:
    known = [float(value) for value in values if value is not None and np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


HEADER = """# Honest queues on grids that break what the fits assume

Written by `python -m benchmarks.honesty`, method version {method}, headline fit of all
types. A grid has 40 queues and 60 tasks of three types, single- and multi-core, each at 15 queues with
around 20 jobs a bucket; jobs scatter by 30 %, queue and task by 5 %; one queue in ten declares wrong by 1.3
to 2; what a row changes says `benchmarks/grids.py`. Accused: verdict `deviates`; sendable: confirmed. Width
and shares are of the pulls (ln k - truth) / error of queues whose records are right, 1, 0.68 and 0.95 if
errors are right; the error of the 95 % share is a bootstrap over grids, for the pulls of one grid share its
components. "Estimate": how often the 68, 90 and 95 % intervals of the corepower that a queue should declare
hold it (k of the truth in the scale of the median honest declaration). Components are means over the
grids. A grid of one type is judged twice: by the factors of all types, which a run of one type does not claim
to know, and by those of its type. "Last of four weeks": four fits of a week each, of which the last knows the
start-up times of the others.

{table}
"""
COLUMNS = (
    "case",
    "honest accused / judged",
    "found / judged / planted (sendable)",
    "width",
    "68 %",
    "95 %",
    "rms ln k, %",
    "components",
    "units of A",
    "broken: implausible / accused / all",
    "s",
    "grids",
    "95 % +-",
    "estimate: 68 / 90 / 95 %",
)


def run_grid(
    grid: Grid, seed: int, settings: Mapping[str, Any], *, weekly: bool = False
) -> tuple[Truth, dict[str, Any]]:
    """Take a grid through everything and read the tables of its run, or of that of the last week."""
    jobs, truth = make_jobs(grid, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.parquet"
        pq.write_table(jobs, path)
        chosen = Settings(fit=FitSettings(methods=("gamma",), **settings))
        with esjobs.open(f"duckdb:{folder}/store.duckdb", settings=chosen) as session:
            session.ingest("jobs", path)
            for part in _weeks(grid.days) if weekly else (window(grid.days),):
                session.run(part)
            found = {
                name: session.tables[name].to_pandas()
                for name in ("flags", "factors", "fits", "tasks", "fit_summaries", "residuals")
            }
    return truth, found


def _weeks(days: int) -> Iterator[str]:
    first = Window.parse(window(days)).start
    for week in range(days // 7):
        start, end = (first + timedelta(days=7 * number) for number in (week, week + 1))
        yield f"{start:%Y-%m-%d}/{end:%Y-%m-%d}"


def add(tally: Tally, truth: Truth, found: Mapping[str, Any], *, of_type: bool = False) -> None:
    """Count one run; ``of_type``: pulls are those of the factors for the first type."""
    true_k = truth.k_of_type if of_type else truth.k

    def headline(name: str) -> Any:
        table = found[name]
        chosen = (table.level == "queue") & (table.processing_type == "all") & (table.method == "gamma")
        return table[chosen]

    flags = headline("flags").set_index("name").reindex(truth.name)
    factors = headline("factors").set_index("name").reindex(truth.name)
    fit = headline("fits").iloc[0]
    honest = (truth.wrong == 1) & ~truth.broken
    wrong = (truth.wrong != 1) & ~truth.broken
    # A site whose jobs are all in tasks of its own has no row, and so no verdict.
    verdict = flags.verdict.astype(object).fillna("").to_numpy(object)
    deviates = verdict == "deviates"
    confirmed = flags.confirmed.fillna(False).to_numpy(bool)
    judged = np.isin(verdict.astype(str), JUDGED)
    right_way = np.sign(flags.deviation.fillna(0).to_numpy(float)) == -np.sign(np.log(truth.wrong))
    tally.honest += int(honest.sum())
    tally.judged += int((judged & honest).sum())
    tally.accused += int((deviates & honest).sum())
    tally.sent_wrongly += int((confirmed & honest).sum())
    tally.planted += int(wrong.sum())
    tally.planted_judged += int((judged & wrong).sum())
    tally.found += int((deviates & wrong & right_way).sum())
    tally.sendable += int((confirmed & wrong & right_way).sum())
    tally.broken += int(truth.broken.sum())
    tally.broken_implausible += int(((verdict == "implausible") & truth.broken).sum())
    tally.broken_accused += int((deviates & truth.broken).sum())
    k, error = factors.k.to_numpy(float), factors.k_err.to_numpy(float)
    good = np.isfinite(k) & (factors.component.to_numpy(float) == 0) & ~truth.broken
    if good.any():
        move = np.log(k[good] / true_k[good])
        move -= np.median(move)
        tally.moves.append(move)
        tally.pulls.append(move / (error[good] / k[good]))
    value, high = (flags[name].to_numpy(float) for name in ("estimate", "estimate_high"))
    told = np.isfinite(value) & ~truth.broken
    if told.any():
        size = np.log(high[told] / value[told]) / 1.6449
        scale = np.median((truth.declared / true_k)[honest])
        tally.estimates.append(np.log(value[told] / (scale * true_k[told])) / size)
    n_jobs = int(fit.n_jobs) + int(fit.n_jobs_dropped)
    tally.fits.append({**fit.to_dict(), "jobs_share": fit.n_jobs / n_jobs})
    for what, count in found["tasks"].decision.value_counts().items():
        tally.tasks[what] = tally.tasks.get(what, 0) + int(count)


def rows(seeds: int, only: str, settings: Mapping[str, Any], first: int = 0) -> Iterator[str]:
    """A line of the table for each case whose name contains ``only``."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for number, (name, grid) in enumerate((CASES | WEEKS).items()):
        if only and not any(word.strip() in name for word in only.split(",")):
            continue
        began = time.perf_counter()
        runs = [
            run_grid(grid, 1000 * (number + 1) + seed, settings, weekly=name in WEEKS)
            for seed in range(first, first + seeds)
        ]
        seconds = time.perf_counter() - began
        for what in ("", ", judged by that type") if grid.types == 1 else ("",):
            tally = Tally(seconds=seconds)
            for truth, found in runs:
                add(tally, truth, found, of_type=bool(what))
            yield f"| {' | '.join([name + what, *tally.row()])} |"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="words, with commas between them")
    parser.add_argument("--min-bucket-jobs", type=int)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    settings = {} if options.min_bucket_jobs is None else {"min_bucket_jobs": options.min_bucket_jobs}
    lines = []
    for line in rows(options.seeds, options.only, settings, options.first):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        page = HEADER.format(method=METHOD_VERSION, table="\n".join(lines))
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
