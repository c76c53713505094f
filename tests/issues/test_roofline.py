"""Rooflines: numbers against a slow second implementation, planted jobs, a real one, and the drawing."""

import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import esjobs
from esjobs import Settings
from esjobs.issues.one_job import JobStory
from esjobs.issues.roofline import Roofline, roofline
from esjobs.records.clusters.description import Clusters, Subcluster
from esjobs.records.series.blocks import Block
from esjobs.records.series.rows import Series
from esjobs.render.job_page import job_html
from esjobs.render.roofline import roofline_drawing
from esjobs.render.text.job import page_lines
from esjobs.render.text.roofline import roofline_headline, roofline_notes
from tests.issues.made_jobs import START, N, busy, cores, put_records, put_series, record, series
from tests.messages import compare_text

NODE = Subcluster("c", "s", cores=4, peak_flops_s=264e9, peak_scalar_flops_s=16e9, peak_mem_bw_b_s=205e9)
CLUSTERS = Clusters([NODE])
RECORD = {"cluster": "c", "subcluster": "s", "cores": 8, "nodes": 2}

Units = Mapping[str, Sequence[float]]


def block_of(metrics: Mapping[str, tuple[str, Units]]) -> Block:
    """A job as a block; metric -> scope and samples of its units."""
    return Block(
        pa.table({"source": ["c"], "job_id": ["1"]}),
        np.array([START.replace(tzinfo=None)], "datetime64[us]"),
        np.array([30.0]),
        {name: np.array([list(units.values())], np.float32) for name, (_, units) in metrics.items()},
        {name: (tuple(units),) for name, (_, units) in metrics.items()},
        {name: (scope,) for name, (scope, _) in metrics.items()},
        np.array([False]),
    )


def slow_of_node(units: Units, node: str, at: int) -> float:
    """What a node makes of its units: those with a gap are as the mean of the others."""
    mine = [values for unit, values in units.items() if unit.split("/")[0] == node]
    good = [[value for value in values if 0 <= value < math.inf] for values in mine]
    now = [values[at] for values in mine if 0 <= values[at] < math.inf]
    return sum(now) / len(now) * sum(1 for each in good if each) if now else math.nan


def slow(dp: Units, sp: Units, traffic: Units, n: int) -> dict[str, Any]:
    """The numbers of a roofline, sample by sample in plain Python."""
    nodes = sorted({unit.split("/")[0] for units in (dp, sp, traffic) for unit in units})
    pairs = []
    for node in nodes:
        for at in range(n):
            flops = slow_of_node(dp, node, at) + slow_of_node(sp, node, at)
            pairs.append((flops, slow_of_node(traffic, node, at)))
    good = [(flops, moved) for flops, moved in pairs if not math.isnan(flops) and moved > 0]
    found: dict[str, Any] = {"n_samples": len(pairs), "n_left_out": len(pairs) - len(good)}
    found |= {"intensity": None, "share": None}
    found["n_idle"] = sum(1 for flops, _ in good if flops == 0)
    if good:
        flops, moved = (math.fsum(each) for each in zip(*good, strict=True))
        found |= {"intensity": flops / moved, "flops": flops / len(good)}
        if flops:
            found["share"] = flops / len(good) / min(264e9, 205e9 * flops / moved)
    return found


AMOUNTS = st.one_of(st.sampled_from([0.0, math.nan, -1.0, math.inf]), st.floats(1024, 2**36, width=32))


@st.composite
def units_of(draw: st.DrawFn, per_node: int, n: int) -> Units:
    names = [f"n{node}/{unit}" for node in range(2) for unit in range(per_node)]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    return {name: draw(st.lists(AMOUNTS, min_size=n, max_size=n)) for name in sorted(chosen)}


