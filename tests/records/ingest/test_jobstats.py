"""Summaries of jobstats in accounting: what they give, what they cannot spoil, and where it shows."""

import base64
import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.api.session import Session
from esjobs.issues.one_job import job_story
from esjobs.issues.settings import DetectSettings
from esjobs.records.ingest.base import parse_fill, settable
from esjobs.records.ingest.formats import jobstats
from esjobs.records.ingest.formats.slurm import SLURM
from esjobs.render.text.job import record_lines
from tests.conftest import with_settings

HEADER = (
    "JobID|Cluster|Partition|User|Start|End|ElapsedRaw|State|AllocCPUS|NNodes|TotalCPU|MaxRSS|ReqMem|AllocTRES"
    "|AdminComment\n"
)
DAY = "2025-06-01/2025-06-02"
GIB = 1 << 30
NODE = {
    "cpus": 8,
    "total_time": 7200.5,
    "used_memory": 8 * GIB,
    "total_memory": 64 * GIB,
    "gpu_utilization": {"0": 10.5, "1": 0},
    "gpu_used_memory": {"0": 4 * GIB, "1": 5 * GIB},
    "gpu_total_memory": {"0": 40 * GIB, "1": 40 * GIB},
}
SUMMARY: dict[str, Any] = {"nodes": {"g1": NODE}, "total_time": 7200, "gpus": 2}
COUNTED = {"gpu_load.mean": 0.0525, "gpu_mem_used_b.max": 5.0 * GIB, "mem_used_b.node_max": 8.0 * GIB}


def packed(data: bytes) -> str:
    return "JS1:" + base64.b64encode(gzip.compress(data, mtime=0)).decode()


def comment(summary: object) -> str:
    return packed(json.dumps(summary, separators=(",", ":")).encode())


def node(**changes: object) -> dict[str, Any]:
    """The summary with some numbers of its node changed; None leaves one out."""
    changed = {name: value for name, value in {**NODE, **changes}.items() if value is not None}
    return {**SUMMARY, "nodes": {"g1": changed}}


def line(job: int, said: str, cpu: str = "01:00:00", rss: str = "1G", memory: str = "") -> str:
    cells = (job, "alpha", "gpu", "ada", "2025-06-01T00:00:00", "2025-06-01T02:00:00", 7200, "COMPLETED")
    return "|".join(map(str, (*cells, 8, 1, cpu, rss, memory, "cpu=8,gres/gpu=2", said))) + "\n"


def read(folder: Path, *lines: str) -> tuple[list[dict[str, Any]], Counter[str]]:
    path = folder / "sacct.txt"
    path.write_text(HEADER + "".join(lines))
    rows: list[dict[str, Any]] = []
    ignored: Counter[str] = Counter()
    for piece in SLURM.parse(path, parse_fill(["timezone=UTC"], settable(SLURM))):
        assert not piece.rejects
        rows += piece.batch.to_pylist()
        ignored.update(piece.repaired)
    assert len(rows) == len(lines)
    return rows, Counter({text.rpartition(": ")[2]: count for text, count in ignored.items()})


def test_a_summary_gives_what_accounting_lacks(tmp_path: Path) -> None:
    said = comment(SUMMARY)
    (one, larger, none), ignored = read(
        tmp_path,
        line(1, said),
        line(2, said, cpu="04:00:00", rss="9G", memory="32G"),
        line(3, said, cpu="", rss=""),
    )
    assert not ignored
    for row in (one, none):
        assert (row["cpu_s"], row["max_rss_b"], row["requested_memory_b"]) == (7200.5, 8 * GIB, 64 * GIB)
    # both kinds of numbers fall short, if anything: the larger one counts
    assert (larger["cpu_s"], larger["max_rss_b"], larger["requested_memory_b"]) == (14400, 9 * GIB, 32 * GIB)
    for row in (one, larger, none):
        assert dict(row["counters"]) == COUNTED
        assert said not in repr(row)


def test_a_job_of_several_nodes_has_their_sums(tmp_path: Path) -> None:
    second = {**NODE, "cpus": 2, "total_time": 10, "used_memory": 9 * GIB, "gpu_utilization": {"0": 100}}
    summary = {
        "nodes": {"g1": NODE, "g2": {**second, "gpu_used_memory": {"0": 1}}},
        "total_time": 7200,
        "gpus": 3,
    }
    (row,), _ = read(tmp_path, line(1, comment(summary)))
    assert (row["cpu_s"], row["max_rss_b"], row["requested_memory_b"]) == (7210.5, 17 * GIB, 128 * GIB)
    assert dict(row["counters"]) == {
        "gpu_load.mean": pytest.approx(110.5 / 300),
        "gpu_mem_used_b.max": 5.0 * GIB,
        "mem_used_b.node_max": 9.0 * GIB,
    }


@pytest.mark.parametrize(
    "said", ["", "JS1:Short", "JS1:None", "JS1:", "drained | by ops", "JS2:abc", "js1:abc"]
)
def test_a_comment_that_is_no_summary_is_no_error(tmp_path: Path, said: str) -> None:
    (row,), ignored = read(tmp_path, line(1, said))
    assert (row["cpu_s"], row["counters"], ignored) == (3600, None, Counter())


