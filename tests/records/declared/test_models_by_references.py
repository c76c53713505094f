"""Published scores as declared values of CPU models: SMT state, ranges, benchmarks, a whole run."""

import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import esjobs
from esjobs.core.window import Window
from esjobs.records.declared.values import declared_values
from tests.records.references.test_references import HS06, written

WINDOW = Window.parse("2025-06-01/2025-06-11")
HEAD = "CPU,SMT enabled,Threads/core,Ncores,Power Policy,# Meas,Score,Spread,Site,first_date,last_date\n"


def score(model: str, smt: int | str, cores: int, value: float, site: str = "X") -> str:
    return f"{model},{smt},{'' if smt == '' else 1 + int(smt)},{cores},,1,{value},,{site},,\n"


def jobs(*cpus: tuple[str, float]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "job_id": [f"j{number}" for number in range(len(cpus))],
            "task_id": "t",
            "queue": "Q",
            "cpu_raw": [raw for raw, _ in cpus],
            "processing_type": "simul",
            "state": "finished",
            "end_time": datetime(2025, 6, 2, tzinfo=UTC),
            "cores": 1,
            "events": 100,
            "cpu_s": 3000.0,
            "wall_s": [wall for _, wall in cpus],
        }
    )


PILOT = "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz 35840 KB 28-Core Processor{} 2-Socket(s)"
NAME = "Intel Xeon E5-2680 v4"
BOTH = (
    HEAD
    + score("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", 1, 56, 560)
    + score("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", 1, 56, 672, "Y")
    + score("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", 0, 28, 504)
)


