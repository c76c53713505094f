"""Samples in long form: equal to what a format of its own reads, whatever the order, clock and names."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.api.session import Session
from esjobs.core.errors import InputError, UsageError
from esjobs.core.report import RunReport
from esjobs.records.ingest.formats.series_map import SHIPPED, read_map
from tests.conftest import memory_session
from tests.records.ingest.monitored import read, refused, rows, series

HEADER = "job_id,metric,time,value,scope,unit\n"
BEGIN = 1_700_000_000

PRMON = """
source = "prmon"
columns.job_id = "job"
columns.metric = "name"

[metrics]
pss = {name = "mem_pss_b", factor = 1024}
rss = {name = "mem_used_b", factor = 1024}
rchar = {name = "read_b_s", kind = "counter"}
wchar = {name = "write_b_s", kind = "counter"}
rbytes = {name = "disk_read_b_s", kind = "counter"}
"""


def load(
    session: Session, folder: Path, text: str, form: str | None = None, fill: Sequence[str] = ()
) -> RunReport:
    (folder / "samples.csv").write_text(text)
    mapping = None
    if form is not None:
        mapping = folder / "map.toml"
        mapping.write_text(form)
    return session.ingest("series", folder / "samples.csv", mapping=mapping, fill=fill)


def test_a_melted_file_of_prmon_gives_what_prmon_gives(shared_data: Path, tmp_path: Path) -> None:
    file = shared_data / "prmon" / "memory_monitor_output.txt"
    own, long = memory_session(), memory_session()
    read(own, "prmon", file, fill=("job_id=77",))
    wide = pd.read_csv(file, sep=r"\s+").rename(columns=str.lower)
    named = {"pss", "rss", "rchar", "wchar", "rbytes"} & set(wide.columns)
    melted = wide.melt(["time"], sorted(named), "name").sample(frac=1, random_state=3)
    melted["job"] = 77
    (tmp_path / "map.toml").write_text(PRMON)
    report = long.ingest("series", melted, mapping=tmp_path / "map.toml")
    assert (report.rows_in, report.n_dropped) == (len(named), 0)
    expected = series(own)
    found = series(long)
    assert len(found) == len(named) == 5
    for key, samples in found.items():
        np.testing.assert_array_equal(samples, expected[key])


def test_times_in_any_clock_are_one(tmp_path: Path) -> None:
    clocks = {
        "s": (["1700000000", "1700000060.0"], None),
        "ms": (["1700000000000", "1700000060000"], 'time_unit = "ms"'),
        "ns": (["1700000000000000000", "1700000060000000000"], 'time_unit = "ns"'),
        "iso": (["2023-11-14T22:13:20Z", "2023-11-14 22:14:20"], None),
        "offset": (["2023-11-14T23:13:20+01:00", "2023-11-14T22:14:20.000000001Z"], None),
    }
    found = {}
    for name, (times, form) in clocks.items():
        session = memory_session()
        text = HEADER + "".join(f"4711,cpu_load,{time},{n + 1},,\n" for n, time in enumerate(times))
        load(session, tmp_path, text, form)
        (row,) = rows(session)
        found[name] = (row["start_time"].timestamp(), row["step_s"], row["scope"], row["n_samples"])
    assert set(found.values()) == {(BEGIN, 60.0, "job", 2)}


def test_counters_and_deltas_become_rates(session: Session, tmp_path: Path) -> None:
    form = """
    [metrics]
    ticks = {name = "cpu_load", factor = 0.01, kind = "counter"}
    bytes = {name = "read_b_s", kind = "delta"}
    """
    ticks = [0, 1000, 1500, 20, 1020]
    text = HEADER + "".join(
        f"4711,ticks,{BEGIN + 10 * n},{value},node,n1\n4711,bytes,{BEGIN + 10 * n},{50 * n},node,n1\n"
        for n, value in enumerate(ticks)
    )
    report = load(session, tmp_path, text, form)
    found = series(session)
    np.testing.assert_array_equal(
        found["cpu_load", "node", "n1"], np.array([np.nan, 1, 0.5, np.nan, 1], np.float32)
    )
    np.testing.assert_array_equal(
        found["read_b_s", "node", "n1"], np.array([np.nan, 5, 10, 15, 20], np.float32)
    )
    assert any("decreases of the counters of cpu_load, stored as gaps: 1" in note for note in report.notes)


def test_names_of_units_come_from_several_columns(session: Session, tmp_path: Path) -> None:
    form = """
    columns.unit = ["host", "minor"]
    [metrics]
    duty = {name = "gpu_load", factor = 0.01, scope = "accelerator"}
    """
    text = "job_id,metric,time,value,host,minor\n" + "".join(
        f"4711,duty,{BEGIN + 30 * n},{50 + minor},g7,{minor}\n" for n in range(3) for minor in (0, 1)
    )
    load(session, tmp_path, text, form)
    found = series(session)
    assert set(found) == {("gpu_load", "accelerator", "g7/0"), ("gpu_load", "accelerator", "g7/1")}
    np.testing.assert_allclose(found["gpu_load", "accelerator", "g7/1"], 0.51, rtol=1e-6)


def test_what_is_unusable_is_counted(session: Session, tmp_path: Path) -> None:
    text = HEADER + (
        f",cpu_load,{BEGIN},1,,\n"
        f"4711,cpu_ticks,{BEGIN},1,,\n4711,cpu_ticks,{BEGIN + 1},1,,\n"
        f"4711,cpu_load,{BEGIN},1,rack,r1\n"
        f"4711,cpu_load,tomorrow,1,,\n"
        f"4711,cpu_load,{BEGIN},NaN,,\n4711,cpu_load,{BEGIN + 10},2,,\n4711,cpu_load,{BEGIN + 10},3,,\n"
        f"4711,cpu_load,{BEGIN + 20},+Inf,,\n4711,cpu_load,{BEGIN + 30},4,,\n"
        f"4711,cpu_load,{BEGIN + 30}\n"
        f'4711,"cpu_load,{BEGIN + 40},1,,\n'
    )
    report = load(session, tmp_path, text)
    assert refused(session) == {"no job id": 1, "unknown metric": 1, "unknown scope": 1}
    (samples,) = series(session).values()
    np.testing.assert_array_equal(samples, np.array([np.nan, 3, np.nan, 4], np.float32))
    told = " ".join(report.notes)
    for what in (
        "without a time from 1970 to 2100, ignored: 1",
        "not numbers, stored as gaps: 2",
        "another one has, left out: 1",
        "another number of cells, ignored: 1",
        "an unclosed quote, ignored: 1",
    ):
        assert what in told


def test_a_month_of_thirteen_costs_its_samples_only(session: Session, tmp_path: Path) -> None:
    text = HEADER + (
        "4711,cpu_load,2023-11-14T22:13:20Z,1,,\n"
        "4711,cpu_load,2023-13-14T22:13:20Z,1,,\n"
        "4711,cpu_load,2023-11-14T22:14:20Z,2,,\n"
    )
    load(session, tmp_path, text)
    (samples,) = series(session).values()
    assert samples.tolist() == [1, 2]


def test_jobs_of_several_sources_and_ends(session: Session, tmp_path: Path) -> None:
    text = "source,job_id,metric,time,value\n" + "".join(
        f"{source},{job},{metric},{BEGIN + 60 * n},{n}\n"
        for n in range(3)
        for metric in ("cpu_load", "x_temperature")
        for job in (1, 2)
        for source in ("alpha", "")
    )
    report = load(session, tmp_path, text, fill=("source=beta", "end_time=2023-11-15T00:00:00Z"))
    assert report.rows_in == 8
    found = {(row["source"], row["job_id"], row["metric"]) for row in rows(session)}
    assert found == {
        (source, job, metric)
        for source in ("alpha", "beta")
        for job in ("1", "2")
        for metric in ("cpu_load", "x_temperature")
    }
    assert {row["end_time"].isoformat()[:19] for row in rows(session)} == {"2023-11-15T00:00:00"}


def test_compressed_and_parquet_files(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "job_id": [4711, 4711],
            "metric": ["cpu_load"] * 2,
            "time": pd.to_datetime(["2023-11-14T22:13:20Z", "2023-11-14T22:14:20Z"]),
            "value": [1.5, np.nan],
        }
    )
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    for name in ("a.parquet", "a.csv.gz"):
        session = memory_session()
        session.ingest("series", tmp_path / name)
        (row,) = rows(session)
        assert (row["start_time"].timestamp(), row["step_s"], row["n_gaps"]) == (BEGIN, 60, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"job_id,metric,time\n1,cpu_load,3\n",
        b"job_id,metric,time,value,value\n1,cpu_load,3,4,4\n",
        HEADER.encode(),
        HEADER.encode() + b"1,cpu_load,x,1,,\n",
        b"PAR1 and no more",
        b"\xff\xfe\x00",
        b"\x1f\x8b broken",
        HEADER.encode() + b"1,\xd7\n",
    ],
)
def test_a_damaged_file_loses_only_itself(session: Session, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bad.csv").write_bytes(data)
    (tmp_path / "good.csv").write_text(HEADER + f"1,cpu_load,{BEGIN},1,,\n")
    report = session.ingest("series", [tmp_path / "bad.csv", tmp_path / "good.csv"])
    assert refused(session) == {"damaged file": 1}
    assert report.n_dropped == 1
    assert len(rows(session)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "metrics = 3",
        "[metrics.load]\nname = 'cpu'",
        "[metrics.load]\nname = 'cpu_load'\nkind = 'sum'",
        "[metrics.load]\nname = 'cpu_load'\nscope = 'rack'",
        "[metrics.load]\nname = 'cpu_load'\nfactor = 0",
        "[metrics.load]\nname = 'cpu_load'\nfactor = nan",
        "[metrics.load]\nname = 'cpu_load'\nunits = 'cores'",
        "columns.host = 'node'",
        "columns.value = ['a', 'b']",
        "columns.unit = []",
        "time_unit = 'min'",
        "= 3",
    ],
)
def test_a_wrong_map_is_refused(session: Session, tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        load(session, tmp_path, HEADER, text)
    assert rows(session, "loads") == []


def test_other_formats_have_no_map(session: Session, tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text("")
    with pytest.raises(UsageError):
        session.ingest("prmon", tmp_path / "map.toml", mapping=tmp_path / "map.toml")


def test_another_map_is_another_load(session: Session, tmp_path: Path) -> None:
    text = HEADER + f"1,load,{BEGIN},1,,\n"
    form = '[metrics.load]\nname = "cpu_load"\nfactor = {}'
    one = load(session, tmp_path, text, form.format(1))
    other = load(session, tmp_path, text, form.format(2))
    again = load(session, tmp_path, text, form.format(2))
    del one, other, again
    assert len(rows(session, "loads")) == 2
    assert [samples.tolist() for samples in series(session).values()] == [[2.0]]


@settings(max_examples=8, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(random: object) -> None:
    lines = [
        {"job_id": f"j{job}", "metric": metric, "time": BEGIN + 10 * n, "value": job + n, "unit": f"n{unit}"}
        for job in range(2)
        for metric in ("cpu_load", "mem_used_b")
        for n in range(4)
        for unit in range(2)
    ]
    random.shuffle(lines)  # type: ignore[attr-defined]
    session = memory_session()
    session.ingest("series", pd.DataFrame(lines))
    found = [(row["job_id"], row["metric"], row["unit"], row["n_gaps"]) for row in rows(session)]
    assert len(found) == len(set(found)) == 8
    for (metric, _, _), samples in series(session, "j1").items():
        assert metric in {"cpu_load", "mem_used_b"}
        assert samples.tolist() == [1, 2, 3, 4]


CGROUPS = """
source = "alpha"
columns = {job_id = "jobid", metric = "__name__", unit = ["host", "minor_number"]}