@pytest.mark.parametrize(
    ("summary", "missing"),
    [
        (node(gpu_utilization=None), {"gpu_load.mean"}),
        (node(gpu_utilization={"0": 50}), {"gpu_load.mean"}),
        (node(gpu_used_memory={}), {"gpu_mem_used_b.max"}),
        (node(used_memory=None), {"mem_used_b.node_max"}),
        ({**SUMMARY, "gpus": 0}, {"gpu_load.mean", "gpu_mem_used_b.max"}),
    ],
)
def test_what_was_not_measured_on_all_is_unknown_and_not_0(
    tmp_path: Path, summary: object, missing: set[str]
) -> None:
    (row,), ignored = read(tmp_path, line(1, comment(summary)))
    assert set(COUNTED) - dict(row["counters"]).keys() == missing
    assert not ignored


def test_a_node_without_limit_has_none(tmp_path: Path) -> None:
    (row,), ignored = read(tmp_path, line(1, comment(node(total_memory=9223372036854771712))))
    assert (row["requested_memory_b"], row["max_rss_b"], ignored) == (None, 8 * GIB, Counter())


WRONG_TIMES: list[object] = [-1, math.nan, math.inf, "7200", True, [], 1e300]
WRONG_LOADS: list[object] = [[50], {"0": -1}, {"0": 101}, {"0": None}]
WRONG_NODES: list[object] = [None, [], {"g1": 3}]
BAD = {
    "damaged": ["JS1:%%%", "JS1:ü", "JS1:QUJD", "JS1:" + base64.b64encode(b"\x1f\x8bjunk").decode()],
    "incomplete, or above 1 MiB unpacked": [
        packed(json.dumps(SUMMARY).encode())[:-12],
        packed(b" " * 50_000_000),
        packed(b" " * jobstats.LARGEST + b"{}"),
    ],
    "CPU time above elapsed time x cores": [
        comment(node(total_time=57601)),
        comment({**SUMMARY, "total_time": 0}),
    ],
    "not a summary": [
        *map(
            packed, (b"", b"{}", b"[]", b"null", b"\xff", b"[" * 200_000, b'{"nodes":{"a":{"cpus":1e999}}}')
        ),
        *(comment(node(total_time=value)) for value in WRONG_TIMES),
        *(comment(node(gpu_utilization=value)) for value in WRONG_LOADS),
        *(comment(node(cpus=value)) for value in (-8, 1.5, 10**12)),
        *(comment({**SUMMARY, "nodes": value}) for value in WRONG_NODES),
    ],
}


@pytest.mark.parametrize(("reason", "said"), [(why, text) for why, texts in BAD.items() for text in texts])
def test_a_bad_summary_is_counted_and_the_row_stays(tmp_path: Path, reason: str, said: str) -> None:
    rows, ignored = read(tmp_path, line(1, said), line(2, said), line(3, comment(SUMMARY)))
    assert ignored == {reason: 2}
    assert [row["cpu_s"] for row in rows] == [3600, 3600, 7200.5]
    assert [row["counters"] is None for row in rows] == [True, True, False]


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    largest: list[int] = []
    unpack: Callable[..., Any] = zlib.decompressobj

    class Watched:
        def __init__(self, wbits: int) -> None:
            self.stream = unpack(wbits)

        def decompress(self, data: bytes, most: int) -> bytes:
            largest.append(most)
            return bytes(self.stream.decompress(data, most))

    monkeypatch.setattr("esjobs.records.ingest.formats.jobstats.zlib.decompressobj", Watched)
    with pytest.raises(ValueError, match="above"):
        jobstats.figures(packed(b" " * 50_000_000))
    assert largest == [jobstats.LARGEST + 1]


def test_what_people_wrote_is_in_no_excerpt(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    columns = "AdminComment|JobID|Cluster|Partition|User|End|State\n"
    path.write_text(
        f"{columns}ada called twice|1|alpha|gpu|ada|Unknown|RUNNING\nof eve|2|alpha|gpu|eve|no|FAILED\n"
    )
    rejects = [each for piece in SLURM.parse(path, {}) for each in piece.rejects]
    assert len(rejects) == 2
    assert not [each for each in rejects if "called" in each.excerpt or "of eve" in each.excerpt]


amounts = st.floats(0, 1e12, allow_nan=False) | st.integers(0, 10**12)
gpu_maps = st.dictionaries(st.sampled_from("0123"), st.floats(0, 100), max_size=4)
nodes = st.fixed_dictionaries(
    {"cpus": st.integers(1, 512)},
    optional={
        "used_memory": amounts,
        "total_memory": amounts,
        "total_time": st.floats(0, 100),
        "gpu_utilization": gpu_maps,
        "gpu_used_memory": st.dictionaries(st.sampled_from("0123"), amounts, max_size=4),
    },
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=8), nodes, max_size=5), st.integers(0, 20))
def test_a_written_summary_is_read_back(written: dict[str, dict[str, Any]], gpus: int) -> None:
    found = jobstats.figures(comment({"nodes": written, "total_time": 100, "gpus": gpus}))

    def of_all(name: str) -> list[float]:
        complete = all(name in each for each in written.values())
        return [float(each[name]) for each in written.values()] if complete else []

    loads, memory = (
        [value for each in written.values() for value in each.get(name, {}).values()]
        for name in ("gpu_utilization", "gpu_used_memory")
    )
    expected: list[float | None] = [gpus]
    expected += [
        sum(of_all(name)) if of_all(name) else None
        for name in ("cpus", "total_time", "used_memory", "total_memory")
    ]
    expected += [sum(loads) / gpus / 100 if loads and len(loads) == gpus else None]
    expected += [
        max(memory) if memory and len(memory) == gpus else None,
        max(of_all("used_memory"), default=None),
    ]
    read_back = [found.get(name) for name in jobstats.FIGURES]
    assert [each is None for each in read_back] == [each is None for each in expected]
    assert [float(each) for each in read_back if each is not None] == pytest.approx(
        [each for each in expected if each is not None]
    )


