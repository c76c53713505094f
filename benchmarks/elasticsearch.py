"""The store of clusters beside what one writes with the official client, on a real server.

    python -m benchmarks.elasticsearch --out benchmarks/results/elasticsearch.md

The server is started for the benchmark. Each measurement is a process of its own; what is compared takes
turns.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.child import run
from benchmarks.elasticsearch_table import Measured, render
from benchmarks.elasticsearch_task import SMOKE, Sizes, Task
from benchmarks.machine import children_of, describe, load, publish, wait_until_quiet
from tests.servers.node import QUICK_START
from tests.servers.products import PRODUCTS
from tests.servers.server import Server

Call = Callable[[str, Task], Measured]
"""Calls a way, by its name, once."""


def measure(
    url: str, product: str, sizes: Sizes, seed: int, call: Call, servers: tuple[int, ...] = ()
) -> dict[str, list[Measured]]:
    """Everything, in order; what was measured of each way. ``servers``: the processes of the server."""
    found: dict[str, list[Measured]] = {}

    def turns(*ways: tuple[str, str, Task]) -> None:
        """Ways in turns under their titles; the first round is not counted, unless it is the only one."""
        for number in range(sizes.repeat + (sizes.repeat > 1)):
            for title, way, task in ways if number % 2 else reversed(ways):
                done = call(way, replace(task, day=task.day + number))
                if number or sizes.repeat == 1:
                    found.setdefault(title, []).append(done)

    def task(name: str, rows: int, days: int = 1) -> Task:
        return Task(url, product, f"bench-{name}", rows, days, seed=seed, servers=servers)

    writes = task("write", sizes.bulk)
    turns(*((way, way, writes) for way in ("bulk", "bulk-orjson", "bulk-alike", "bulk-ready", "put")))
    foreign, day = task("foreign", sizes.jobs), task("day", sizes.jobs)
    call("fill-peer", foreign)
    call("fill-store", day)
    turns(("composite", "composite", foreign), ("aggregate", "aggregate", day))
    wide = task("wide", sizes.wide)
    call("fill-store", wide)
    found["step"] = [call("step", wide)]
    stored = task("stored", sizes.buckets, sizes.long)
    call("fill-buckets", stored)
    turns(("scan", "scan", stored), ("read", "read", stored))
    pasts = {name: task(name, sizes.night, getattr(sizes, name)) for name in ("long", "short")}
    for past in pasts.values():
        call("history", past)
    turns(*((f"night-{name}", "night", replace(past, day=past.days)) for name, past in pasts.items()))
    return found


def _in_a_process(patience_s: float) -> Call:
    def call(way: str, task: Task) -> Measured:
        _say(f"{way} {task.name} {task.rows:,}")
        wait_until_quiet(patience_s)
        command = [sys.executable, "-m", "benchmarks.elasticsearch_ways", way, json.dumps(vars(task))]
        done = run(command)
        return {**json.loads(done.stdout), "peak_b": done.peak_b, "others": done.others}

    return call


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Start a server, measure, write the table and the numbers behind it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--product", choices=PRODUCTS, default="elasticsearch8")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--wait", type=float, default=0, help="longest wait in seconds for a quiet machine")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/elasticsearch.md"))
    for name in ("jobs", "wide", "bulk", "night", "buckets"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Sizes, name), help="see Sizes")
    args = parser.parse_args()
    of_rows = {name: getattr(args, name) for name in ("jobs", "wide", "bulk", "night", "buckets")}
    sizes = SMOKE if args.smoke else Sizes(repeat=args.repeat, **of_rows)
    product = PRODUCTS[args.product]
    before = load()
    options = QUICK_START if sizes.quick else ()
    with Server(product, heap_mb=sizes.heap_mb, java_options=options) as server:
        guards = [node.guard_pid for node in server.nodes if node.guard_pid is not None]
        servers = tuple(child for guard in guards for child in children_of(guard))
        found = measure(server.url, args.product, sizes, args.seed, _in_a_process(args.wait), servers)
    measured = {
        "command": " ".join(["python -m benchmarks.elasticsearch", *sys.argv[1:]]),
        "machine": describe("elasticsearch", "opensearch-py", "orjson", "msgspec"),
        "server": f"{product.title} {product.version}",
        "load": {"before": before, "after": load()},
        "sizes": vars(sizes),
        "ways": found,
    }
    publish(args.out, render(measured), measured)


if __name__ == "__main__":
    main()
