"""What a night costs: as the history grows, and with very many jobs.

    python -m benchmarks.nights --out benchmarks/results/nights.md

Two installations of a small grid, one with many nights behind it, one with seven, after which its window is
full, live the same ten nights: their jobs are the same, and only the history differs. They do so in turns: a
machine that is slower for a minute is so for both. Then one day of 1.5 million jobs is put into a
new store and its night is run, in a process of its own, whose time and largest memory are taken. Each part
can be measured alone (``--part``); the other's numbers stay.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from benchmarks.child import run
from benchmarks.machine import describe, load
from esjobs import Settings
from esjobs import open as open_session
from esjobs.api.session import Session
from esjobs.records.demo import Grid
from tests.scheduler.stage import Hands

FIRST = date(2025, 2, 1)
_YOUNG = 7  # nights, after which the window is full
_COMPARED = 10


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--part", choices=["history", "jobs", "both"], default="both")
    parser.add_argument("--nights", type=int, default=92)
    parser.add_argument("--jobs", type=int, default=1_500_000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/nights.md"))
    parser.add_argument("--one-night", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one_night is not None:
        one_night(args.one_night)
        return
    data = args.out.with_suffix(".json")
    known: dict[str, Any] = json.loads(data.read_text()) if data.exists() else {}
    about = {"machine": describe(), "load": load()}
    if args.part in ("history", "both"):
        known["history"] = {**history(args.nights), **about}
    if args.part in ("jobs", "both"):
        known["jobs"] = {**many_jobs(args.jobs), **about}
    known["command"] = " ".join(["python -m benchmarks.nights", *sys.argv[1:]])
    data.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    args.out.write_text(page(known))


def settings(store: Path, windows: tuple[int, ...]) -> Settings:
    """Settings of an installation; the store may use half of what a night may."""
    nights = {"windows": windows, "headline": windows[-1], "late_days": 3}
    return Settings.model_validate({"store": f"duckdb:{store}", "nights": nights})


def history(nights: int) -> dict[str, Any]:
    """Processor seconds of the same ten nights of a young and of an old installation, and of its others."""
    grid, before = Grid(jobs_per_day=1_000, n_queues=30), nights - _COMPARED
    with tempfile.TemporaryDirectory(prefix="esjobs-nights-") as name, contextlib.ExitStack() as opened:
        both = []
        for age in (_YOUNG, before):
            hands, store = Hands(), settings(Path(name) / f"{age}.duckdb", (7,))
            session = opened.enter_context(open_session(settings=store, clock=hands.clock))
            lived = [_night(session, hands, grid, number) for number in range(before - age, before)]
            both.append((session, hands, list[float]()))
        for number in range(before, nights):
            for session, hands, seconds in both:
                seconds.append(_night(session, hands, grid, number))
    early, late = (seconds for *_, seconds in both)
    return {
        "nights": nights,
        "early_s": statistics.median(early),
        "late_s": statistics.median(late),
        "ratio": statistics.median(after / before for before, after in zip(early, late, strict=True)),
        "all_s": lived,
    }


def _night(session: Session, hands: Hands, grid: Grid, number: int) -> float:
    """Processor seconds of the night after a day, whose jobs are stored before."""
    day = FIRST + timedelta(days=number)
    session.store.put_jobs(grid.jobs(day), f"day {number}")
    hands.morning_after(day)
    began = time.process_time()
    (row,) = session.nights.tend()
    assert row["state"] == "done", row
    return time.process_time() - began


def many_jobs(jobs: int) -> dict[str, Any]:
    """Time and memory of one night of so many jobs."""
    grid = Grid(jobs_per_day=jobs, n_queues=120)
    with tempfile.TemporaryDirectory(prefix="esjobs-nights-") as name:
        store = Path(name) / "jobs.duckdb"
        with open_session(settings=settings(store, (7, 30, 90))) as session:
            session.store.put_jobs(grid.jobs(FIRST), "day")
        measured = run([sys.executable, "-m", "benchmarks.nights", "--one-night", str(store)])
        told = json.loads(measured.stdout)
        size = os.stat(store).st_size
    return {
        "jobs": jobs,
        "wall_s": measured.wall_s,
        "cpu_s": measured.cpu_s,
        "peak_b": measured.peak_b,
        "others": measured.others,
        "store_b": size,
        **told,
    }


def one_night(store: Path) -> None:
    """The night of the day that is stored; prints what it did."""
    hands = Hands()
    hands.morning_after(FIRST)
    with open_session(settings=settings(store, (7, 30, 90)), clock=hands.clock) as session:
        (row,) = session.nights.tend()
        steps = session.tables.night_steps().rows.to_pylist()
    told = {step["step"]: step["seconds"] for step in steps}
    print(json.dumps({"state": row["state"], "stored": row["jobs"], "steps": told}))


def _tens(spent: Sequence[float]) -> list[tuple[int, float]]:
    """Medians of ten nights each, from the eighth on."""
    firsts = range(_YOUNG, len(spent) - 9, 10)
    return [(first, statistics.median(spent[first : first + 10])) for first in firsts]


def page(known: dict[str, Any]) -> str:
    """The tables."""
    lines = ["# What a night costs", "", f"Written by `{known['command']}`; see `benchmarks/nights.py`."]
    if "history" in known:
        each = known["history"]
        lines += [
            "",
            "## As the history grows",
            "",
            "1,000 jobs a day, a window of seven days, an embedded store; processor time, medians of ten "
            "nights. A young and an old installation, with the same jobs, in turns:",
            "",
            f"| as nights {_YOUNG + 1} to {_YOUNG + _COMPARED}, s "
            f"| as nights {each['nights'] - _COMPARED + 1} to {each['nights']}, s "
            "| ratio, median of the pairs |",
            "|---|---|---|",
            f"| {each['early_s']:.2f} | {each['late_s']:.2f} | {each['ratio']:.2f} |",
            "",
            "One night after the other, in one process:",
            "",
            "| nights | processor s |",
            "|---|---|",
            *(f"| {first + 1} to {first + 10} | {spent:.2f} |" for first, spent in _tens(each["all_s"])),
        ]
    if "jobs" in known:
        each = known["jobs"]
        lines += [
            "",
            "## With very many jobs",
            "",
            f"One night of {each['jobs']:,} jobs of 120 queues, both methods, embedded store of "
            f"{each['store_b'] / 1e9:.1f} GB, {each['machine']['cores']} cores "
            f"(other programs kept {each['others']:.1f} of them busy).",
            "",
            "| wall s | processor s | largest memory, GB |",
            "|---|---|---|",
            f"| {each['wall_s']:.0f} | {each['cpu_s']:.0f} | {each['peak_b'] / 1e9:.2f} |",
            "",
            "| step | wall s |",
            "|---|---|",
            *(f"| `{step}` | {seconds:.1f} |" for step, seconds in each["steps"].items()),
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