@given(st.data(), st.integers(1, 6))
def test_numbers_are_those_of_a_slow_implementation(data: st.DataObject, n: int) -> None:
    dp, sp, traffic = (data.draw(units_of(per_node, n)) for per_node in (3, 3, 2))
    metrics = {"flops_dp_s": ("thread", dp), "flops_sp_s": ("core", sp), "mem_bw_b_s": ("socket", traffic)}
    roof = roofline(block_of(metrics), 0, RECORD, CLUSTERS)
    usable = [any(0 <= v < math.inf for each in units.values() for v in each) for units in (dp, sp, traffic)]
    assert (roof is not None) == all(usable)
    if roof is None:
        return
    expected = slow(dp, sp, traffic, n)
    assert (roof.n_samples, roof.n_left_out, roof.n_idle) == tuple(
        expected[name] for name in ("n_samples", "n_left_out", "n_idle")
    )
    assert roof.n_left_out == int(np.isnan(roof.flops_s).sum()) == int(np.isnan(roof.mem_bw_b_s).sum())
    if expected["intensity"] is None:
        assert (roof.intensity, roof.mean_flops_s, roof.roof_share_frac, roof.bound) == (None,) * 4
        return
    assert roof.intensity == pytest.approx(expected["intensity"], rel=1e-9)
    assert roof.mean_flops_s == pytest.approx(expected["flops"], rel=1e-9)
    assert (roof.roof_share_frac is None) == (expected["share"] is None)
    if roof.roof_share_frac is not None and roof.intensity is not None:
        assert roof.roof_share_frac == pytest.approx(expected["share"], rel=1e-9)
        assert roof.bound == ("memory" if roof.intensity * 205e9 < 264e9 else "compute")


def test_threads_and_sockets_add_up_to_a_node() -> None:
    traffic = {"n1/0": [40e9, 40e9], "n1/1": [42e9, 0.0]}
    threads = {f"n1/{thread}": [1e9, 2e9] for thread in range(4)}
    block = block_of(
        {
            "flops_dp_s": ("thread", threads),
            "flops_sp_s": ("node", {"n1": [0.1e9, 2e9]}),
            "mem_bw_b_s": ("socket", traffic),
            "flops_s": ("node", {"n1": [9e9, 9e9]}),
        }
    )
    roof = roofline(block, 0, {**RECORD, "nodes": 1, "cores": 4}, CLUSTERS)
    assert roof is not None
    assert (roof.counters, roof.shared, roof.nodes) == (("flops_dp_s", "flops_sp_s"), False, ("n1",))
    assert roof.flops_s.ravel() == pytest.approx([4.1e9, 10e9])
    assert roof.mem_bw_b_s.ravel() == pytest.approx([82e9, 40e9])
    # of sums: not the mean of 0.05 and 0.25
    assert roof.intensity == pytest.approx(14.1 / 122)
    assert roof.bound == "memory"
    assert roof.roof_share_frac == pytest.approx(61 / 205)
    assert roof.times.tolist() == [START.replace(tzinfo=None), START.replace(tzinfo=None, second=30)]


ANY = {"flops_s": ("node", {"n1": [10e9], "n2": [30e9]}), "mem_bw_b_s": ("node", {"n1": [1e9], "n2": [1e9]})}


def made(metrics: Mapping[str, tuple[str, Units]], clusters: Clusters = CLUSTERS, **fields: Any) -> Roofline:
    found = roofline(block_of(metrics), 0, {**RECORD, **fields}, clusters)
    assert found is not None
    return found


def test_shares_of_the_level_roof_and_of_undescribed_ones() -> None:
    high = made(ANY)
    assert (high.counters, high.bound) == (("flops_s",), "compute")
    assert high.intensity == pytest.approx(20)
    assert high.roof_share_frac == pytest.approx(20 / 264)
    nowhere = made(ANY, Clusters())
    assert (nowhere.bound, nowhere.roof_share_frac) == (None, None)
    assert nowhere.intensity == pytest.approx(20)
    no_peak = made(ANY, Clusters([replace(NODE, peak_flops_s=0.0)]))
    assert (no_peak.bound, no_peak.shared) == (None, False)


@pytest.mark.parametrize(
    ("cores", "nodes", "shared"), [(8, 2, False), (7, 2, True), (4, 1, False), (3, 1, True), (16, 2, False)]
)
def test_a_job_with_a_part_of_its_nodes_has_no_points(cores: int, nodes: int, shared: bool) -> None:
    roof = made(ANY, cores=cores, nodes=nodes)
    assert roof.shared is shared
    assert (roof.flops_s.size, roof.intensity is None) == ((0, True) if shared else (2, False))
    assert bool(roofline_drawing(roof).lines) is not shared


