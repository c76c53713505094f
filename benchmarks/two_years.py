"""Two years of small days in a cluster of one node: what a night costs as the history grows.

    python -m benchmarks.two_years --out benchmarks/results/two_years.md

The jobs lie in indices of others, one a month. Of each month the buckets are made at once; after some
months nights are played: a day arrives, the last seven are run, what is old is pruned. What is counted of a
night are the requests that esjobs sends and what they weigh; times are of this machine and mean something
only beside each other.
"""

import argparse
import json
import logging
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import esjobs
from benchmarks.machine import describe, load
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.settings import ClusterSettings, RetentionSettings
from tests.contract.jobs import job
from tests.elastic.foreign import CATALOGUE, make_index, plain, write
from tests.servers.memory import in_memory
from tests.servers.products import PRODUCTS
from tests.servers.server import Server

FIRST = datetime(2024, 11, 1, tzinfo=UTC)
ARCHIVE, PREFIX = "archive", "esjobs"
SITES, TASKS = 8, 3
"""Of a day; each task runs on every site."""

KEPT = RetentionSettings(keep_newest=2, keep_daily=3, keep_weekly=2, keep_monthly=2)
"""Small, so that runs are as many after the first month as after the last."""

WINDOW_DAYS = 7


def main() -> None:
    """Start a server, let the months go by, write the table and the numbers behind it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--product", choices=PRODUCTS, default="elasticsearch8")
    parser.add_argument("--months", type=int, default=24)
    parser.add_argument("--nights", type=int, default=5, help="played after each of some months")
    parser.add_argument("--jobs", type=int, default=240, help="a day")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/two_years.md"))
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    before = load()
    product = PRODUCTS[args.product]
    with Server(product, heap_mb=1024, parent=in_memory()) as server:
        rows = list(_history(server, args.months, args.nights, args.jobs))
    measured = {
        "command": " ".join(["python -m benchmarks.two_years", *sys.argv[1:]]),
        "machine": describe("elasticsearch"),
        "server": f"{product.title} {product.version}",
        "load": {"before": before, "after": load()},
        "after": rows,
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(_table(measured), encoding="utf-8")
    args.out.with_suffix(".json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(args.out.read_text(encoding="utf-8"))


def _history(server: Server, months: int, nights: int, jobs: int) -> Iterator[dict[str, Any]]:
    """What a night costs after some of the months."""
    settings = Settings(
        store=server.url,
        cluster=ClusterSettings(prefix=PREFIX, jobs_index=f"{ARCHIVE}-*", field_map="esjobs"),
        retention=KEPT,
    )
    asked = sorted({2, 6, 12, 18, months} & set(range(1, months + 1)))
    day = FIRST
    _make_month(server, day)
    with esjobs.open(settings=settings) as session:
        session.store.set_up()
        for month in range(1, months + 1):
            start, played = day, []
            end = (start + timedelta(days=31)).replace(day=1)
            last = end - timedelta(days=nights) if month in asked else end
            if month > 1:
                _make_month(server, start)
            while day < last:
                _day(server, day, jobs)
                day += timedelta(days=1)
            session.speed.aggregate(f"{start:%F}/{last:%F}")
            while day < end:
                _day(server, day, jobs)
                day += timedelta(days=1)
                played.append(_night(server, session, day))
            print(f"month {month}", file=sys.stderr, flush=True)
            if played:
                # the first one of a month finds things as no night left them
                middle = {name: statistics.median(each[name] for each in played[1:]) for name in played[0]}
                yield {"months": month, **middle, **_weights(server)}


def _night(server: Server, session: Session, end: datetime) -> dict[str, float]:
    """A day's run and its tidying, and how many requests that took."""
    cluster: Any = session.store._cluster  # type: ignore[attr-defined]
    send = cluster._send
    sizes: list[int] = []

    def counted(method: str, path: str, body: bytes | None, *more: Any) -> Any:
        answer = send(method, path, body, *more)
        sizes.append(len(body or b"") + len(answer))
        return answer

    cluster._send = counted
    searched = _searches(server)
    began = time.perf_counter()
    try:
        session.run(f"{end - timedelta(days=WINDOW_DAYS):%F}/{end:%F}")
        session.runs.prune()
    finally:
        cluster._send = send
    return {
        "seconds": time.perf_counter() - began,
        "requests": len(sizes),
        "bytes": sum(sizes),
        "searches": _searches(server) - searched,
    }


