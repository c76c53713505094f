"""False nodes per queue and power of rules for nodes on which jobs fail or are slow, on made-up queues.

python -m benchmarks.black_holes --out benchmarks/results/black_holes.md
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from esjobs.core.words import HALF_WIDTH_90
from esjobs.errors import black_holes
from esjobs.errors.black_holes import Cells, judge
from esjobs.errors.runs import cells_of_runs, counted_runs
from esjobs.errors.slowness import TimedCells, judge_slow
from fitters.layout.arrays import Floats, Ints, Mask

NODES, TASKS, JOBS, RATE = 100, 25, 6000, 0.06
SLOW_NODES, JOB_SCATTER, SLOWER = 60, 0.2, 0.15


@dataclass(frozen=True)
class Scenario:
    """A queue: scatter of nodes (ln), share of cells with a burst, ill nodes, their rate and jobs."""

    name: str
    nodes_differ: float = 0.0
    bursts: float = 0.0
    ill: int = 0
    ill_rate: float = 0.0
    more_jobs: float = 1.0
    jobs: int = JOBS


SCENARIOS = (
    Scenario("tasks unevenly spread"),
    Scenario("nodes differ by 30 %", nodes_differ=0.3),
    Scenario("bursts in 3 % of the cells", bursts=0.03),
    Scenario("2 black holes, 5 x jobs, 90 % fail", ill=2, ill_rate=0.9, more_jobs=5.0),
    Scenario("2 ill nodes, 90 % fail, 600 jobs in all", ill=2, ill_rate=0.9, jobs=600),
    Scenario("10 of 100 nodes, 50 % fail", ill=10, ill_rate=0.5),
    Scenario("40 of 100 nodes, 50 % fail", ill=40, ill_rate=0.5),
)


def queue(scenario: Scenario, rng: np.random.Generator) -> tuple[Cells, Mask]:
    """Make up the jobs of a queue; true for the ill nodes."""
    ill = np.zeros(NODES, np.bool_)
    ill[rng.choice(NODES, scenario.ill, replace=False)] = True
    rate = RATE * np.exp(rng.normal(0, 0.8, TASKS) - 0.32)
    # each task runs on some nodes more than on others
    weight = rng.gamma(0.5, size=(NODES, TASKS)) * rng.gamma(0.7, size=TASKS)
    weight *= np.where(ill, scenario.more_jobs, 1.0)[:, None]
    jobs = rng.multinomial(scenario.jobs, (weight / weight.sum()).ravel()).reshape(NODES, TASKS)
    chance = rate * np.exp(rng.normal(0, scenario.nodes_differ, NODES))[:, None]
    chance = np.where(rng.random(chance.shape) < scenario.bursts, 0.8, chance)
    chance = np.where(ill[:, None], np.maximum(chance, scenario.ill_rate), chance).clip(0, 1)
    failed = rng.binomial(jobs, chance)
    node, task = np.nonzero(jobs)
    return Cells(node, task, jobs[node, task].astype(float), failed[node, task].astype(float)), ill


def bigpanda(cells: Cells) -> Mask:
    """Rule of the BigPanDA monitor: more than 5 failures, 10 % and 5 times the mean rate, or 20 %."""
    failed, jobs = cells.by_node(cells.failed), cells.by_node(cells.jobs)
    share = failed / np.maximum(jobs, 1)
    mean = failed.sum() / jobs.sum()
    return np.asarray((failed > 5) & (share >= 0.1) & ((share > 5 * mean) | (share >= 0.2)), np.bool_)


def binomial(cells: Cells) -> Mask:
    """Binomial test against the rate of the queue, 5 % false discoveries."""
    failed, jobs = cells.by_node(cells.failed), cells.by_node(cells.jobs)
    p = stats.binom.sf(failed - 1, jobs, failed.sum() / jobs.sum())
    return np.asarray(stats.false_discovery_control(p) < black_holes.FALSE_DISCOVERIES)


def three_steps(cells: Cells) -> Mask:
    """Our rule without its last step: a single task may make a node ill."""
    judged = judge(cells)
    share = judged.observed / np.maximum(judged.jobs, 1)
    bound = judged.observed - HALF_WIDTH_90 * np.sqrt(judged.scale * judged.observed * (1 - share))
    return (judged.q < 0.05) & (judged.observed >= 5) & (bound > 2 * judged.expected)


RULES: dict[str, Callable[[Cells], Mask]] = {
    "BigPanDA": bigpanda,
    "binomial": binomial,
    "steps 1-3": three_steps,
    "steps 1-4": lambda cells: judge(cells).found,
}


def measure(scenario: Scenario, queues: int, seed: int) -> dict[str, tuple[float, float | None]]:
    """Return false nodes per queue and power (None without ill nodes) by rule."""
    false, found, ill_nodes = dict.fromkeys(RULES, 0), dict.fromkeys(RULES, 0), 0
    for number in range(queues):
        cells, ill = queue(scenario, np.random.default_rng([seed, number]))
        ill = ill[: cells.n_nodes]
        ill_nodes += int(ill.sum())
        for name, rule in RULES.items():
            hit = rule(cells)
            false[name] += int((hit & ~ill).sum())
            found[name] += int((hit & ill).sum())
    return {name: (false[name] / queues, found[name] / ill_nodes if ill_nodes else None) for name in RULES}


def coverage(queues: int, seed: int) -> float:
    """Return how often the 90 % interval holds the true ratio of a node, where 2 failures are expected."""
    inside = total = 0
    for number in range(queues):
        rng = np.random.default_rng([seed, 99, number])
        cells, _ = queue(Scenario(""), rng)
        ratio = np.exp(rng.normal(0, 0.3, cells.n_nodes))
        mean = cells.jobs * RATE * ratio[cells.node]
        cells = Cells(
            cells.node,
            cells.task,
            cells.jobs,
            rng.binomial(cells.jobs.astype(int), mean / cells.jobs).astype(float),
        )
        judged = judge(cells)
        enough = judged.expected > 2
        inside += int(((judged.low <= ratio) & (ratio <= judged.high))[enough].sum())
        total += int(enough.sum())
    return inside / total


def slow_queue(scatter: float, slow: int, jobs: int, rng: np.random.Generator) -> tuple[TimedCells, Mask]:
    """Make up cells of nodes with one CPU model, of ``scatter`` beside that of jobs; true for slow nodes."""
    weight = rng.gamma(1.0, size=(SLOW_NODES, TASKS)) * rng.gamma(0.7, size=TASKS)
    number = rng.multinomial(jobs, (weight / weight.sum()).ravel()).reshape(weight.shape)
    number = number[number.sum(axis=1) > 0][:, number.sum(axis=0) > 0]
    ill = np.zeros(len(number), np.bool_)
    ill[rng.choice(len(number), slow, replace=False)] = True
    node, task = np.nonzero(number)
    variance = JOB_SCATTER**2 / number[node, task]
    level = rng.normal(0, 1, TASKS)[task] + np.where(ill, np.log1p(SLOWER), 0.0)[node]
    return TimedCells(node, task, level + rng.normal(0, np.sqrt(scatter**2 + variance)), variance), ill


def measure_slow(scatter: float, slow: int, jobs: int, queues: int, seed: int) -> tuple[float, float | None]:
    """Return slow nodes per queue that are false, and the power (None without slow nodes)."""
    false = found = 0
    for number in range(queues):
        cells, ill = slow_queue(scatter, slow, jobs, np.random.default_rng([seed, number]))
        hit = judge_slow(cells).found
        false += int((hit & ~ill).sum())
        found += int((hit & ill).sum())
    return false / queues, found / (slow * queues) if slow else None


def made_runs(
    burst: int,
    slow: int,
    jobs: int,
    rng: np.random.Generator,
    *,
    nodes: int = SLOW_NODES,
    names: int = 60,
    slower: float = SLOWER,
) -> tuple[Ints, Ints, Floats, Mask]:
    """Make up runs: node, name, seconds, and true for slow nodes, the first ones.

    A name scatters by 5 to 80 %. ``burst``: runs of one input, about; their scatter is a third of that of
    inputs, and they are on a node per 10 runs.
    """
    popularity = rng.gamma(0.7, size=names)
    scatter, level = rng.uniform(0.05, 0.8, names), rng.normal(8, 1.5, names)
    ill = np.arange(nodes) < slow
    parts: list[tuple[Ints, Ints, Floats]] = []
    while sum(len(each) for each, _, _ in parts) < jobs:
        if burst == 1:
            name, node = (
                rng.choice(names, jobs, p=popularity / popularity.sum()),
                rng.integers(0, nodes, jobs),
            )
            rest = rng.normal(0, scatter[name])
        else:
            size, of = int(rng.geometric(1 / burst)), int(rng.choice(names, p=popularity / popularity.sum()))
            name = np.full(size, of)
            node = rng.choice(rng.choice(nodes, min(nodes, size // 10 + 1), replace=False), size)
            rest = rng.normal(0, scatter[of]) + rng.normal(0, scatter[of] / 3, size)
        parts.append((node, name, level[name] + rest + np.log1p(slower) * ill[node]))
    node, name, ln_time = (np.concatenate(each) for each in zip(*parts, strict=True))
    return node, name, np.exp(ln_time), ill


def measure_runs(
    burst: int, slow: int, jobs: int, clusters: int, seed: int, *, slower: float = SLOWER
) -> tuple[float, float | None]:
    """Return slow nodes per cluster that are false, and the power (None without slow nodes)."""
    false = found = 0
    for number in range(clusters):
        node, name, seconds, ill = made_runs(
            burst, slow, jobs, np.random.default_rng([seed, number]), slower=slower
        )
        used = counted_runs(node, name)
        nodes, node = np.unique(node[used], return_inverse=True)
        names = np.unique(name[used], return_inverse=True)[1]
        hit = judge_slow(cells_of_runs(node, names, seconds[used])).found
        false += int((hit & ~ill[nodes]).sum())
        found += int((hit & ill[nodes]).sum())
    return false / clusters, found / (slow * clusters) if slow else None


def run_lines(clusters: int, seed: int) -> list[str]:
    """Return the table of slow nodes by runs of one name."""
    lines = [
        "## Slow nodes by runs of one name",
        "",
        f"{clusters} made-up clusters per row: {SLOW_NODES} nodes, 60 names whose runs scatter by 5 to 80 %, "
        "in bursts of one input; 2 slow nodes.",
        "",
        "| runs in a burst | jobs | false nodes | 20 % slower: false (power) | 50 % slower: false (power) |",
        "|---|---|---|---|---|",
    ]
    for burst, jobs in ((1, 6000), (1, 600), (20, 6000), (200, 6000), (200, 20_000)):
        none, _ = measure_runs(burst, 0, jobs, clusters, seed)
        cells = [
            "{:.2f} ({:.2f})".format(*measure_runs(burst, 2, jobs, clusters, seed, slower=slower))
            for slower in (0.2, 0.5)
        ]
        lines.append(f"| {burst} | {jobs:,} | {none:.2f} | {' | '.join(cells)} |")
    return lines


def slow_lines(queues: int, seed: int) -> list[str]:
    """Return the table of slow nodes."""
    lines = [
        "## Slow nodes",
        "",
        f"{SLOW_NODES} nodes with one CPU model, {TASKS} tasks; jobs scatter by {JOB_SCATTER:.0%}, cells of "
        f"node and task by as much as the row says beside it; slow nodes need {SLOWER:.0%} more.",
        "",
        "| scatter of cells | jobs | false nodes | with 3 slow nodes: false (power) |",
        "|---|---|---|---|",
    ]
    for scatter in (0.05, 0.1):
        for jobs in (6000, 600):
            none, _ = measure_slow(scatter, 0, jobs, queues, seed)
            false, power = measure_slow(scatter, 3, jobs, queues, seed)
            lines.append(f"| {scatter:.0%} | {jobs:,} | {none:.2f} | {false:.2f} ({power:.2f}) |")
    return lines


def main() -> None:
    """Write the table and, beside it, its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--queues", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = {each.name: measure(each, options.queues, options.seed) for each in SCENARIOS}
    held = coverage(options.queues, options.seed)
    lines = [
        "# Nodes on which jobs fail",
        "",
        f"{options.queues} made-up queues per row: {NODES} nodes, {TASKS} tasks, {JOBS:,} jobs, "
        f"{RATE:.0%} failures. False nodes per queue, in brackets the part of the ill nodes that is found.",
        "",
        f"| queue | {' | '.join(RULES)} |",
        f"|---|{'---|' * len(RULES)}",
    ]
    for name, rules in found.items():
        cells = (
            f"{false:.2f}" + ("" if power is None else f" ({power:.2f})") for false, power in rules.values()
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        "",
        f"The 90 % interval of observed over expected holds the truth in {held:.1%} where 2 are expected.",
        "",
        *slow_lines(options.queues, options.seed),
        "",
        *run_lines(options.queues // 5, options.seed),
    ]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    numbers = {"scenarios": found, "coverage": held}
    options.out.with_suffix(".json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
