"""Pages under load: percentiles and processor time per request, with readers beside a writer.

    python -m benchmarks.web demo/demo.duckdb --out benchmarks/results/web.md

Each reader asks again as soon as it has an answer. Cold: no address is asked twice. The writer loads a
small file again and again; the page of every queue, the list of jobs of every queue, and Today are read.
"""

import argparse
import http.client
import itertools
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from benchmarks.machine import busy_s

_TICK = os.sysconf("SC_CLK_TCK")
_SECONDS = 12.0


@dataclass
class Load:
    """Requests of one measurement. ``cpu_s``: of the server; ``others``: processors that others kept busy."""

    name: str
    readers: int
    waits: list[float] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    others: float = 0.0
    memory_mb: float = 0.0

    def row(self) -> str:
        """A row of the table."""
        waits = sorted(self.waits)
        if not waits:
            return f"| {self.name} | {self.readers} | no answer | | | | {self.errors} | | |"
        middle, late = statistics.median(waits), waits[min(len(waits) - 1, int(0.95 * len(waits)))]
        cells = (
            *(self.name, self.readers, len(waits), f"{1000 * middle:.0f} / {1000 * late:.0f}"),
            *(f"{1000 * self.cpu_s / len(waits):.1f}", f"{len(waits) / self.seconds:.0f}", self.errors),
            *(f"{self.memory_mb:.0f}", f"{self.others:.1f}"),
        )
        return f"| {' | '.join(map(str, cells))} |"


@contextmanager
def serving(store: Path) -> Iterator[tuple[int, int]]:
    """Port and process id of a server over a store."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "esjobs", "--quiet", "--store", f"duckdb:{store}", "web"]
    process = subprocess.Popen([*command, "--listen", f"127.0.0.1:{port}"])
    try:
        for _ in range(200):
            time.sleep(0.1)
            try:
                if ask(port, "/health")[0] == 200:
                    break
            except OSError:
                continue
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(20)


def ask(port: int, where: str, connection: http.client.HTTPConnection | None = None) -> tuple[int, bytes]:
    """Status and body of an address."""
    used = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    used.request("GET", where, headers={"Accept-Encoding": "gzip"})
    response = used.getresponse()
    return response.status, response.read()


def cpu_of(pid: int) -> float:
    """Processor seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory_of(pid: int) -> float:
    """Resident memory of a process in MB."""
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmRSS" in each)
    return int(line.split()[1]) / 1024