def _searches(server: Server) -> int:
    """How often a shard has been searched, all together."""
    return int(server.json("GET", "_stats/search")["_all"]["total"]["search"]["query_total"])


def _weights(server: Server) -> dict[str, int]:
    """What the history weighs in the state of the cluster, of which every node has a copy."""
    state = server.json("GET", f"_cluster/state/metadata/{PREFIX}-*")["metadata"]["indices"]
    aliases = server.json("GET", f"{PREFIX}-*/_alias")
    filters = [len(json.dumps(facts)) for index in aliases.values() for facts in index["aliases"].values()]
    return {
        "state": len(json.dumps(state)),
        "indices": len(state),
        "largest_filter": max(filters),
        "buckets": server.json("GET", f"{PREFIX}-buckets/_count")["count"],
        "runs": server.json("GET", f"{PREFIX}-runs/_count")["count"],
    }


def _make_month(server: Server, day: datetime) -> None:
    make_index(server, f"{ARCHIVE}-{day:%Y-%m}", CATALOGUE)


def _day(server: Server, day: datetime, jobs: int) -> None:
    """The jobs of a day, in the index of its month."""
    rows = []
    for number in range(jobs):
        site, task = number % SITES, number // SITES % TASKS
        rows.append(
            job(
                f"{day:%F}-{number}",
                task_id=f"{day:%Y%m}{task}",
                site=f"S{site}",
                end_time=day + timedelta(seconds=60 * number),
                cpu_s=4000.0 * (1 + 0.05 * site) * (1 + 0.01 * (number % 7)),
            )
        )
    write(server, f"{ARCHIVE}-{day:%Y-%m}", map(plain, rows))


_COLUMNS = {
    "months": "months of history",
    "requests": "requests of a night",
    "bytes": "kB sent and received",
    "searches": "searches of single shards",
    "seconds": "its time, against the first",
    "largest_filter": "longest filter of an alias, bytes",
    "state": "state of the cluster, kB of ours",
    "indices": "indices of ours",
    "buckets": "buckets",
    "runs": "reports of steps",
}


_NOTES = (
    "Requests are more where the prune of a night has runs to remove, which it has once months are kept",
    "by rule; they do not grow with months, and filters stay those of a month. What grows with months from",
    "then on is little: an archive asks each of its indices whether it has jobs of the window, one search",
    "for each month, and the state of the cluster lists the indices. Sweeping looks into the months of the",
    "night alone.",
)


def _table(measured: dict[str, Any]) -> str:
    rows = measured["after"]
    lines = [
        "# Two years of nights",
        "",
        f"`{measured['command']}`; {measured['server']}, one node; {measured['machine']['cpu']}, "
        f"{measured['machine']['cores']} cores. A night: the run of the last {WINDOW_DAYS} days and a prune; "
        "the median of several, at the end of a month.",
        "",
        f"| {' | '.join(_COLUMNS.values())} |",
        "|" + "---|" * len(_COLUMNS),
    ]
    for row in rows:
        cells = [_cell(name, row, rows[0]) for name in _COLUMNS]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_NOTES, ""])


def _cell(name: str, row: dict[str, Any], first: dict[str, Any]) -> str:
    value = row[name]
    if name == "seconds":
        return f"{value / first[name]:.2f}"
    return f"{value / 1000:,.0f}" if name in ("bytes", "state") else f"{value:,.0f}"


if __name__ == "__main__":
    main()