@settings(max_examples=40)
@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_break_the_reader(data: bytes, zipped: bool) -> None:
    said = packed(data) if zipped else "JS1:" + base64.b64encode(data).decode()
    ignored: Counter[str] = Counter()
    found = jobstats.columns([said, said], ignored)
    assert ignored.total() in (0, 2)
    assert {text.rpartition(": ")[2] for text in ignored} <= BAD.keys()
    assert {len(values) for values in found.values()} == {2}


def of_small_jobs(session: Session, folder: Path) -> Session:
    """A session by whose rules idle GPUs are an issue of small jobs, too, which else is only counted."""
    rules = folder / "rules.toml"
    rules.write_text('[rule.low-gpu-load]\nseverity = "minor"\n')
    chosen = session.settings.model_copy(update={"issues": DetectSettings(rules=(rules,))})
    return with_settings(session, chosen)


def test_rules_scores_and_the_page_of_a_job_have_the_numbers(session: Session, tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(
        HEADER
        + line(1, comment(SUMMARY))
        + line(2, comment(node(gpu_utilization=None)))
        + line(3, "JS1:Short")
    )
    session.ingest("slurm", tmp_path / "sacct.txt")
    session = of_small_jobs(session, tmp_path)
    session.issues.detect(DAY)
    session.scores.compute(DAY)
    issues = session.tables.issues().rows.to_pylist()
    low = {row["job_id"]: row for row in issues if row["detector"] == "low-gpu-load"}
    assert low.keys() == {"1"}
    assert (low["1"]["value"], low["1"]["idle_gpu_h"]) == (0.0525, pytest.approx(0.9475 * 4))
    scores = {row["job_id"]: row for row in session.tables.scores().rows.to_pylist()}
    assert {job: row["gpus_used_frac"] for job, row in scores.items()} == {"1": 0.0525, "2": None, "3": None}
    assert {row["score_cpu_reason"] for row in scores.values()} == {"no counters"}
    shown = dict(record_lines(job_story(session.store, "1")))
    assert (shown["gpu_load.mean"], shown["gpu_mem_used_b.max"]) == ("0.0525", "5 GiB")
    assert "counters" not in shown


def test_series_come_before_the_record(session: Session, tmp_path: Path) -> None:
    said = comment(node(gpu_utilization={"0": 10, "1": 10}))
    (tmp_path / "sacct.txt").write_text(HEADER + line(1, said) + line(2, said))
    session.ingest("slurm", tmp_path / "sacct.txt")
    samples = [
        f"1,gpu_load,2025-06-01T{n // 60:02d}:{n % 60:02d}:00Z,0.9,g1/0,accelerator" for n in range(120)
    ]
    (tmp_path / "load.csv").write_text("\n".join(["job_id,metric,time,value,unit,scope", *samples]) + "\n")
    session.ingest("series", tmp_path / "load.csv", fill=("source=alpha",))
    session = of_small_jobs(session, tmp_path)
    session.issues.detect(DAY)
    session.scores.compute(DAY)
    issues = session.tables.issues().rows.to_pylist()
    assert {row["job_id"] for row in issues if row["detector"] == "low-gpu-load"} == {"2"}
    scores = {row["job_id"]: row["gpus_used_frac"] for row in session.tables.scores().rows.to_pylist()}
    assert scores == {"1": pytest.approx(0.9), "2": 0.1}


def test_activity_of_gpus_in_the_record_makes_their_scores(session: Session, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "job_id,queue,end_time,wall_s,counter.gpu_sm_active.mean,counter.gpu_mem_active.mean\n"
        "1,q,2025-06-01T02:00:00Z,7200,0.25,0.4\n"
    )
    session.ingest("jobs", tmp_path / "jobs.csv")
    session.scores.compute(DAY)
    (row,) = session.tables.scores().rows.to_pylist()
    assert (row["score_gpu"], row["score_gpumem"], row["gpu_variant"]) == (75, 40, "activity")
