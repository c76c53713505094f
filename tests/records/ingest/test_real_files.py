"""The four real PanDA tasks: every row is accepted, and a plain second reader finds the same values."""

import csv
import gzip
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from esjobs.core.errors import InputError
from esjobs.records.ingest.base import parse_fill
from esjobs.records.ingest.formats.sources import source
from tests.messages import raised

FILL = ["processing_type=simul", "end_time=2018-08-15T12:00:00Z"]
ROWS = {"13332803": 668, "13743294": 994, "14773217": 464, "15350577": 10_886}

WHOLE = {"cores": "actualcorecount", "events": "nevents", "failed_attempts": "failedattempt"}
PLAIN = {
    "cpu_s": "cpuconsumptiontime",
    "wall_s": "wall_time",
    "hs06_s": "hs06sec",
    "queue_s": "queue_time",
    "stagein_s": "timeStageIn",
    "exe_s": "timeExe",
    "stageout_s": "timeStageOut",
    "input_b": "inputfilebytes",
    "output_b": "outputfilebytes",
}
KILOBYTES = {
    "max_rss_b": "maxrss",
    "avg_rss_b": "avgrss",
    "max_pss_b": "maxpss",
    "avg_pss_b": "avgpss",
    "max_vmem_b": "maxvmem",
    "read_b": "IObytesRead",
    "written_b": "IObytesWritten",
}
ABSENT = (
    *("cpu_raw", "transformation", "user", "project", "submit_time", "start_time"),
    *("nodes", "gpus", "smt", "requested_wall_s", "requested_cores", "requested_gpus"),
    *("application", "cluster", "subcluster", "exit_code", "counters", "executable"),
    *("error", "node", "job_name", "energy_j", "release", "system_s"),
)


def second_reader(path: Path) -> list[dict[str, object]]:
    """The rows of a file by the csv module, one cell at a time."""
    task = path.name.removesuffix(".csv.gz").rsplit("_", 1)[-1]
    rows = []
    with gzip.open(path, "rt", newline="") as lines:
        for line, cells in enumerate(csv.DictReader(lines), 2):
            row: dict[str, object] = dict.fromkeys(ABSENT)
            row |= {
                "source": "panda",
                "job_id": cells["pandaid"],
                "task_id": task,
                "queue": cells["computingsite"],
            }
            row |= {"processing_type": "simul", "end_time": datetime(2018, 8, 15, 12, tzinfo=UTC)}
            row |= {"state": cells.get("jobstatus") or None, "origin_file": path.name, "origin_line": line}
            row |= {name: int(float(cells[key])) if cells[key] else None for name, key in WHOLE.items()}
            row |= {name: float(cells[key]) if cells[key] else None for name, key in PLAIN.items()}
            row |= {name: float(cells[key]) * 1024 if cells[key] else None for name, key in KILOBYTES.items()}
            row["requested_memory_b"] = float(cells["minramcount"]) * 2**20 or None
            rows.append(row)
    return rows


def test_every_row_is_accepted(panda_files: list[Path]) -> None:
    fill = parse_fill(FILL)
    counted = {}
    for path in panda_files:
        pieces = list(source("panda").parse(path, fill))
        assert [reject for piece in pieces for reject in piece.rejects] == []
        (task,) = {name for piece in pieces for name in piece.batch.column("task_id").to_pylist()}
        counted[task] = sum(piece.rows_in for piece in pieces)
    assert counted == ROWS
    assert sum(counted.values()) == 13_012


def test_a_second_reader_finds_the_same(panda_files: list[Path]) -> None:
    fill = parse_fill(FILL)
    for path in panda_files:
        found = pa.Table.from_batches(
            [piece.batch for piece in source("panda").parse(path, fill)]
        ).to_pylist()
        assert found == second_reader(path)


def test_without_an_end_time_the_file_is_refused_and_says_how_to_fill_it(panda_files: list[Path]) -> None:
    with raised(InputError):
        next(source("panda").parse(panda_files[0], {}))


def test_known_peculiarities_of_the_largest_task(panda_files: list[Path]) -> None:
    table = pa.Table.from_batches(
        [piece.batch for piece in source("panda").parse(panda_files[-1], parse_fill(FILL))]
    )
    states = table.column("state").value_counts().to_pylist()
    assert {state["values"]: state["counts"] for state in states}["failed"] == 317
    assert table.column("cores").null_count == 5
    assert table.column("max_rss_b").null_count == 78
    assert table.column("read_b").null_count == 90
    assert table.column("cpu_s").to_pylist().count(0.0) == 77


def test_totals_in_kilobytes_agree_with_rates_in_bytes(panda_files: list[Path]) -> None:
    """Total x 1024 / rate is a whole number of seconds, not longer than the payload ran."""
    agreeing = rows = 0
    for path in panda_files:
        with gzip.open(path, "rt", newline="") as lines:
            for cells in csv.DictReader(lines):
                if not cells["IObytesRead"] or float(cells["IObytesReadRate"]) < 1e6:
                    continue
                seconds = float(cells["IObytesRead"]) * 1024 / float(cells["IObytesReadRate"])
                rows += 1
                agreeing += abs(seconds - round(seconds)) < 0.01 and seconds <= float(cells["timeExe"])
    assert rows > 10_000
    assert agreeing / rows > 0.95
