"""Monitoring of others by maps: InfluxDB's lines, tables of pmrep (PCP) and LDMS with a column a metric."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from esjobs.api.session import Session
from esjobs.records.ingest.formats.line_protocol import is_line_protocol, samples
from tests.records.ingest.monitored import rows, series

INFLUX = """
columns = {job_id = "jobid", metric = "__name__", unit = ["hostname", "type-id"]}
[metrics]
cpu_user = {name = "cpu_user", factor = 0.01, scope = "core"}
mem_used = {name = "mem_used_b", scope = "node"}
"""
LINES = (
    "# a comment\n"
    "cpu_user,cluster=fritz,hostname=f\\ 1,type-id=0,jobid=4711 value=50 1700000000000000000\n"
    "cpu_user,hostname=f\\ 1,type-id=0,jobid=4711 value=75 1700000060000000000\n"
    'mem,hostname=f\\ 1,jobid=4711 used=1000i,name="a, b=c",up=true 1700000000000000000\n'
    "mem,hostname=f\\ 1,jobid=4711 used=2e3 1700000060000000000\n"
)
# printed by pmrep -z -o csv -t 30 -f %s of PCP 6.0.3, of an archive with a core at 25 % and one at 100 %
PMREP = (
    'Time,"kernel.percpu.cpu.user-cpu0","kernel.percpu.cpu.user-cpu3","mem.util.used","mem.util.free"\n'
    "1772323200,,,1000000,5\n1772323230,250.000,1000.000,1000001,5\n1772323260,250.000,1000.000,1000002,5\n"
)
PCP = """
wide = "-"
columns = {time = "Time"}
[metrics]
"kernel.percpu.cpu.user" = {name = "cpu_user", factor = 0.001, scope = "core"}
"mem.util.used" = {name = "mem_used_b", factor = 1024, scope = "node"}
"""
LDMS = (
    "#Time,Time_usec,ProducerName,component_id,job_id,app_id,Active,MemFree\n"
    "1700000000.002,2,n1,1,88,0,100,7\n1700000010.002,2,n1,1,88,0,200,7\n"
    "1700000000.001,1,n2,2,88,0,300,7\n1700000010.001,1,n2,2,88,0,300,7\n"
)
OF_LDMS = """
wide = ""
columns = {time = "#Time", job_id = "job_id", unit = "ProducerName"}
metrics.Active = {name = "mem_used_b", factor = 1024, scope = "node"}
"""


def load(session: Session, folder: Path, text: str, form: str, *fill: str) -> Any:
    (folder / "map.toml").write_text(form)
    (folder / "samples.txt").write_text(text)
    session.ingest("series", folder / "samples.txt", mapping=folder / "map.toml", fill=fill)
    return {key: values.tolist() for key, values in series(session).items()}


def test_lines_of_influxdb(session: Session, tmp_path: Path) -> None:
    found = load(session, tmp_path, LINES, INFLUX)
    assert found == {
        ("cpu_user", "core", "f 1/0"): [0.5, 0.75],
        ("mem_used_b", "node", "f 1"): [1000.0, 2000.0],
    }
    assert {row["job_id"] for row in rows(session)} == {"4711"}


def test_lines_in_seconds(session: Session, tmp_path: Path) -> None:
    lines = LINES.replace("0" * 9 + "\n", "\n")
    found = load(session, tmp_path, lines, f'time_unit = "s"\n{INFLUX}')
    assert found["mem_used_b", "node", "f 1"] == [1000.0, 2000.0]


def test_what_is_no_line_is_counted(session: Session, tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(INFLUX)
    (tmp_path / "lines.txt").write_text(f"{LINES}mem used\nmem,hostname=x,jobid=4711 used=1i\n\n")
    report = session.ingest("series", tmp_path / "lines.txt", mapping=tmp_path / "map.toml")
    assert any("ignored: 1" in note for note in report.notes if "line protocol" in note)
    assert any("ignored: 1" in note for note in report.notes if "without a time" in note)
    (tmp_path / "lines.txt").write_text("mem,time=x used=1i 5\n")
    report = session.ingest("series", tmp_path / "lines.txt", mapping=tmp_path / "map.toml")
    assert report.n_dropped == 1


KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, blacklist_characters='\\"'), min_size=1)


@settings(max_examples=50)
@given(KEYS, st.dictionaries(KEYS, KEYS, max_size=3), st.floats(-1e15, 1e15), st.integers(0, 4 * 10**18))
def test_any_names_come_back(metric: str, tags: dict[str, str], number: float, moment: int) -> None:
    def escaped(text: str) -> str:
        return "".join(f"\\{each}" if each in ",= " else each for each in text)

    head = ",".join([escaped(metric), *(f"{escaped(key)}={escaped(tags[key])}" for key in tags)])
    line = f"{head} value={number!r} {moment}"
    # blanks of other alphabets end a name, as they end a line
    assume(len(line.split()) == 3 and not metric.startswith("#") and not {"t", "v", "__name__"} & tags.keys())
    assert is_line_protocol(line.encode())
    table, unreadable = samples(line, "x", "t", "v")
    (row,) = table.to_pylist()
    assert (unreadable, row["v"], row["__name__"]) == (0, number, metric)
    assert {key: row[key] for key in tags} == tags


def test_csv_is_not_taken_for_lines() -> None:
    assert not is_line_protocol(b"job_id,metric,time,value\n1,a,2,3\n")
    assert not is_line_protocol(PMREP.encode())
    assert not is_line_protocol(LDMS.encode())
    assert not is_line_protocol(b"")


def test_a_table_of_pmrep(session: Session, tmp_path: Path) -> None:
    found = load(session, tmp_path, PMREP, PCP, "job_id=4711", "unit=n1")
    assert {key: values for key, values in found.items() if key[0] == "mem_used_b"} == {
        ("mem_used_b", "node", "n1"): [float(np.float32(1024.0 * (1000000 + number))) for number in range(3)]
    }
    assert found["cpu_user", "core", "n1/cpu3"][1:] == [1.0, 1.0]
    assert found["cpu_user", "core", "n1/cpu0"][1:] == [0.25, 0.25]


def test_tables_of_ldms(session: Session, tmp_path: Path) -> None:
    assert load(session, tmp_path, LDMS, OF_LDMS) == {
        ("mem_used_b", "node", "n1"): [102400.0, 204800.0],
        ("mem_used_b", "node", "n2"): [307200.0, 307200.0],
    }


@pytest.mark.parametrize("form", [PCP.replace("kernel", "x").replace("mem.util", "y"), 'wide = "-"'])
def test_a_table_without_metrics_of_the_map_is_refused(session: Session, tmp_path: Path, form: str) -> None:
    assert load(session, tmp_path, PMREP, form, "job_id=1") == {}
    assert len(rows(session, "rejects")) == 1
