"""Do the tests of the model say what breaks it, and nothing where it holds?

    python -m benchmarks.model_checks [--seeds 4] [--first 70000] [--only WORDS] [--out results.md]

The grids of ``honesty``, through records, buckets, fit and verdicts, with seeds of their own.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grids import Truth
from benchmarks.honesty import CASES, Floats, Tally, add, run_grid
from benchmarks.machine import describe
from esjobs.schema.speed import METHOD_VERSION

HEADER = """# Tests of the model

Written by `python -m benchmarks.model_checks`, method version {method}, {libraries}. Fit of all types,
queues, of the grids that `benchmarks/honesty.py` lists. "Held": share of the true factors of queues with
right records inside 95 % intervals, as stated, and in brackets without what failed tests add. "Says": runs
in which a test fails (p < 0.001), of all runs; then which: tasks that change with *time*, a *pattern* of
tasks and queues, a *power* of the events. "Elsewhere": runs in which a test fails only in a fit
of one type, of sites or CPU models.

{table}
"""
COLUMNS = ("case", "held", "width", "honest accused (sent)", "found / judged (sent)", "says", "elsewhere")
_WORDS = {"time": "change with time", "pattern": "a pattern of", "power": "to the power"}


def pulls_without(truth: Truth, found: Mapping[str, Any]) -> Floats:
    """Return the pulls with the errors as they were before failed tests were added."""
    table = found["factors"]
    chosen = (table.level == "queue") & (table.processing_type == "all")
    factors = table[chosen].set_index("name").reindex(truth.name)
    k, error = factors.k.to_numpy(float), factors.k_err.to_numpy(float)
    added = np.nan_to_num(factors.k_err_shift.to_numpy(float))
    good = np.isfinite(k) & (factors.component.to_numpy(float) == 0) & ~truth.broken
    move = np.log(k[good] / truth.k[good])
    pulls: Floats = (move - np.median(move)) / (np.sqrt(error**2 - added**2)[good] / k[good])
    return pulls


def line_of(name: str, runs: list[tuple[Truth, dict[str, Any]]]) -> str:
    """Return the row of a case."""
    tally, said, elsewhere, before = Tally(), Counter[str](), 0, []
    for truth, found in runs:
        add(tally, truth, found)
        before.append(pulls_without(truth, found))
        fits = found["fits"]
        headline = (fits.level == "queue") & (fits.processing_type == "all")
        doubt = fits[headline].model_doubt.fillna("").iloc[0]
        if doubt and not any(text in doubt for text in _WORDS.values()):
            raise ValueError(f"no test of the model is known by the sentence: {doubt}")
        said["runs"] += bool(doubt)
        said.update(word for word, text in _WORDS.items() if text in doubt)
        elsewhere += bool(not doubt and fits[~headline].model_doubt.notna().any())
    pulls = np.concatenate(tally.pulls)
    held, held_before = (np.mean(np.abs(each) < 1.96) for each in (pulls, np.concatenate(before)))
    which = ", ".join(f"{word} {said[word]}" for word in _WORDS if said[word])
    return " | ".join(
        (
            f"| {name}",
            f"{held:.3f} ({held_before:.3f})",
            f"{pulls.std():.2f}",
            f"{tally.accused} / {tally.judged} ({tally.sent_wrongly})",
            f"{tally.found} / {tally.planted_judged} ({tally.sendable})",
            f"{said['runs']} of {len(runs)}{': ' if which else ''}{which}",
            f"{elsewhere} |",
        )
    )


def rows(seeds: int, first: int, only: str) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for number, (name, grid) in enumerate(CASES.items()):
        if only and not any(word.strip() in name for word in only.split(",")):
            continue
        seed = first + 100 * number
        yield line_of(name, [run_grid(grid, seed + each, {}) for each in range(seeds)])


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=70_000)
    parser.add_argument("--only", default="", help="words, with commas between them")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for line in rows(options.seeds, options.first, options.only):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        versions = describe("scipy", "iminuit", "numba")
        named = ("python", "esjobs", "numpy", "scipy", "iminuit", "numba", "duckdb")
        libraries = ", ".join(f"{name} {versions[name]}" for name in named)
        page = HEADER.format(method=METHOD_VERSION, libraries=libraries, table="\n".join(lines))
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
