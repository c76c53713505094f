"""The benchmark of clusters runs at all, at a tiny size and in this process."""

import pytest

from benchmarks.elasticsearch import measure
from benchmarks.elasticsearch_table import Measured, render, targets
from benchmarks.elasticsearch_task import SMOKE, Task
from benchmarks.elasticsearch_ways import COMPARED, WAYS
from tests.servers.indices import remove_all
from tests.servers.plugin import server_params
from tests.servers.server import Server


def _call(way: str, task: Task) -> Measured:
    return {**WAYS[way](task), "peak_b": 0, "others": 0.0}


@pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)
def test_every_way_gives_the_same_answer_as_its_rival(server: Server) -> None:
    try:
        ways = measure(server.url, server.product.name, SMOKE, 1, _call)
    finally:
        remove_all(server, "bench-")
    assert {ways[name][0]["rows"] for name in ("bulk", "bulk-orjson", "put")} == {SMOKE.bulk}
    assert {ways[name][0]["rows"] for name in ("scan", "read")} == {SMOKE.buckets}
    by_hand, by_store = ways["composite"][0], ways["aggregate"][0]
    for name in ("buckets", *(f"sum_{column}" for column in COMPARED)):
        assert by_store[name] == pytest.approx(by_hand[name], rel=1e-12)
    assert all(ways[f"night-{name}"][0]["buckets"] > 0 for name in ("long", "short"))
    machine = {"cpu": "", "cores": 2, "memory_b": 0, "system": ""}
    measured = {"command": "", "server": "", "machine": machine, "load": {"before": [0], "after": [0]}}
    page = render({**measured, "sizes": vars(SMOKE), "ways": ways})
    assert all(f"| {target.what} |" in page for target in targets(ways))
