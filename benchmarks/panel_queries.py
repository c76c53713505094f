"""Every question of every panel of both bundles, asked of a store with years of results, on one small node.

    python -m benchmarks.panel_queries --out benchmarks/results/panel_queries.md

The server is started for the benchmark, with the heap that its table names. Results are written into the
store as steps write them, some nights at once; what a dashboard asks is read from the bundles.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe, load, publish
from benchmarks.panel_queries_inputs import Sizes, fill
from dashboards.pages import HEADLINE, PAGES
from dashboards.targets.kibana.bundle import kibana
from dashboards.targets.portable.bundle import portable
from dashboards.targets.saved_objects.checks import urls_of
from tests.dashboards.answers import without_context
from tests.dashboards.questions import Chart, asked
from tests.servers.products import PRODUCTS
from tests.servers.server import Server

PREFIX = "bench"
TARGETS = {"kibana": kibana, "portable": portable}
LIMIT_MS, MOST = 500, 20
SMOKE = Sizes(sites=12, nights=6, jobs=3_000)


@dataclass(frozen=True)
class Asked:
    """One search of a panel, as a server sends it."""

    target: str
    page: str
    panel: str
    index: str
    body: dict[str, Any]


def searches(target: str) -> Iterator[Asked]:
    """Everything that the dashboards of a bundle ask when they are opened."""
    for each in asked(TARGETS[target](PAGES, HEADLINE, PREFIX)):
        page = each.page.removeprefix(f"{PREFIX}-dashboard-")
        if isinstance(each, Chart):
            for url in urls_of(each.spec):
                yield Asked(target, page, each.panel, url["index"], without_context(url["body"]))
        else:
            yield Asked(target, page, each.panel, each.index, each.body)


def timed_ms(server: Server, search: Asked, repeat: int) -> tuple[list[float], int]:
    """How long the answers took, and the bytes of one; nothing comes from the cache of requests."""
    path = f"{search.index}/_search?request_cache=false"
    took, size = [], 0
    for number in range(repeat + 1):
        began = time.perf_counter()
        answer = server.json("POST", path, search.body)
        if number:
            took.append(1000 * (time.perf_counter() - began))
        size = len(json.dumps(answer))
    return took, size


def _count(server: Server, name: str) -> int:
    return int(server.json("GET", f"{PREFIX}-{name}/_count")["count"])


def render(measured: dict[str, Any]) -> str:
    """The table."""
    sizes, machine = measured["sizes"], measured["machine"]
    rows, rows_there = measured["searches"], measured["rows"]
    slow = [row for row in rows if row["median_ms"] > LIMIT_MS]
    lines = [
        "# Panels: what opening a dashboard asks",
        "",
        f"{measured['server']}, one node with {measured['heap_mb']} MB of heap; {sizes['sites']} queues x "
        f"{sizes['types']} processing types and all together x {sizes['nights']} nights of results, "
        f"{sizes['jobs']:,} jobs: {rows_there['flags']:,} rows of flags, "
        f"{rows_there['factors']:,} of factors. "
        f"{measured['repeat']} times each after one that does not count, without the "
        f"cache of requests. Load before {measured['load']['before'][0]:.1f}, after "
        f"{measured['load']['after'][0]:.1f}. Made by `{measured['command']}`.",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}.",
        "",
        f"{len(rows)} searches, {len(slow)} above {LIMIT_MS} ms in the median; the slowest median "
        f"{max(row['median_ms'] for row in rows):,.0f} ms.",
        "",
        "| bundle | page | searches | sum of medians, ms | slowest | ms, median | ms, longest | kB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for target in TARGETS:
        for page in PAGES:
            mine = [row for row in rows if (row["target"], row["page"]) == (target, page.id)]
            worst = max(mine, key=lambda row: row["median_ms"])
            lines.append(
                f"| {target} | {page.title} | {len(mine)} | {sum(row['median_ms'] for row in mine):,.0f} | "
                f"`{worst['panel']}` | {worst['median_ms']:,.0f} | {worst['longest_ms']:,.0f} | "
                f"{worst['bytes'] / 1000:,.0f} |"
            )
    lines += ["", "The ten slowest:", "", "| panel | bundle | index | ms, median | ms, longest |"]
    lines += ["|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: -row["median_ms"])[:10]:
        lines.append(
            f"| `{row['panel']}` | {row['target']} | `{row['index']}` | {row['median_ms']:,.0f} | "
            f"{row['longest_ms']:,.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Start a server, fill it, ask everything, write the table and the numbers behind it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--product", choices=PRODUCTS, default="elasticsearch8")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--heap-mb", type=int, default=1024)
    parser.add_argument("--sites", type=int, default=Sizes.sites)
    parser.add_argument("--nights", type=int, default=Sizes.nights)
    parser.add_argument("--jobs", type=int, default=Sizes.jobs)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/panel_queries.md"))
    args = parser.parse_args()
    sizes = SMOKE if args.smoke else Sizes(args.sites, Sizes.types, args.nights, args.jobs)
    product = PRODUCTS[args.product]
    before = load()
    found = []
    with Server(product, heap_mb=args.heap_mb, java_options=()) as server:
        fill(server.url, PREFIX, sizes)
        rows = {name: _count(server, name) for name in ("flags", "factors", "jobs", "buckets")}
        for target in TARGETS:
            for search in searches(target):
                took, size = timed_ms(server, search, args.repeat)
                found.append(
                    {
                        "target": target,
                        "page": search.page,
                        "panel": search.panel,
                        "index": search.index,
                        "median_ms": statistics.median(took),
                        "longest_ms": max(took),
                        "bytes": size,
                    }
                )
    measured = {
        "command": " ".join(["python -m benchmarks.panel_queries", *sys.argv[1:]]),
        "machine": describe("elasticsearch"),
        "server": f"{product.title} {product.version}",
        "heap_mb": args.heap_mb,
        "repeat": args.repeat,
        "load": {"before": before, "after": load()},
        "sizes": vars(sizes),
        "rows": rows,
        "searches": found,
    }
    publish(args.out, render(measured), measured)


if __name__ == "__main__":
    main()