[metrics]
cgroup_cpu_total_seconds = {name = "cpu_load", kind = "counter"}
nvidia_gpu_duty_cycle = {name = "gpu_load", factor = 0.01, scope = "accelerator"}
"""


def matrix(*series: tuple[dict[str, str], list[list[object]]]) -> str:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


CPU = {"__name__": "cgroup_cpu_total_seconds", "host": "n1", "jobid": "4711", "step": ""}
GPU = {"__name__": "nvidia_gpu_duty_cycle", "host": "n1", "jobid": "4711", "minor_number": "0"}


def test_raw_samples_of_prometheus_become_rates(session: Session, tmp_path: Path) -> None:
    text = matrix(
        (CPU, [[BEGIN + 0.5 + 30 * n, str(value)] for n, value in enumerate([0, 90, 180, 3, 93])]),
        (GPU, [[BEGIN, "50"], [BEGIN + 30, "NaN"], [BEGIN + 60, "+Inf"], [BEGIN + 90, "100"]]),
    )
    load(session, tmp_path, text, CGROUPS)
    found = series(session, "4711")
    np.testing.assert_array_equal(
        found["cpu_load", "node", "n1"], np.array([np.nan, 3, 3, np.nan, 3], np.float32)
    )
    np.testing.assert_array_equal(
        found["gpu_load", "accelerator", "n1/0"], np.array([0.5, np.nan, np.nan, 1], np.float32)
    )
    assert {row["source"] for row in rows(session)} == {"alpha"}


def test_labels_that_hold_a_sluid_become_the_number_of_the_job(session: Session, tmp_path: Path) -> None:
    samples = [[BEGIN + 30 * n, str(90 * n)] for n in range(4)]
    answer = tmp_path / "answer.json"
    busy = [[time, "50"] for time, _ in samples]
    answer.write_text(matrix((CPU | {"jobid": "s7GKQ2M41XRT00"}, samples), (GPU, busy)))
    mapping = tmp_path / "numbers.toml"
    mapping.write_text(CGROUPS.replace('job_id = "jobid", ', ""))
    session.ingest("series", answer, fill=("job_id=4711",), mapping=mapping)
    assert {row["job_id"] for row in rows(session)} == {"4711"}
    assert {metric for metric, *_ in series(session, "4711")} == {"cpu_load", "gpu_load"}


def test_shipped_maps_read_dcgm_and_the_exporters_of_jobstats(session: Session, tmp_path: Path) -> None:
    blank = "9223372036854775794"
    slot = {"Hostname": "g1", "gpu": "0", "GPU_I_ID": "7", "hpc_job": "4711"}
    dcgm = {"DCGM_FI_DEV_GPU_UTIL": "85", "DCGM_FI_DEV_FB_USED": "1024", "DCGM_FI_PROF_SM_ACTIVE": blank}
    path = tmp_path / "dcgm.json"
    listed = []
    for name, value in dcgm.items():
        later = "0.5" if value == blank else value
        listed.append(({"__name__": name, **slot}, [[BEGIN, value], [BEGIN + 30, later]]))
    path.write_text(matrix(*listed))
    session.ingest("series", path, mapping="dcgm")
    found = series(session)
    np.testing.assert_allclose(found["gpu_load", "accelerator", "g1/0/7"], 0.85, rtol=1e-6)
    assert found["gpu_mem_used_b", "accelerator", "g1/0/7"].max() == 2**30
    assert np.isnan(found["gpu_sm_active", "accelerator", "g1/0/7"][0])
    for name in SHIPPED:
        assert read_map(Path(name)).metrics


def test_shares_in_per_cent_are_refused_with_the_remedy(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    lines = [f"1,{metric},{BEGIN + 30 * n},{20 + n}" for metric in ("gpu_load", "ipc") for n in range(9)]
    path.write_text("\n".join(["job_id,metric,time,value", *lines]) + "\n")
    session.ingest("series", path)
    # instructions per cycle are no share
    assert {metric for metric, *_ in series(session, "1")} == {"ipc"}
    (reject,) = session.tables.rejects().rows.to_pylist()
    assert (reject["field"], "--map" in reject["detail"]) == ("gpu_load", True)


def test_lines_of_an_export_are_the_same(tmp_path: Path) -> None:
    values = [0, 90, 180]
    times = [BEGIN + 30 * n for n in range(3)]
    one, other = memory_session(), memory_session()
    load(one, tmp_path, matrix((CPU, [[t, str(v)] for t, v in zip(times, values, strict=True)])), CGROUPS)
    line = {"metric": CPU, "values": values, "timestamps": [1000 * moment for moment in times]}
    load(other, tmp_path, json.dumps(line) + "\n", CGROUPS)
    for key, samples in series(one).items():
        np.testing.assert_array_equal(samples, series(other)[key])


@pytest.mark.parametrize(
    "text",
    [
        '{"status": "error", "errorType": "bad_data", "error": "exceeded maximum resolution"}',
        matrix(),
        matrix((CPU, [[BEGIN, "one"]])),
        matrix((CPU, [[1e300, "1"]])),
        '{"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}',
        '{"data": [',
        "{" * 100_000,
    ],
)
def test_answers_without_samples_are_damaged_files(session: Session, tmp_path: Path, text: str) -> None:
    load(session, tmp_path, text, CGROUPS)
    assert refused(session) == {"damaged file": 1}