def measure(port: int, pid: int, name: str, readers: int, addresses: list[str], *, cold: bool) -> Load:
    """Read addresses in turns; each once if ``cold``, else for some seconds."""
    load = Load(name, readers)
    turns = iter(addresses) if cold else itertools.cycle(addresses)
    guard = threading.Lock()
    ends = time.monotonic() + (120 if cold else _SECONDS)

    def read() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.monotonic() < ends:
            with guard:
                where = next(turns, None)
            if where is None:
                return
            began = time.perf_counter()
            try:
                status = ask(port, where, connection)[0]
            except (OSError, http.client.HTTPException):
                status = 0
                connection.close()
            with guard:
                load.waits.append(time.perf_counter() - began)
                load.errors += status != 200

    busy, cpu, began = busy_s(), cpu_of(pid), time.perf_counter()
    threads = [threading.Thread(target=read) for _ in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.seconds = time.perf_counter() - began
    load.cpu_s = cpu_of(pid) - cpu
    load.others = max(0.0, busy_s() - busy - load.cpu_s) / load.seconds
    load.memory_mb = memory_of(pid)
    return load


@contextmanager
def writing(store: Path, pauses: list[float]) -> Iterator[None]:
    """Load a small file every two seconds in a process of its own; how long each took."""
    file = store.parent / "one-more.csv"
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.wait(2.0):
            number += 1
            head = "job_id,queue,end_time,wall_s,cpu_s,cores,source\n"
            file.write_text(f"{head}{number},BENCH,2025-06-30T12:00:00Z,100,90,1,bench\n")
            command = [sys.executable, "-m", "esjobs", "--quiet", "--store", f"duckdb:{store}", "ingest"]
            began = time.perf_counter()
            subprocess.run([*command, "jobs", str(file)], check=True, stdout=subprocess.DEVNULL)
            pauses.append(time.perf_counter() - began)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def whole_run(store: Path, times: list[float]) -> None:
    """Run the whole pipeline over a month in a process of its own."""
    command = [sys.executable, "-m", "esjobs", "--quiet", "--store", f"duckdb:{store}", "run", "--rebuild"]
    began = time.perf_counter()
    window = ["--window", "2025-06-01/2025-07-01"]
    subprocess.run([*command, *window], check=True, stdout=subprocess.DEVNULL)
    times.append(time.perf_counter() - began)


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    loads, pauses, alone = [], list[float](), list[float]()
    with serving(options.store) as (port, pid):
        rows = json.loads(_plain(port, "/api/v1/query?by=queue&limit=1000"))["rows"]
        queues = [quote(row["queue"], safe="") for row in rows if row["queue"]]
        pages = [f"/queue/{each}" for each in queues]
        lists = [f"/jobs?where=queue%3D{each}" for each in queues]
        loads.append(measure(port, pid, "queue pages, cold", 1, pages[::2], cold=True))
        loads.append(measure(port, pid, "queue pages, cold", 50, pages[1::2], cold=True))
        loads.append(measure(port, pid, "job lists, cold", 1, lists[::2], cold=True))
        loads.append(measure(port, pid, "job lists, cold", 50, lists[1::2], cold=True))
        mixed = ["/", *itertools.chain(*zip(pages, lists, strict=True))]
        for name, some in (("Today", ["/"]), ("queue pages", pages), ("job lists", lists)):
            loads.append(measure(port, pid, f"{name}, warm", 1, some, cold=False))
        loads.append(measure(port, pid, "all three, warm", 50, mixed, cold=False))
        with writing(options.store, alone):
            time.sleep(8)
        with writing(options.store, pauses):
            loads.append(measure(port, pid, "all three beside a writer", 20, mixed, cold=False))
            loads.append(measure(port, pid, "all three beside a writer", 50, mixed, cold=False))
        runs: list[float] = []
        whole_run(options.store, runs)
        for readers in (20, 50):
            thread = threading.Thread(target=whole_run, args=(options.store, runs))
            thread.start()
            loads.append(measure(port, pid, "all three beside a whole run", readers, mixed, cold=False))
            thread.join()
    text = report(loads, alone, pauses, runs, len(queues))
    if options.out:
        options.out.write_text(text)
    print(text)


def _plain(port: int, where: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", where)
    return connection.getresponse().read()


def report(
    loads: list[Load], alone: list[float], pauses: list[float], runs: list[float], n_queues: int
) -> str:
    """The measurements as a page."""
    versions = ", ".join(f"{each} {version(each)}" for each in ("duckdb", "starlette", "uvicorn"))
    head = (
        "# Pages under load\n\n`python -m benchmarks.web demo/demo.duckdb`, demo of 300,000 jobs, "
        f"{n_queues} queues; Python {platform.python_version()}, {versions}; {os.cpu_count()} cores. Server "
        "and readers share the machine.\n\n| what | readers | requests | p50 / p95, ms | processor ms per "
        "request | requests/s | errors | resident, MB | processors of others |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    rows = "\n".join(load.row() for load in loads)
    tail = (
        f"\n\nA writer (`esjobs ingest` of one job, start of the program included) took "
        f"{_median(alone)} s without readers and {_median(pauses)} s beside 20 and 50, longest "
        f"{max(pauses, default=0):.1f} s, {len(pauses)} loads, none refused. "
        f"`esjobs run --rebuild` of the month took {runs[0]:.0f} s without readers, {runs[1]:.0f} s beside "
        f"20, {runs[2]:.0f} s beside 50.\n\nGoals: Today and a queue's page within 150 ms at p95, a list of "
        "jobs within 200 ms, 50 readers beside a night within 600 ms without an error, 300 MB. 50 readers of "
        "pages that nobody asked for before wait longer: the processors make so many pages a second. "
        "The 64 answers used last are computed for a new state before it is shown.\n"
    )
    return head + rows + tail


def _median(values: list[float]) -> str:
    return f"{statistics.median(values):.1f}" if values else "-"


if __name__ == "__main__":
    main()