@pytest.mark.parametrize(
    "metrics",
    [
        {"flops_s": ANY["flops_s"]},
        {"mem_bw_b_s": ANY["mem_bw_b_s"], "flops_dp_s": ANY["flops_s"]},
        {**ANY, "flops_s": ("node", {"n1": [math.nan], "n2": [math.nan]})},
        {**ANY, "mem_bw_b_s": ("job", {"": [1e9]})},
    ],
)
def test_without_counters_of_a_node_there_is_none(metrics: Mapping[str, tuple[str, Units]]) -> None:
    assert roofline(block_of(metrics), 0, RECORD, CLUSTERS) is None


def test_of_very_many_samples_some_are_points_and_all_count() -> None:
    n = 50_001
    many = np.arange(1.0, n + 1).tolist()
    roof = made({"flops_s": ("node", {"n1": many}), "mem_bw_b_s": ("node", {"n1": [2.0] * n})})
    assert roof.flops_s.tolist() == [many[::3]]
    assert (len(roof.times), roof.n_samples, roof.mean_flops_s) == (16_667, n, (n + 1) / 2)


def test_sentences() -> None:
    idle = {"flops_s": ("node", {"n1": [0.0, 5e9, 1e9]}), "mem_bw_b_s": ("node", {"n1": [1e9, 2e9, 0.0]})}
    no_traffic = {**ANY, "mem_bw_b_s": ("node", {"n1": [0.0], "n2": [0.0]})}
    slow_node = Clusters([replace(NODE, peak_flops_s=1e9)])
    cases = [
        made(ANY),
        made(ANY, Clusters()),
        made(ANY, slow_node, cores=4),
        made(ANY, slow_node),
        made(idle, cores=4, nodes=1),
        made(no_traffic),
        replace(made(ANY), counters=("flops_dp_s", "flops_sp_s"), shared=None),
    ]
    for roof in cases:
        compare_text(f"{roofline_headline(roof)} | {roofline_notes(roof)}")


def test_points_stand_at_their_logarithms() -> None:
    """A box of 428 x 274 for 0.01 to 1000 FLOP/B and 264 MF/s to 528 GF/s."""
    roof = replace(made(ANY, nodes=1, cores=4), mean_flops_s=26.4e9, mean_mem_bw_b_s=26.4e9)
    lines = {line.style: line.path for line in roofline_drawing(roof).lines if line.style != "axis"}
    height = 280 - 274 * 2 / math.log10(2000)
    assert lines["job"] == f"M{round(50 + 428 * 2 / 5)},{round(height)}m0,-6l6,6l-6,6l-6,-6z"
    ridge = round(50 + 428 * (math.log10(264 / 205) + 2) / 5)
    top = round(280 - 274 * 3 / math.log10(2000))
    slopes = [line.path for line in roofline_drawing(roof).lines if line.style == "roof"]
    assert slopes[0].endswith(f"L{ridge},{top}")
    assert slopes[1] == f"M{ridge},{top}H478"
    # two nodes have shapes of their own
    assert [len(re.findall("M", lines[f"time time-{age}"])) for age in range(5)] == [2, 0, 0, 0, 0]
    assert roofline_drawing(roof).nodes == ["● n1", "■ n2"]


@given(st.data())
def test_everything_is_inside_the_box(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 20))
    amounts = st.one_of(st.just(0.0), st.floats(1e-3, 1e15))
    flops, traffic = (data.draw(st.lists(amounts, min_size=n, max_size=n)) for _ in range(2))
    peaks = [data.draw(st.one_of(st.none(), st.floats(1e6, 1e15))) for _ in range(3)]
    part = Subcluster(
        "c", "s", None, None, 4, None, None, None, None, peaks[0], peaks[1], None, None, None, peaks[2]
    )
    metrics = {"flops_s": ("node", {"n1": flops}), "mem_bw_b_s": ("node", {"n1": traffic})}
    roof = made(metrics, Clusters([part]), nodes=1)
    drawing = roofline_drawing(roof)
    for line in drawing.lines:
        for x, y in re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", line.path):
            assert 50 <= float(x) <= 478
            assert 6 <= float(y) <= 280
    ticks = sum(line.path.count("v-6") for line in drawing.lines if line.style == "rug")
    assert (ticks > 0) >= (roof.n_idle > 0 and bool(drawing.lines))


