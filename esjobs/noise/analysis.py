"""Analysis of recorded runs: statistics per level, detected levels, overhead of a collector."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from esjobs.core.errors import InputError
from esjobs.core.numbers import exact_percent, percent, signed_percent
from esjobs.noise.recorded import GATE, Run, read_runs, same_configuration, ungated
from esjobs.noise.statistics import (
    Cost,
    Mean,
    Times,
    above,
    cost,
    difference_p,
    disjoint,
    runs_needed,
    summary,
    threshold,
)
from esjobs.records.answer import Answer

LEVELS_SCHEMA = pa.schema(
    [
        *(("level", pa.float64()), ("n", pa.int64()), ("mean_s", pa.float64()), ("sd_s", pa.float64())),
        *(("low_s", pa.float64()), ("high_s", pa.float64()), ("verdict", pa.string())),
        *(("above", pa.bool_()), ("mann_whitney_p", pa.float64()), ("n_outliers", pa.int64())),
        *(("normal_p", pa.float64()), ("median_s", pa.float64()), ("median_low_s", pa.float64())),
        *(("median_high_s", pa.float64()), ("n_runs_skipped", pa.int64()), ("runs_needed", pa.int64())),
    ]
)
COST_SCHEMA = pa.schema(
    [
        *(("cost_frac", pa.float64()), ("low_frac", pa.float64()), ("high_frac", pa.float64())),
        *(("verdict", pa.string()), ("mann_whitney_p", pa.float64()), ("n_off", pa.int64())),
        *(("n_on", pa.int64()), ("n_runs_skipped", pa.int64())),
    ]
)


def verdicts(means: Sequence[tuple[float, Mean]]) -> dict[float, str]:
    """Return the verdict per level: detected, missed, or unconfirmed (a higher level was missed).

    ``means``: levels in per cent, including 0, with the mean of their runs.
    """
    clean = dict(means)[0.0]
    seen = [(level, disjoint(clean, mean)) for level, mean in means if level > 0]
    least = threshold(seen)
    return {
        level: "missed" if not found else "unconfirmed" if least is None or level < least else "detected"
        for level, found in seen
    }


def analyse(files: Iterable[Path], *, gate: float = GATE, precision: float = 0.002) -> Answer:
    """Return statistics of every level, and the detection threshold.

    ``precision``: relative half-width for ``runs_needed``. Raises :class:`InputError` for invalid files, or
    without runs at level 0.
    """
    everything = read_runs(files)
    runs, n_runs_skipped = ungated(everything, gate)
    n_runs = Counter(run.level for run in everything)
    levels = sorted(n_runs)
    times = {level: _times(runs, level) for level in levels}
    clean = times.get(0.0, [])
    # one time has no interval that the levels could leave
    if len(clean) < 2:
        raise InputError(
            "fewer than two runs without noise (level 0) remain; record more runs, or raise the gate"
        )
    found = {level: summary(values) for level, values in times.items() if values}
    # the clean level is what the others are compared with; it has no verdict of its own
    judged = {0.0: "clean", **verdicts([(level, each.mean) for level, each in found.items()])}
    rows: list[dict[str, Any]] = []
    for level in levels:
        n = len(times[level])
        row = {"level": level, "n": n, "n_runs_skipped": n_runs[level] - n}
        if level in found:
            row |= _level_row(found[level], precision) | {"verdict": judged[level]}
            if level > 0:
                row["above"] = above(found[0.0].mean, found[level].mean)
                row["mann_whitney_p"] = difference_p(clean, times[level])
        rows.append(row)
    notes = _notes(found[0.0].mean, judged, n_runs_skipped, gate)
    return Answer(pa.Table.from_pylist(rows, LEVELS_SCHEMA), notes)


def _level_row(found: Times, precision: float) -> dict[str, Any]:
    mean = found.mean
    row = {
        "mean_s": mean.mean,
        "n_outliers": found.n_outliers,
        "normal_p": found.normal_p,
        "median_s": found.median,
        "median_low_s": found.median_low,
        "median_high_s": found.median_high,
    }
    if mean.n > 1:
        row |= {"sd_s": mean.sd, "low_s": mean.low, "high_s": mean.high}
        row["runs_needed"] = runs_needed(mean, precision)
    return row


def _notes(clean: Mean, judged: dict[float, str], n_runs_skipped: int, gate: float) -> tuple[str, ...]:
    notes = []
    detected = [level for level, verdict in judged.items() if verdict == "detected"]
    if detected:
        notes.append(f"all levels from {min(detected):g} % on are detected: the intervals are disjoint")
    elif len(judged) > 1:
        notes.append(
            "no level is detected together with all higher ones; record more runs, or use a quieter machine"
        )
    doubtful = [f"{level:g} %" for level, verdict in judged.items() if verdict == "unconfirmed"]
    if doubtful:
        notes.append(f"unconfirmed, because a higher level was not detected: {', '.join(doubtful)}")
    width = 100 * clean.half_width / clean.mean
    notes.append(f"without noise the interval is ±{width:.2g} % wide; lower levels cannot be detected")
    if n_runs_skipped:
        notes.append(
            f"excluded, because a rank waited for a core for more than {exact_percent(gate)} of the time: "
            f"{n_runs_skipped} runs"
        )
    return tuple(notes)


def compare(off: Path, on: Path, *, gate: float = GATE) -> Answer:
    """Return the overhead of a collector: runs with it off against on, both without noise.

    Raises :class:`InputError` for invalid files, different configurations, or too few runs.
    """
    everything = [read_runs([path]) for path in (off, on)]
    runs_of_both = [*everything[0], *everything[1]]
    same_configuration(runs_of_both)
    (times_off, skipped_off), (times_on, skipped_on) = (
        _clean_times(path, runs, gate) for path, runs in zip((off, on), everything, strict=True)
    )
    try:
        found = cost(times_off, times_on)
    except OverflowError:  # of exp, for a ratio beyond 1e308
        raise InputError(
            f"the times of {off} and {on} differ too much to measure a cost; check that both are in seconds"
        ) from None
    row = {
        "cost_frac": found.cost,
        "low_frac": found.low,
        "high_frac": found.high,
        "verdict": "seen" if found.seen else "not seen",
        "mann_whitney_p": difference_p(times_off, times_on),
        "n_off": len(times_off),
        "n_on": len(times_on),
        "n_runs_skipped": skipped_off + skipped_on,
    }
    n_noisy = sum(run.level > 0 for run in runs_of_both)
    notes = [_cost_sentence(found)]
    if n_noisy:
        notes.append(f"runs with injected noise, ignored: {n_noisy}")
    return Answer(pa.Table.from_pylist([row], COST_SCHEMA), tuple(notes))


def _clean_times(path: Path, runs: Sequence[Run], gate: float) -> tuple[list[float], int]:
    """Return the times of a file's runs that the gate lets through, and how many it does not."""
    # runs with injected noise measure something else
    kept, n_skipped = ungated([run for run in runs if run.level == 0], gate)
    if len(kept) < 2:
        raise InputError(
            f"{path} has fewer than two remaining runs without noise (level 0); record more runs, or "
            "raise the gate"
        )
    return _times(kept, 0.0), n_skipped


def _cost_sentence(found: Cost) -> str:
    if found.seen:
        span = f"{signed_percent(found.low)} to {signed_percent(found.high)}"
        return f"the collector costs {percent(found.cost)} of the time ({span}, 99 %)"
    limit = max(abs(found.low), abs(found.high))
    return f"the cost of the collector is below the detection limit of this test ({percent(limit)})"


def _times(runs: Sequence[Run], level: float) -> list[float]:
    return [run.seconds for run in runs if run.level == level]
