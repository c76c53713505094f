"""How often flags open without a cause, and how long a planted deviation takes, on the demo's grid.

    python -m benchmarks.watch --seeds 3 --out benchmarks/results/watch.md

Each grid is honest but for what is planted: from a night on, queues whose jobs run slower or faster and
queues that declare another value, repaired on a later night. Every night is fitted over windows of several
lengths through the product; which of these, and which evidence, flags rest on is then varied over the same
verdicts.
"""

import argparse
import csv
import itertools
import json
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.flags.evidence import Key, NightRuns, StoredVerdicts
from esjobs.flags.nights import Walk, remembered_nights
from esjobs.flags.settings import WatchSettings
from esjobs.flags.states import Evidence, Sighting
from esjobs.records.demo import LAST_DAY, Grid
from esjobs.schema.flags import FLAG_EVENTS, FLAG_HISTORY, FLAG_STATES
from esjobs.speed.settings import FitSettings
from esjobs.store.base import Hide, JobStore

DAYS, FIRST_NIGHT, PLANTED, REPAIRED = 90, 7, 35, 62
LENGTHS, USUAL = (3, 7, 14, 30), (7, 30)
"""Windows of the first grid, and of the others."""
FIRST_SEED = 11
DEVIATIONS = (-0.25, -0.4, 0.4, -0.3, 0.3, -0.35)
"""Of the planted queues in turn; the first three are of the jobs, the others of the declaration."""


@dataclass(frozen=True)
class Policy:
    """What flags rest on: shorter windows beside that of 30 days, and whether kinds of work count."""

    name: str
    shorter: tuple[int, ...]
    kinds: bool = True
    margin: float = 0.05
    once: bool = False
    shorter_where_not_compared: bool = True


POLICIES = (
    Policy("**7 days and kinds of work**", (7,)),
    Policy("7 days, kinds of work do not count", (7,), kinds=False),
    Policy("3 days and kinds of work", (3,)),
    Policy("3 days, kinds of work do not count", (3,), kinds=False),
    Policy("14 days and kinds of work", (14,)),
    Policy("30 days alone", (), kinds=False),
    Policy("30 days and kinds of work", ()),
    Policy("7 days and kinds of work, no margin", (7,), margin=0.0),
    Policy("7 days and kinds of work, the 30 days alone open", (7,), shorter_where_not_compared=False),
    Policy("no memory: opens when confirmed once", (7,), once=True, margin=0.0),
)


class Chosen(StoredVerdicts):
    """The verdicts as a policy sees them."""

    def __init__(self, store: JobStore, policy: Policy) -> None:
        super().__init__(store, 30, policy.margin)
        self._policy = policy

    def runs_of(self, night: date) -> NightRuns | None:
        runs = super().runs_of(night)
        if runs is None:
            return None
        kept = tuple(run for run in runs.shorter if run.window.days in self._policy.shorter)
        return replace(runs, shorter=kept)

    def sightings(self, runs: NightRuns) -> dict[Key, Sighting]:
        found = super().sightings(runs)
        if not self._policy.shorter_where_not_compared:
            followed = runs.followed.window.days
            found = {
                key: seen if seen.window_days == followed else replace(seen, verdict="implausible", calm=())
                for key, seen in found.items()
            }
        if self._policy.once:
            return {key: _at_once(seen) for key, seen in found.items()}
        if not self._policy.kinds:
            return {
                key: replace(seen, again=tuple(item for item in seen.again if "apart in" not in item.text))
                for key, seen in found.items()
            }
        return found


def _at_once(seen: Sighting) -> Sighting:
    """As if one verdict were enough."""
    alone = (Evidence(date.max, f"verdict of run {seen.run}"),)
    return replace(seen, again=alone, calm=alone if seen.verdict == "ok" else ())


def day(number: int) -> date:
    """A day of the grid by its number."""
    return LAST_DAY - timedelta(days=DAYS - 1 - number)


def planted(grid: Grid) -> dict[str, float]:
    """Queues that something is planted at, with the deviation: own declarations, neither large nor tiny."""
    rng = np.random.default_rng([grid.seed, 77])
    queues = [
        queue
        for queue in sorted(grid.truth().queues, key=lambda queue: -queue.share)
        if queue.origin == "own" and not queue.island and not queue.misdeclared
    ][3:23]
    sites: set[str] = set()
    chosen: list[str] = []
    for place in rng.permutation(len(queues)):
        if queues[place].site not in sites and len(chosen) < len(DEVIATIONS):
            sites.add(queues[place].site)
            chosen.append(queues[place].name)
    return dict(zip(chosen, DEVIATIONS, strict=True))


def in_jobs(number: int) -> bool:
    """Whether the planted deviation of this place lies in the jobs, else in the declaration."""
    return number < len(DEVIATIONS) // 2