class Texts(HTMLParser):
    """Classes of the elements of a page, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.classes: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.classes += [value or "" for name, value in attrs if name == "class"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def counted(node: str, dp: float, traffic: float) -> list[Series]:
    """Counters of four threads and two sockets."""
    threads = [series("flops_dp_s", "thread", f"{node}/{unit}", busy(dp / 4)) for unit in range(4)]
    threads += [series("flops_sp_s", "thread", f"{node}/{unit}", busy(0)) for unit in range(4)]
    halves = [series("mem_bw_b_s", "socket", f"{node}/{unit}", busy(traffic / 2)) for unit in range(2)]
    return [*threads, *halves]


def roof_of(story: JobStory) -> Roofline:
    assert story.roofline is not None
    return story.roofline


def test_the_page_of_a_stored_job(session: esjobs.Session, tmp_path: Path) -> None:
    """The cluster of the fixture has a bandwidth and no peak of operations."""
    names = ("alone", "shared", "plain")
    put_records(session, tmp_path, [record(name, cores=2 if name == "shared" else 4) for name in names])
    given = {name: counted("<b>n1", 41e9, 8e10) for name in names[:2]}
    put_series(session, {**given, "plain": cores([busy()])})
    page = session.job("alone")
    roof = roof_of(page.content)
    assert (roof.n_samples, roof.mean_mem_bw_b_s) == (N, 8e10)
    assert roof.mean_flops_s == pytest.approx(41e9)
    assert (roof.bound, roof.part.peak_mem_bw_b_s) == (None, 1e11)
    found = Texts(page.html)
    assert {"100 GB/s", "10 GF/s", "1000 FLOP/B"} <= set(found.texts)
    assert found.texts.count(roofline_headline(roof)) == found.texts.count(roofline_notes(roof)) - 1 == 1
    assert found.classes.count("roof") == 1
    assert "scalar" not in found.classes
    lines = list(page_lines(page.content, 80))
    assert f"roofline: {roofline_headline(roof)}" in lines
    shared = session.job("shared")
    assert roof_of(shared.content).shared
    assert "roof" not in Texts(shared.html).classes
    assert roofline_notes(roof_of(shared.content)) in Texts(shared.html).texts
    plain = session.job("plain")
    assert plain.content.roofline is None
    assert "Roofline" not in plain.html
    assert not any("roof" in line for line in page_lines(plain.content, 80))


@pytest.fixture
def emmy(shared_data: Path) -> Iterator[esjobs.Session]:
    archive = shared_data / "job-archive" / "emmy"
    settings = Settings(clusters={"files": [archive / "cluster.json"]})
    with esjobs.open("duckdb::memory:", settings=settings) as opened:
        opened.ingest("clustercockpit", [archive / "1403244"])
        yield opened


def test_a_real_job(emmy: esjobs.Session, shared_data: Path, tmp_path: Path) -> None:
    """32 nodes for a day; its cluster.json describes smaller nodes than those it ran on."""
    with gzip.open(shared_data / "job-archive" / "emmy" / "1403244" / "data.json.gz") as stream:
        data = json.load(stream)
    samples = [
        {one["hostname"]: one["data"] for one in data[metric]["node"]["series"]}
        for metric in ("flops_dp", "flops_sp", "mem_bw")
    ]
    triples = [each for host in samples[0] for each in zip(*(of[host] for of in samples), strict=True)]
    good = [(dp + sp, moved) for dp, sp, moved in triples if None not in (dp, sp, moved) and moved]
    flops, moved = (math.fsum(each) for each in zip(*good, strict=True))
    roof = roof_of(emmy.job("1403244").content)
    assert (roof.n_samples, roof.n_left_out, roof.n_idle) == (46_112, 46_112 - len(good), 65)
    assert roof.intensity == pytest.approx(flops / moved, rel=1e-6) == pytest.approx(3.5486, rel=1e-4)
    assert roof.mean_flops_s == pytest.approx(1e9 * flops / len(good), rel=1e-6)
    assert (roof.part.peak_flops_s, roof.part.peak_scalar_flops_s) == (112e9, 14e9)
    # its meta.json names no threads
    assert (roof.shared, roof.bound, len(roof.nodes)) == (None, "memory", 32)
    assert roof.roof_share_frac == pytest.approx(moved / len(good) / 24, rel=1e-6)
    compare_text(f"{roofline_headline(roof)} | {roofline_notes(roof)}")
    assert "roof scalar" in Texts(job_html(emmy.job("1403244").content)).classes
    emmy.issues.detect()
    folder = emmy.export.html(tmp_path / "out", job_pages=5).parent
    assert all("265 % of the roof" in path.read_text() for path in (folder / "jobs").glob("1403244*.html"))
