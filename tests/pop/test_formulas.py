"""The efficiencies of every real report, against what TALP printed and against a second implementation."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from esjobs.pop.formulas import active_time, efficiencies, judged
from esjobs.records.ingest.formats.talp import Talp
from esjobs.schema.pop import EFFICIENCIES, METRICS
from tests.pop.reports import minimal, real_reports, written
from tests.pop.second_opinion import tree

EDITED = ("test_double.json",)
"""Its authors wrote 1 for every efficiency."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    (parsed,) = Talp().parse(path, {"job_id": "1"})
    return [row for row in parsed.batch.to_pylist() if row["level"] == "application"]


def printed(path: Path) -> dict[str, dict[str, Any]]:
    """The regions of the application with all that is printed of them, by name."""
    try:
        document = json.loads(path.read_text())
    except ValueError:
        return {}
    if "Application" in document:
        return dict(document["Application"])
    regions: dict[str, dict[str, Any]] = {}
    for each in (*document.get("popMetrics", ()), *document.get("popRaw", ())):
        regions.setdefault(each["name"], {}).update(each)
    return regions


def in_words_of_dlb(name: str) -> tuple[str, ...]:
    first, *rest = name.split("_")
    of_old = {
        "mpi_communication_efficiency": "communicationEfficiency",
        "mpi_load_balance": "loadBalance",
        "mpi_load_balance_in": "lbIn",
        "mpi_load_balance_out": "lbOut",
    }
    return (first + "".join(part.title() for part in rest), of_old.get(name, ""))


def test_every_printed_value_of_every_version_is_made_again_from_the_times(shared_data: Path) -> None:
    compared: Counter[str] = Counter()
    regions = 0
    for path in real_reports(shared_data):
        if path.name in EDITED:
            continue
        rows = [row for row in rows_of(path) if row["model"] != "printed"]
        if path.parent.name in ("3.5.3", "3.6.2", "3.7.0", "3.7.0+63-main"):
            regions += len(rows)
        for row in rows:
            made = efficiencies(row)
            for name in EFFICIENCIES:
                if row[name] is None:
                    continue
                # TALP prints 0 where nothing was measured
                assert (made[name] or 0.0) == pytest.approx(row[name], abs=0.00501), (
                    path,
                    row["region"],
                    name,
                )
                compared[row["model"]] += 1
    assert regions == 56
    # of 3.3 and 3.4 few print the times beside the efficiencies
    assert compared["summed"] == 72
    assert compared["normalised"] > 1000
    assert compared["minimum"] > 600


def test_a_second_implementation_makes_the_same_numbers(shared_data: Path) -> None:
    compared = 0
    for path in real_reports(shared_data):
        regions = {} if path.name in EDITED else printed(path)
        for row in rows_of(path) if regions else ():
            given = regions[row["region"]]
            if row["model"] == "printed":
                continue
            made, other = efficiencies(row), tree(given)
            for name in EFFICIENCIES:
                for key in in_words_of_dlb(name):
                    if key in other:
                        # times are ns in the report and s in the row: a last digit may differ
                        assert (made[name] is None) == (other[key] is None), (path, name)
                        assert made[name] in (None, pytest.approx(other[key] or 0.0, rel=1e-9)), (path, name)
                        compared += 1
    assert compared > 2000


def test_the_parallel_efficiency_is_the_useful_part_of_the_active_time(shared_data: Path) -> None:
    compared = 0
    for path in real_reports(shared_data):
        for row in rows_of(path):
            parallel, active = efficiencies(row)["parallel_efficiency"], active_time(row)
            if row["model"] != "printed" and active is not None:
                assert parallel == pytest.approx(row["useful_s"] / active, rel=1e-12)
                compared += 1
    assert compared > 150


def test_load_balance_is_the_product_of_its_parts(shared_data: Path) -> None:
    for path in real_reports(shared_data):
        for row in rows_of(path):
            made = efficiencies(row)
            balance, inside, outside = (made[f"mpi_load_balance{end}"] for end in ("", "_in", "_out"))
            if row["model"] != "printed" and None not in (balance, inside, outside):
                assert inside is not None
                assert outside is not None
                assert balance == pytest.approx(inside * outside, rel=1e-9)


def test_the_branches_of_a_hybrid_program_are_no_factors(shared_data: Path) -> None:
    (row,) = rows_of(shared_data / "talp/3.7.0/hybrid-np4x2-2nodes-pop+process.json")
    made = efficiencies(row)
    mpi, openmp = made["mpi_parallel_efficiency"], made["omp_parallel_efficiency"]
    assert mpi is not None
    assert openmp is not None
    assert made["parallel_efficiency"] != pytest.approx(mpi * openmp, abs=0.01)


def test_what_is_not_there_has_a_status_and_no_value(tmp_path: Path) -> None:
    (row,) = rows_of(written(tmp_path, minimal()))
    told = judged(row)
    assert told["parallel_efficiency"] == pytest.approx(0.75)
    assert (told["omp_load_balance"], told["omp_load_balance_status"]) == (None, "no_openmp")
    assert (told["gpu_load_balance"], told["gpu_load_balance_status"]) == (None, "no_gpu")
    assert (told["ipc"], told["ipc_status"]) == (None, "no_counters")
    assert told["mpi_transfer_efficiency_status"] == "not_measurable"
    assert {told[f"{name}_status"] for name in METRICS if told[name] is not None} == {"computed"}


def test_times_that_contradict_each_other_are_not_believed(tmp_path: Path) -> None:
    (row,) = rows_of(written(tmp_path, minimal(minMpiNormdNode=0, minMpiNormdProc=9 * 10**8)))
    told = judged(row)
    assert (told["mpi_load_balance_in"], told["mpi_load_balance_in_status"]) == (None, "inconsistent")


def test_counters_give_ipc_and_frequency(tmp_path: Path) -> None:
    (row,) = rows_of(written(tmp_path, minimal(cycles=6 * 10**9, instructions=12 * 10**9)))
    told = judged(row)
    assert told["ipc"] == pytest.approx(2.0)
    assert told["frequency_ghz"] == pytest.approx(2.0)
