"""Counts what the steps of a session on a cluster cost both sides, where requests are sent."""

import json
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from esjobs.api.session import Session
from esjobs.store.elastic.transport.cluster import Request

REST = "ledger, merges"
"""What is part of no step."""


class Meter:
    """Costs of each step: processor seconds of both sides, searches, requests, bytes and rows written."""

    def __init__(self, server: int) -> None:
        self._stat = Path(f"/proc/{server}/stat")
        self._step = REST
        self._snapshots: dict[str, str] = {}
        self._rows: Callable[[], int] = lambda: 0
        self.counts: Counter[str] = Counter()
        self.steps: dict[str, Counter[str]] = {}
        self.indices: Counter[str] = Counter()

    def watch(self, session: Session) -> None:
        """Count what a session sends."""
        store: Any = session.store
        send = store._cluster._send
        self._rows = lambda: store.work().rows_written

        def counted(request: Request) -> Any:
            path, body = request.path, request.body
            self.counts["requests"] += 1
            self.counts["written_b"] += len(body or b"") * path.endswith("_bulk")
            answer = send(request)
            if path.endswith("_pit") and request.method == "POST":
                self._snapshots[json.loads(answer)["id"]] = path.split("/")[1]
            elif "_search" in path or "_count" in path:
                self.counts["searches"] += 1
                snapshot = json.loads(body or b"{}").get("pit", {}).get("id")
                self.indices[f"{self._step}: {self._snapshots.get(snapshot, path)}"] += 1
            return answer

        store._cluster._send = counted

    def now(self) -> Counter[str]:
        """Return the counts up to now."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        ticks = self._stat.read_text().rpartition(")")[2].split()[11:13]
        seconds = {"client_s": usage.ru_utime + usage.ru_stime, "server_s": sum(map(int, ticks)) / 100}
        return Counter({**self.counts, **seconds, "rows": self._rows()})

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count what happens inside for a step."""
        outer, before = self._step, self.now()
        self._step = name
        try:
            yield
        finally:
            spent = self.now()
            spent.subtract(before)
            self.steps.setdefault(name, Counter()).update(spent)
            self._step = outer

    def settled(self, act: Callable[[], Any]) -> Any:
        """Do something and wait until the server has merged; the step ``all`` is everything."""
        before = self.now()
        answer = act()
        busy = 0.0
        for _ in range(10):
            if self.now()["server_s"] - busy < 0.2:
                break
            busy = self.now()["server_s"]
            time.sleep(1)
        total = self.now()
        total.subtract(before)
        rest = Counter(total)
        for spent in self.steps.values():
            rest.subtract(spent)
        self.steps |= {REST: rest, "all": total}
        return answer
