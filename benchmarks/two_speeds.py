"""Queues with nodes of two speeds: deviations confirmed falsely, and true confirmations lost.

    python -m benchmarks.two_speeds [--seeds 6] [--only WORD] [--out benchmarks/results/two_speeds.md]

Records go through ingest, aggregation, fit and verdicts. ``before``: what would be confirmed without the
checks named in ``CHECKS``, from the same run.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grids import Grid, Truth
from benchmarks.honesty import SURVIVORS, run_grid
from esjobs.core.words import DEVIATION_LIMIT
from esjobs.schema.speed import METHOD_VERSION

# How the failed check begins, of those whose price is measured
OWN_CHECKS = ("start-up time as elsewhere", "first half", "second half", "strays put back", "two speeds")
BASE = Grid(misdeclared=0.15)
WIDE = BASE.but(two_speeds=12, speeds_part=(0.3, 0.7), speeds_ratio=(1.3, 2.5), speeds_by_nodes=True)
CASES: dict[str, Grid] = {
    f"{what}, {tasks} tasks{', noise 0.5' if noise > 0.3 else ''}": WIDE.but(
        speeds_by=by, tasks=tasks, noise=noise, rho=rho, lengths=3.0 if rho else 1.0
    )
    for what, by in (("nothing tells", "task"), ("CPU model tells", "model"), ("in every task", "mixed"))
    for tasks, noise, rho in ((10, 0.3, 0.0), (20, 0.3, 0.0), (60, 0.5, 1.0))
}
CASES |= {
    "one speed": BASE,
    "one speed, 14 tasks": BASE.but(tasks=14),
    "one speed, rho by site e^0.3": BASE.but(rho=1.0, lengths=3.0, rho_scatter=0.3),
    "one speed, types 10 %": BASE.but(type_effect=0.10),
    "one speed, stray 2 %": BASE.but(stray=0.02),
    "one speed, 10 % interaction": BASE.but(interaction=0.10),
    "survivors": SURVIVORS,
}
HEADER = """# Queues with two speeds

Written by `python -m benchmarks.two_speeds`, method version {method}. 40 queues; 12 with nodes 1.3 to
2.5 times slower, 30 to 70 % of all. Their jobs land on nodes by chance, and the mean of the nodes is
declared. One queue in seven declares wrong by 1.3 to 2. A deviation is false if the declared value is off by
less than {limit:.0%} of what its jobs ran at, or to the other side. Two numbers: before, and with the checks
of strays, own start-up time and halves of the tasks.

{table}
"""
COLUMNS = (
    "case",
    "two speeds: queues judged",
    "false",
    "true",
    "one speed: queues judged",
    "false",
    "true",
    "true ones of one speed kept",
    "lost to",
)


@dataclass
class Tally:
    """Numbers of confirmed deviations, before and after, by speeds of the queue."""

    judged: int = 0
    false_before: int = 0
    false: int = 0
    true_before: int = 0
    true: int = 0

    def add(self, other: "Tally") -> None:
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


def count(truth: Truth, found: dict[str, Any], chosen: Any) -> tuple[Tally, list[str]]:
    """Count some of the queues of a run; also what true ones were lost to."""
    flags = found["flags"]
    flags = flags[(flags.level == "queue") & (flags.processing_type == "all") & (flags.method == "gamma")]
    flags = flags.set_index("name").reindex(truth.name)
    off = np.log(truth.k / truth.declared)
    off = np.expm1(off - np.median(off[truth.wrong == 1]))
    side = np.sign(flags.deviation.fillna(0).to_numpy(float))
    right = (np.abs(off) >= DEVIATION_LIMIT) & (side == np.sign(off))
    under = flags.unstable_under.fillna("").astype(str)
    only_own = np.array([text.startswith(OWN_CHECKS) for text in under]) & (flags.verdict == "deviates")
    now = flags.confirmed.fillna(False).to_numpy(bool) & chosen
    before = now | (only_own & flags.significant.fillna(False).astype(bool)).to_numpy(bool) & chosen
    lost = under.to_numpy()[before & ~now & right].tolist()
    judged = flags.verdict.isin(("deviates", "ok", "undecided")).to_numpy() & chosen
    numbers = (judged, before & ~right, now & ~right, before & right, now & right)
    return Tally(*(int(mask.sum()) for mask in numbers)), lost


def rows(seeds: int, only: str, first: int = 0) -> Iterator[str]:
    """A line of the table for each case whose name contains ``only``, and the total."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    total = Tally(), Tally()
    for number, (name, grid) in enumerate(CASES.items()):
        if only not in name:
            continue
        two, one, lost = Tally(), Tally(), list[str]()
        for seed in range(first, first + seeds):
            truth, found = run_grid(grid, 50_000 + 1000 * number + seed, {})
            for tally, chosen in ((two, truth.two_speeds), (one, ~truth.two_speeds)):
                counted, missing = count(truth, found, chosen & ~truth.broken)
                tally.add(counted)
                lost += missing if tally is one else []
        total[0].add(two)
        total[1].add(one)
        yield _line(name, two, one, lost)
    yield _line("all", *total, [])


def _line(name: str, two: Tally, one: Tally, lost: list[str]) -> str:
    cells = [name]
    for tally in (two, one):
        cells += [
            str(tally.judged),
            f"{tally.false_before} -> {tally.false}",
            f"{tally.true_before} -> {tally.true}",
        ]
    kept = f"{one.true / one.true_before:.1%}" if one.true_before else ""
    return f"| {' | '.join([*cells, kept, '; '.join(lost)])} |"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the name of a case")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for line in rows(options.seeds, options.only, options.first):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        page = HEADER.format(method=METHOD_VERSION, limit=DEVIATION_LIMIT, table="\n".join(lines))
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