def build(seed: int, folder: Path) -> Path:
    """Every night of one grid through ingest, aggregation and fits; the store."""
    path = folder / f"grid{seed}.duckdb"
    done = folder / f"grid{seed}.json"
    if done.exists():
        return path
    path.unlink(missing_ok=True)
    grid = Grid(seed=seed, jobs_per_day=5000, n_queues=40, n_models=12)
    wrong = planted(grid)
    moment = [datetime(2025, 1, 1, tzinfo=UTC)]
    settings = Settings(store=f"duckdb:{path}", fit=FitSettings(methods=("gamma",)))
    began = time.perf_counter()
    with esjobs.open(settings=settings, clock=lambda: moment[0]) as session:
        declare(session, grid, {}, grid.declarations()[0].valid_from.date(), folder)
        for number in range(DAYS):
            if number in (PLANTED, REPAIRED):
                now = {name: size for place, (name, size) in enumerate(wrong.items()) if not in_jobs(place)}
                declare(session, grid, now if number == PLANTED else {}, day(number), folder)
            moment[0] = datetime.combine(day(number + 1), datetime.min.time(), UTC) + timedelta(hours=3)
            ingest(session, grid, number, wrong, folder)
            if number >= FIRST_NIGHT:
                for length in LENGTHS if seed == FIRST_SEED else USUAL:
                    if length <= 7 or number >= length // 2:
                        first = day(number) - timedelta(days=length - 1)
                        session.run((first, day(number) + timedelta(days=1)))
            print(f"seed {seed} night {number} {time.perf_counter() - began:.0f} s", flush=True)
    done.write_text(json.dumps(wrong))
    return path


def declare(session: Session, grid: Grid, wrong: Mapping[str, float], valid: date, folder: Path) -> None:
    """Import what every name declares: the honest value, but for those that are wrong."""
    factors = {queue.name: queue.factor for queue in grid.truth().queues}
    file = folder / "declared.csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        head = "level name corepower benchmark valid_from site parent_corepower source"
        writer.writerow(head.split())
        for row in grid.declarations():
            value = row.corepower
            if value is not None and row.level == "queue":
                value = value / factors[row.name] / (1 + wrong.get(row.name, 0.0))
            cells = ["" if cell is None else cell for cell in (value, row.benchmark)]
            writer.writerow([row.level, row.name, *cells, valid, row.site or "", "", "benchmark"])
    session.declared.import_values(file)


def ingest(session: Session, grid: Grid, number: int, wrong: Mapping[str, float], folder: Path) -> None:
    """The jobs of a day, slower or faster where that is planted."""
    jobs = pa.Table.from_batches(grid.jobs(day(number)))
    if PLANTED <= number < REPAIRED:
        factor = np.ones(jobs.num_rows)
        for place, (name, size) in enumerate(wrong.items()):
            if in_jobs(place):
                factor[np.asarray(pc.equal(jobs["queue"], name).fill_null(False))] = 1 / (1 + size)
        for column in ("cpu_s", "wall_s"):
            index = jobs.schema.get_field_index(column)
            jobs = jobs.set_column(
                index, jobs.schema.field(index), pc.multiply(jobs[column], pa.array(factor))
            )
    file = folder / f"jobs{grid.seed}.parquet"
    pq.write_table(jobs, file)
    session.ingest("jobs", file)


@dataclass
class Tally:
    """What one policy made of all grids."""

    grids: int = 0
    site_nights: int = 0
    false_open: int = 0
    false_kinds: int = 0
    kind_nights: int = 0
    models_open: int = 0
    reopened: int = 0
    to_open: dict[str, list[int | None]] = field(default_factory=lambda: defaultdict(list))
    to_close: dict[str, list[int | None]] = field(default_factory=lambda: defaultdict(list))

    def row(self, name: str) -> list[str]:
        rate = 1000 * self.false_open / max(self.site_nights, 1)
        of_kinds = 1000 * self.false_kinds / max(self.kind_nights, 1)
        return [
            name,
            str(self.grids),
            f"{self.false_open} in {self.site_nights:,} ({rate:.2f})",
            f"{self.false_kinds} in {self.kind_nights:,} ({of_kinds:.2f})",
            str(self.models_open),
            *(_spread(self.to_open[what]) for what in ("declaration", "jobs")),
            *(_spread(self.to_close[what]) for what in ("declaration", "jobs")),
            str(self.reopened),
        ]


def _spread(nights: Sequence[int | None]) -> str:
    known = sorted(each for each in nights if each is not None)
    if not known:
        return f"- (0 of {len(nights)})"
    return f"{statistics.median(known):g}, {known[0]} to {known[-1]} ({len(known)} of {len(nights)})"


