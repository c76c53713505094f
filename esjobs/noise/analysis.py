"""What recorded runs say: statistics per level, which levels are seen, what a collector costs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from esjobs.core.errors import InputError
from esjobs.core.numbers import exact_percent, percent, signed_percent
from esjobs.noise.recorded import GATE, Run, alike, read_runs, sound
from esjobs.noise.statistics import Mean, above, cost, difference_p, disjoint, runs_needed, threshold, told

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


@dataclass(frozen=True)
class Told:
    """Rows, and what they mean in sentences."""

    rows: pa.Table
    notes: tuple[str, ...]


def verdicts(means: Sequence[tuple[float, Mean]]) -> dict[float, str]:
    """Per level above 0: detected, missed, or unconfirmed (seen below a level that was missed).

    ``means``: levels in per cent with the means of their runs; one of them is level 0.
    """
    clean = dict(means)[0.0]
    seen = [(level, disjoint(clean, mean)) for level, mean in means if level > 0]
    least = threshold(seen)
    return {
        level: "missed" if not found else "unconfirmed" if least is None or level < least else "detected"
        for level, found in seen
    }


def analyse(files: Iterable[Path], *, gate: float = GATE, precision: float = 0.002) -> Told:
    """Statistics of every level, and from which level on noise is seen.

    ``precision``: half width of an interval, as a part of the mean, for which ``runs_needed`` is told. Raises
    :class:`InputError` for files that are wrong, and where no run without noise is left.
    """
    everything = read_runs(files)
    runs, n_runs_skipped = sound(everything, gate)
    levels = sorted({run.level for run in everything})
    times = {level: _times(runs, level) for level in levels}
    if len(times.get(0.0, [])) < 2:
        raise InputError("fewer than two runs without noise (level 0) are left; run more, or a wider gate")
    found = {level: told(values) for level, values in times.items() if values}
    judged = verdicts([(level, each.mean) for level, each in found.items()])
    rows: list[dict[str, Any]] = []
    for level in levels:
        gated = sum(run.level == level for run in everything) - len(times[level])
        row: dict[str, Any] = {"level": level, "n": len(times[level]), "n_runs_skipped": gated}
        if level in found:
            each = found[level]
            wide = each.mean.n < 2
            row |= {
                "mean_s": each.mean.mean,
                "sd_s": None if wide else each.mean.sd,
                "low_s": None if wide else each.mean.low,
                "high_s": None if wide else each.mean.high,
                "verdict": "clean" if level == 0 else judged[level],
                "above": None if level == 0 else above(found[0.0].mean, each.mean),
                "mann_whitney_p": None if level == 0 else difference_p(times[0.0], times[level]),
                "n_outliers": each.n_outliers,
                "normal_p": each.normal_p,
                "median_s": each.median,
                "median_low_s": each.median_low,
                "median_high_s": each.median_high,
                "runs_needed": None if wide else runs_needed(each.mean, precision),
            }
        rows.append(row)
    return Told(
        pa.Table.from_pylist(rows, LEVELS_SCHEMA), _notes(found[0.0].mean, judged, n_runs_skipped, gate)
    )


def _notes(clean: Mean, judged: dict[float, str], n_runs_skipped: int, gate: float) -> tuple[str, ...]:
    notes = []
    detected = [level for level, verdict in judged.items() if verdict == "detected"]
    if detected:
        notes.append(f"every level from {min(detected):g} % on is detected: the intervals are disjoint")
    elif judged:
        notes.append("no level is detected with every one above it; more runs, or a quieter machine")
    doubtful = [f"{level:g} %" for level, verdict in judged.items() if verdict == "unconfirmed"]
    if doubtful:
        notes.append(f"unconfirmed, for a level above was missed: {', '.join(doubtful)}")
    width = 100 * clean.half_width / clean.mean
    notes.append(f"without noise the interval is ±{width:.2g} % wide; levels below that cannot be told")
    if n_runs_skipped:
        notes.append(
            f"left out, for a rank waited for a core for more than {exact_percent(gate)}: "
            f"{n_runs_skipped} of the runs"
        )
    return tuple(notes)


def compare(off: Path, on: Path, *, gate: float = GATE) -> Told:
    """What a collector costs: runs with it switched off against runs with it on, both without noise.

    Raises :class:`InputError` for files that are wrong, of unlike configurations, or of too few runs.
    """
    everything = [read_runs([path]) for path in (off, on)]
    alike([run for runs in everything for run in runs])
    sides = [sound([run for run in runs if run.level == 0], gate) for runs in everything]
    n_noisy = sum(run.level > 0 for runs in everything for run in runs)
    times = [[run.seconds for run in kept] for kept, _ in sides]
    for path, values in zip((off, on), times, strict=True):
        if len(values) < 2:
            raise InputError(
                f"{path} has fewer than two runs without noise (level 0) that are left; run more, "
                "or a wider gate"
            )
    try:
        found = cost(*times)
    except OverflowError:
        raise InputError(
            f"the times of {off} and {on} are so far apart that no cost can be told; are both in seconds?"
        ) from None
    n_runs_skipped = sum(number for _, number in sides)
    limit = max(abs(found.low), abs(found.high))
    span = f"{signed_percent(found.low)} to {signed_percent(found.high)}"
    if found.seen:
        sentence = f"the collector costs {percent(found.cost)} of the time ({span}, 99 %)"
    else:
        sentence = f"what the collector costs is below what this test can see ({percent(limit)})"
    row = {
        "cost_frac": found.cost,
        "low_frac": found.low,
        "high_frac": found.high,
        "verdict": "seen" if found.seen else "not seen",
        "mann_whitney_p": difference_p(*times),
        "n_off": len(times[0]),
        "n_on": len(times[1]),
        "n_runs_skipped": n_runs_skipped,
    }
    left = (f"runs with noise of a known size, which count for nothing here: {n_noisy}",) if n_noisy else ()
    return Told(pa.Table.from_pylist([row], COST_SCHEMA), (sentence, *left))


def _times(runs: Sequence[Run], level: float) -> list[float]:
    return [run.seconds for run in runs if run.level == level]