@pytest.mark.parametrize(
    ("cpus", "value", "error"),
    [
        # 10 and 12 with SMT on: their geometric mean, and the error of a value anywhere between
        ([(PILOT.format(" HT"), 1000.0)], math.sqrt(120), math.log(1.2) / math.sqrt(12)),
        ([(PILOT.format(""), 1000.0)], 18.0, 0.0),
        # a tenth of the time states it, and the rest is taken to be alike
        ([(PILOT.format(""), 150.0), ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", 1000.0)], 18.0, 0.0),
        # less, both states, none: the table's whole range is too wide
        ([(PILOT.format(""), 50.0), ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", 1000.0)], None, 0.0),
        ([(PILOT.format(""), 500.0), (PILOT.format(" HT"), 500.0)], None, 0.0),
        ([("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", 1000.0)], None, 0.0),
    ],
)
def test_the_records_choose_the_state(
    tmp_path: Path, cpus: list[tuple[str, float]], value: float | None, error: float
) -> None:
    with esjobs.open("duckdb::memory:") as session:
        session.ingest("jobs", jobs(*cpus))
        session.declared.import_references(written(tmp_path, BOTH), form="hepix-hs23")
        (found,) = declared_values(session.store, WINDOW, "cpu_model", [NAME]).values()
    assert found.corepower == (None if value is None else pytest.approx(value))
    assert found.error == pytest.approx(error)
    assert (found.origin, found.benchmark) == (("none", None) if value is None else ("reference", "HS23"))
    assert bool(found.note) == (value is None)


@pytest.mark.parametrize(("smt", "value"), [(True, math.sqrt(120)), (False, 18.0), (None, 18.0)])
def test_the_field_of_a_record_counts_before_its_cpu_string(
    tmp_path: Path, smt: bool | None, value: float
) -> None:
    with esjobs.open("duckdb::memory:") as session:
        session.ingest("jobs", jobs((PILOT.format(""), 1000.0)).assign(smt=smt))
        session.declared.import_references(written(tmp_path, BOTH), form="hepix-hs23")
        (found,) = declared_values(session.store, WINDOW, "cpu_model", [NAME]).values()
    assert found.corepower == pytest.approx(value)


def test_an_imported_value_is_before_any_table(tmp_path: Path) -> None:
    with esjobs.open("duckdb::memory:") as session:
        session.ingest("jobs", jobs((PILOT.format(" HT"), 1000.0)))
        session.declared.import_references(written(tmp_path, BOTH), form="hepix-hs23")
        table = written(tmp_path, f"cpu_model,corepower\n{NAME},11\n", "own.csv")
        session.declared.import_values(table, level="cpu_model", benchmark="HS06", valid_from="2025-01-01")
        (found,) = declared_values(session.store, WINDOW, "cpu_model", [NAME]).values()
    assert (found.corepower, found.benchmark, found.origin, found.error) == (11, "HS06", "own", 0.0)


def test_benchmarks_are_those_of_most_models(tmp_path: Path) -> None:
    """Three models have HS06, two HS23: the one with both has HS06."""
    short = "Intel(R) Xeon(R) CPU {} @ 2.40GHz 20480 KB 8-Core Processor{} 2-Socket(s)"
    cpus = [(short.format("E5-2630 v3", " HT"), 10.0), (short.format("E5520", ""), 10.0)]
    cpus += [(short.format("E5540", ""), 10.0), (PILOT.format(" HT"), 10.0)]
    hs23 = BOTH + score("Intel Xeon E5-2630 v3", 1, 32, 352)
    hs06 = HS06.replace("8 TB off", "8 HT off").replace("|  all  |", "|  8 HT off  |")
    hs06 += "|  Intel Xeon E5540  |  99 |  2530 |  8 HT off  |  16  | DELL R410  | X |\n"
    names = ["Intel Xeon E5-2630 v3", "Intel Xeon E5520", "Intel Xeon E5540", NAME, "Nobody's"]
    with esjobs.open("duckdb::memory:") as session:
        session.ingest("jobs", jobs(*cpus))
        session.declared.import_references(written(tmp_path, hs23), form="hepix-hs23")
        session.declared.import_references(written(tmp_path, hs06, "hs06.md"), form="hepix-hs06")
        found = declared_values(session.store, WINDOW, "cpu_model", names)
    assert {name: each.benchmark for name, each in found.items()} == {
        "Intel Xeon E5-2630 v3": "HS06",
        "Intel Xeon E5520": "HS06",
        "Intel Xeon E5540": "HS06",
        NAME: "HS23",
        "Nobody's": None,
    }
    assert found["Intel Xeon E5-2630 v3"].corepower == pytest.approx(352 / 32)


def grid(scale: dict[str, float]) -> pd.DataFrame:
    """Jobs of 14 CPU models with SMT on, as fast as 10 HS23 and more, times ``scale``, on six queues."""
    rng = np.random.default_rng(7)
    rows = []
    for model in range(14):
        name = f"Intel(R) Xeon(R) CPU E5-26{model + 10} v3 @ 2.30GHz"
        speed = (10 + model / 2) * scale.get(name, 1.0)
        for queue in range(6):
            for task in range(4):
                for job in range(15):
                    cpu_s = 30_000 * (1 + task) / speed * rng.normal(1, 0.03)
                    rows.append(
                        (f"{model}-{queue}-{task}-{job}", f"t{task}", f"Q{queue}", f"{name} HT", cpu_s)
                    )
    frame = pd.DataFrame(rows, columns=["job_id", "task_id", "queue", "cpu_raw", "cpu_s"])
    return frame.assign(
        processing_type="simul",
        state="finished",
        end_time=datetime(2025, 6, 2, tzinfo=UTC),
        cores=1,
        events=1000,
        wall_s=frame["cpu_s"] * 1.1,
    )


@pytest.mark.slow
def test_a_model_off_its_published_score_deviates_and_a_wide_score_is_less_sure(tmp_path: Path) -> None:
    """Of two models 40 % off one has a single score: confirmed, and nothing is proposed. The other's scores
    range over a factor of 1.45, an error of 11 %.
    """
    single, wide = (f"Intel(R) Xeon(R) CPU E5-26{number} v3 @ 2.30GHz" for number in (12, 15))
    text = HEAD
    for model in range(14):
        name, value = f"Intel(R) Xeon(R) CPU E5-26{model + 10} v3 @ 2.30GHz", 10 + model / 2
        around = (1.0,) if name != wide else (1.45**-0.5, 1.45**0.5)
        text += "".join(score(name, 1, 40, value * 40 * factor) for factor in around)
    with esjobs.open("duckdb::memory:") as session:
        session.ingest("jobs", grid({single: 0.6, wide: 0.6}))
        session.declared.import_references(written(tmp_path, text), form="hepix-hs23")
        session.run(window="2025-06-01/2025-06-11")
        flags = (
            session.tables.flags(level="cpu_model", type="all", method="gamma").to_pandas().set_index("name")
        )
    flagged = flags.loc["Intel Xeon E5-2612 v3"]
    assert (flagged["verdict"], flagged["origin"], flagged["benchmark"]) == ("deviates", "reference", "HS23")
    assert flagged["confirmed"]
    assert flagged["deviation"] == pytest.approx(-0.4, abs=0.02)
    assert pd.isna(flagged["proposed_corepower"])
    unsure = flags.loc["Intel Xeon E5-2615 v3"]
    assert unsure["deviation"] == pytest.approx(-0.4, abs=0.02)
    assert unsure["deviation_err"] == pytest.approx(0.6 * math.log(1.45) / math.sqrt(12), rel=0.2)
    assert (flags.drop(["Intel Xeon E5-2612 v3", "Intel Xeon E5-2615 v3"])["verdict"] == "ok").all()