def evaluate(session: Session, wrong: Mapping[str, float], policy: Policy, tally: Tally) -> None:
    """Walk all nights by a policy and count; nothing where the grid lacks its windows."""
    store = session.store
    runs = StoredVerdicts(store, 30, 0.0).runs_of(day(DAYS - 1))
    if runs is None or not set(policy.shorter) <= {run.window.days for run in runs.all}:
        return
    tally.grids += 1
    forget(session)
    settings = WatchSettings(margin=policy.margin, replay_nights=1000)
    walk = Walk(store, day(FIRST_NIGHT), day(DAYS - 1), settings, Chosen(store, policy), ())
    store.publish([], walk.changes)
    events: list[dict[str, Any]] = session.tables.flag_events().rows.to_pylist()
    flags = compared(session)
    tally.site_nights += sum(n for (name, kind), n in flags.items() if kind == "all" and name not in wrong)
    tally.kind_nights += sum(n for (name, kind), n in flags.items() if kind != "all" and name not in wrong)
    tally.models_open += sum(e["level"] == "cpu_model" and e["kind"] == "opened" for e in events)
    for event in events:
        if event["level"] != "queue" or event["kind"] not in ("opened", "reopened"):
            continue
        tally.reopened += event["kind"] == "reopened" and event["processing_type"] == "all"
        if event["name"] not in wrong or night_of(event) < PLANTED:
            tally.false_open += event["processing_type"] == "all"
            tally.false_kinds += event["processing_type"] != "all"
    for place, name in enumerate(wrong):
        what = "jobs" if in_jobs(place) else "declaration"
        mine = [e for e in events if (e["level"], e["processing_type"], e["name"]) == ("queue", "all", name)]
        opened = [night_of(e) for e in mine if e["kind"] in ("opened", "reopened") and night_of(e) >= PLANTED]
        closed = [night_of(e) for e in mine if e["kind"] == "closed" and night_of(e) >= REPAIRED]
        tally.to_open[what].append(min(opened) - PLANTED + 1 if opened else None)
        if opened:
            tally.to_close[what].append(min(closed) - REPAIRED + 1 if closed else None)


def night_of(event: Mapping[str, Any]) -> int:
    """The number of the night of an event."""
    at: date = event["night"]
    return DAYS - 1 - (LAST_DAY - at).days


def compared(session: Session) -> Counter[tuple[str, str]]:
    """On how many nights each queue was compared in the window that is followed."""
    verdicts = Chosen(session.store, POLICIES[0])
    found: Counter[tuple[str, str]] = Counter()
    for number in range(FIRST_NIGHT, DAYS):
        runs = verdicts.runs_of(day(number))
        if runs is not None:
            found.update(
                (name, kind)
                for (level, kind, name), seen in verdicts.sightings(runs).items()
                if level == "queue" and seen.compared
            )
    return found


def forget(session: Session) -> None:
    """As if no night had been watched."""
    nights = sorted(remembered_nights(session.store))
    changes = [Hide(table, night.isoformat()) for table in (FLAG_HISTORY, FLAG_EVENTS) for night in nights]
    session.store.publish([*changes, *(Hide(FLAG_STATES, level) for level in ("queue", "cpu_model"))])


COLUMNS = (
    "evidence beside the followed 30 days",
    "grids",
    "honest queues opened in site-nights (per 1000)",
    "of single kinds of work",
    "CPU models",
    "nights to open: declaration",
    "jobs",
    "nights to close: declaration",
    "jobs",
    "reopened",
)
HEADER = """# Flags with memory on the demo's grid

Written by `python -m benchmarks.watch`. {grids}: 40 queues, 5000 jobs a day, {nights} nights, each fitted
over windows of {lengths} days (grids after the first one: of 7 and 30) through the product, headline
method. All declare what they deliver (3 % scatter), but for six queues of each grid, of different WLCG
sites: on night {planted} the jobs of three change their speed by -25, -40 and +40 %, and three declare
another value, so that they deviate by -30, +30 and -35 %; on night {repaired} all is repaired. A site-night
is a queue that was compared in a night; nights that follow each other share most of their jobs, and queues
of a grid share its line. "Nights to open" count from the first night with the planted deviation: median,
range, and how many were opened; "nights to close" likewise from the repair. CPU models are compared with
their reference scores.

{table}
"""


def table(folder: Path, seeds: Sequence[int]) -> Iterator[str]:
    """A line a policy."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    tallies = {policy.name: Tally() for policy in POLICIES}
    for seed in seeds:
        path = build(seed, folder)
        wrong = json.loads((folder / f"grid{seed}.json").read_text())
        with esjobs.open(settings=Settings(store=f"duckdb:{path}")) as session:
            for policy in POLICIES:
                evaluate(session, wrong, policy, tallies[policy.name])
                print(seed, tallies[policy.name].row(policy.name), flush=True)
    for name, tally in tallies.items():
        yield f"| {' | '.join(tally.row(name))} |"


def main() -> None:
    """Build what is not built yet, evaluate, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, required=True, help="for stores; kept, and used again")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    seeds = list(itertools.islice(itertools.count(FIRST_SEED), options.seeds))
    lines = list(table(options.folder, seeds))
    print("\n".join(lines))
    if options.out:
        page = HEADER.format(
            grids=f"{options.seeds} grid{'s' * (options.seeds > 1)} of the demo",
            lengths=", ".join(map(str, LENGTHS)),
            nights=DAYS - FIRST_NIGHT,
            planted=PLANTED - FIRST_NIGHT,
            repaired=REPAIRED - FIRST_NIGHT,
            table="\n".join(lines),
        )
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
