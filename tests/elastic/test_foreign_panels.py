"""Panels on the jobs of an index of others: its names, units and words, and what it lacks."""

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from dashboards.pages import HEADLINE, PAGES
from dashboards.spec import JobsIndex
from dashboards.targets.kibana.bundle import kibana
from dashboards.targets.portable.bundle import portable
from esjobs.core import numbers
from esjobs.render.bundles import jobs_of
from tests.dashboards.answers import answered
from tests.dashboards.drawn import svg, written
from tests.dashboards.questions import Chart, Question, asked
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True),
]

Document = dict[str, Any]


def spider_documents() -> Iterator[Document]:
    """Jobs as the spider of CMS writes them: hours, a user under one name or another, words of its own."""
    dice = random.Random(7)
    for number in range(401):
        cores = dice.choice([1, 4, 8])
        wall_h = dice.uniform(0.5, 12)
        found: Document = {
            "CompletionDate": f"2026-06-{1 + number % 20:02}T12:00:00Z",
            "GlobalJobId": str(number),
            "Site": dice.choice(["T2_A", "T2_B", "T1_C"]),
            "Status": dice.choice(["Completed", "Completed", "Completed", "Removed"]),
            "WallClockHr": wall_h,
            "CpuTimeHr": wall_h * cores * dice.uniform(0.3, 0.9),
            "QueueHrs": dice.uniform(0, 5),
            "RequestCpus": cores,
        }
        if number % 3:
            found["CRAB_UserHN"] = dice.choice(["ann", "bob"])
        elif number % 5:
            found["User"] = "production"
        if number % 7 == 0:
            del found["CpuTimeHr"]
        yield found


@pytest.fixture
def spider(server: Server, index_prefix: str) -> tuple[str, list[Document]]:
    """An index of them, and the documents."""
    name = f"{index_prefix}cms"
    texts = {field: {"type": "keyword"} for field in ("GlobalJobId", "Site", "Status", "CRAB_UserHN", "User")}
    numbers = {field: {"type": "double"} for field in ("WallClockHr", "CpuTimeHr", "QueueHrs", "MemoryMB")}
    others = {"CompletionDate": {"type": "date"}, "RequestCpus": {"type": "long"}}
    others |= {field: {"type": "keyword"} for field in ("Campaign", "TaskType", "CPUModel", "CPUModelName")}
    server.json("PUT", name, {"mappings": {"properties": {**texts, **numbers, **others}}})
    documents = list(spider_documents())
    for document in documents:
        server.json("POST", f"{name}/_doc", document)
    server.json("POST", f"{name}/_refresh")
    return name, documents


def drawn(index: JobsIndex, server: Server, panel: str, layer: str = "numbers") -> list[str]:
    """The texts of a layer of a panel."""
    charts = [each for each in asked(portable(PAGES, HEADLINE, jobs=index)) if isinstance(each, Chart)]
    (chart,) = [each for each in charts if each.panel == panel]
    return sorted(written(svg(answered(chart.spec, server)), layer))


def summed(documents: list[Document], by: str, value: Any) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for document in documents:
        if by in document:
            found[document[by]] += value(document)
    return dict(found)


def test_hours_and_words(server: Server, spider: tuple[str, list[Document]]) -> None:
    name, documents = spider
    index = jobs_of(name, "cms-htcondor")
    known = [each for each in documents if "CpuTimeHr" in each]
    wasted = summed(known, "Site", lambda job: job["WallClockHr"] * job["RequestCpus"] - job["CpuTimeHr"])
    assert drawn(index, server, "efficiency-wasted") == texts(wasted, ",.0f")
    lost = summed(
        [job for job in documents if job["Status"] == "Removed"],
        "Site",
        lambda job: job["WallClockHr"] * job["RequestCpus"],
    )
    expected = [f"0 + {text} cancelled" for text in texts(lost, ",.0f")]
    assert drawn(index, server, "efficiency-lost") == expected
    waited = summed(documents, "Site", lambda job: job["QueueHrs"])
    counted = summed(documents, "Site", lambda _: 1)
    means = {site: waited[site] / counted[site] for site in waited}
    assert drawn(index, server, "efficiency-waiting") == sorted(map(numbers.number, means.values()))
    # jobs that somebody removed are cancelled, and did not fail
    assert drawn(index, server, "efficiency-ends") == [numbers.percent(0.0)] * len(counted)


def texts(values: dict[str, float], form: str) -> list[str]:
    return sorted(f"{value:{form}}" for value in values.values())


def test_coverage_counts_either_name(server: Server, spider: tuple[str, list[Document]]) -> None:
    name, documents = spider
    found = asked(portable(PAGES, HEADLINE, jobs=jobs_of(name, "cms-htcondor")))
    (question,) = [
        each for each in found if isinstance(each, Question) and each.panel == "efficiency-coverage"
    ]
    (counts,) = question.rows(server.json("POST", f"{question.index}/_search", question.body))
    assert counts["user"] == sum("CRAB_UserHN" in job or "User" in job for job in documents)
    assert counts["CPU time"] == sum("CpuTimeHr" in job for job in documents)
    assert counts["all jobs"] == len(documents)
    assert [counts[each] for each in ("project", "CPU model", "memory")] == [0, 0, 0]


def test_texts_are_grouped_by_the_field_beside_them(server: Server) -> None:
    del server
    found = jobs_of("panda_prod_*", "rubin-panda").columns
    assert found["queue"].names == ("computingsite.keyword",)
    assert found["wall_s"].names == ("wall_time",)


def test_what_a_map_lacks_is_said_in_the_place_of_the_panel(server: Server) -> None:
    del server
    full = jobs_of("archive", "atlas-panda")
    lacked = ("user", "queue_s")
    known = {name: each for name, each in full.columns.items() if name not in lacked}
    poor = JobsIndex("archive", full.time, known)
    for make in (portable, kibana):
        pages = [json.loads(line) for line in make(PAGES, HEADLINE, jobs=poor).splitlines()]
        (page,) = [each for each in pages if each["id"] == "esjobs-dashboard-efficiency"]
        panels = {each["panelIndex"]: each for each in json.loads(page["attributes"]["panelsJSON"])}
        shown = panels["efficiency-waiting"]["embeddableConfig"]["savedVis"]
        assert shown["type"] == "markdown"
        assert "`queue_s`" in shown["params"]["markdown"]
        coverage = json.dumps(panels["efficiency-coverage"])
        assert "markdown" not in coverage
        assert "produsername" not in json.dumps(page)
