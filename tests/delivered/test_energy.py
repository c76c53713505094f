"""Energy and carbon: imports of real shapes, and sums by hand-written SQL."""

import csv
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoResultError, UsageError
from esjobs.delivered.energy import ASSUMED_ERROR, ASSUMED_W, Factors, model_watts
from esjobs.delivered.scores import Measured
from tests.delivered.test_pledges import written
from tests.messages import compare_text, raised

OWID = """Entity,Code,Year,Carbon intensity of electricity - gCO2/kWh
France,FRA,2023,53.1
France,FRA,2024,44.3
Germany,DEU,2023,371
Europe,,2024,280
World,OWID_WRL,2024,473
Poland,POL,2024,lots
"""
MAPS = (
    "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct),"
    "Carbon intensity gCO₂eq/kWh (Life cycle),Carbon-free energy percentage (CFE%),Data source\n"
)
EPYC, XEON = "AMD EPYC 7302 16-Core Processor", "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz"
SCORES = f"""CPU,SMT enabled,Threads/core,Ncores,# Meas,Score,Site,electric_power_mean
{EPYC},0,1,32,1,768,CERN,160
{EPYC},1,2,64,1,960,CERN,256
{EPYC},1,2,64,1,960,PIC,320
{EPYC},1,2,64,1,960,,6400
{XEON},1,2,56,1,700,,392
{XEON},1,2,56,1,700,,0
"""


def test_owid(session: Session, tmp_path: Path) -> None:
    report = session.ingest("emissions", written(tmp_path, OWID, "owid.csv"))
    assert (report.rows_in, report.rows_out) == (6, 3)
    assert report.dropped == {"not a country": 2, "not a number": 1}
    found = {(row["country_code"], row["year"]): row for row in session.tables.read("emission_factors")}
    assert found["FR", 2024]["g_per_kwh"] == 44.3
    assert (found["DE", 2023]["kind"], found["DE", 2023]["month"]) == ("life_cycle", None)


def test_hours_of_electricity_maps_become_months(session: Session, tmp_path: Path) -> None:
    hours = [f"2025-0{1 + n // 3}-01 0{n % 3}:00:00,France,France,FR,{n},{2 * n},90,x" for n in range(6)]
    text = MAPS + "\n".join([*hours, "2025-01-02 00:00:00,Italy,North,IT-NO,7,,9,x", "soon,F,F,FR,1,2,3,x"])
    report = session.ingest("emissions", written(tmp_path, text, "maps.csv"))
    assert (report.rows_in, report.rows_out) == (16, 5)
    assert report.dropped == {"averaged into its month": 8, "missing value": 1, "bad time": 2}
    found = {
        (row["zone"], row["month"], row["kind"]): (row["g_per_kwh"], row["country_code"])
        for row in session.tables.read("emission_factors")
    }
    assert found["FR", 1, "direct"] == (1.0, "FR")
    assert found["FR", 2, "life_cycle"] == (8.0, "FR")
    assert found["IT-NO", 1, "direct"] == (7.0, None)


def test_years_of_electricity_maps_stay_years(session: Session, tmp_path: Path) -> None:
    text = MAPS + "\n".join(f"{year}-01-01 00:00:00,F,F,FR,1,2,3,x" for year in (2023, 2024))
    session.ingest("emissions", written(tmp_path, text, "maps.csv"))
    assert [row["month"] for row in session.tables.read("emission_factors")] == [None] * 4


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        "Datetime (UTC),Zone id\n2025-01-01,FR\n",
        "country_code,year,g_per_kwh,kind\nFR,2025,6000,direct\nXX,2025,1,direct\nFR,2025,1,net\n",
        "country_code,year,month,g_per_kwh,kind\nFR,2025,13,60,direct\n,2025,1,1,direct\n",
    ],
)
def test_broken_factors(session: Session, tmp_path: Path, text: str) -> None:
    try:
        report = session.ingest("emissions", written(tmp_path, text, "bad.csv"))
    except InputError as error:
        compare_text(str(error))
        return
    assert report.rows_out == 0
    assert sum(report.dropped.values()) == report.rows_in > 0


def test_broken_watts(session: Session, tmp_path: Path) -> None:
    text = "site,cpu_model,smt,watts_per_core,pue\nA,,,,\nA,UNKNOWN,,3,\nA,,perhaps,3,\nA,,,,0.9\nA,,,0,\n"
    report = session.ingest("power", written(tmp_path, text, "power.csv"))
    assert report.dropped == {"missing value": 1, "no CPU model": 1, "bad text": 1, "out of range": 2}
    with raised(InputError):
        session.ingest("power", written(tmp_path, "site,watts\nA,3\n", "power.csv"))
    with raised(NoResultError):
        session.undo("nothing")


def test_month_year_newest_earlier_year_or_none() -> None:
    factors = Factors({("FR", 2024, 3): 30.0, ("FR", 2024, None): 44.0, ("FR", 2022, None): 85.0})
    assert factors.of("France", 2024, 3) == (30.0, False)
    assert factors.of("FRA", 2024, 4) == (44.0, False)
    assert factors.of("fr", 2026, 1) == (44.0, True)
    assert factors.of("FR", 2023, 1) == (85.0, True)
    assert factors.of("FR", 2021, 1) is None
    assert factors.of("Atlantis", 2024, 1) is None
    assert factors.of(None, 2024, 1) is None


def test_watts_of_published_tables(session: Session, shared_data: Path) -> None:
    """68 of 285 rows of HEPiX have power; watts per logical core 2.9, 4.9, 7.3 (deciles 1, 5, 9)."""
    file = shared_data / "hepix-scores" / "HS23scores.csv"
    session.declared.import_references(file, form="hepix-hs23")
    found = [row for row in session.tables.read("references") if row["watts_per_core"]]
    assert len(found) == 68
    watts = np.percentile([row["watts_per_core"] for row in found], [10, 50, 90])
    assert watts == pytest.approx([2.9, 4.9, 7.3], abs=0.06)
    assert len({model for model, _ in model_watts(found)}) == 40


# -- sums ------------------------------------------------------------------------------------------------

HEADER = "source,job_id,queue,state,cpu_raw,smt,start_time,end_time,wall_s,cores,cpu_s,events"
JOBS: tuple[tuple[Any, ...], ...] = (
    ("QF", "finished", EPYC, "true", "2026-01-15", 3600.5, 8, 1000),
    ("QF", "failed", EPYC, "true", "2026-01-16", 7200.0, 8, ""),
    ("QF", "finished", EPYC, "", "2026-02-10", 1800.0, 4, 500),
    ("QF", "finished", XEON, "true", "2026-02-20", 9000.0, 1, 70),
    ("QD", "finished", "mystery", "", "2026-01-20", 4000.0, 2, 90),
    ("QD", "finished", EPYC, "false", "2026-02-02", 5000.0, 16, 400),
    ("QN", "finished", XEON, "true", "2026-01-02", 100.0, 1, 5),
    ("QN", "finished", XEON, "true", "2026-01-02", 100.0, "", 5),
)
QUEUES = (("QF", "Site-F", "France"), ("QD", "Site-D", "Germany"), ("QN", "Site-N", ""))
# watts: EPYC with SMT (256/64 + 320/64)/2, without 5, any state the median of 5, 4, 5; Xeon 7 of a probe
WATTS = {
    (EPYC, "true"): 4.5,
    (EPYC, "false"): 5.0,
    (EPYC, ""): 5.0,
    (XEON, "true"): 7.0,
    ("mystery", ""): 4.9,
}
OWN = 6.5  # of Site-F's Xeons from 1 February


def fill(session: Session, folder: Path) -> None:
    jobs = folder / "jobs.csv"
    with jobs.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER.split(","))
        for number, (queue, state, cpu, smt, day, wall, cores, events) in enumerate(JOBS):
            times = (f"{day}T01:00:00Z", f"{day}T20:00:00Z")
            writer.writerow(["grid", number, queue, state, cpu, smt, *times, wall, cores, wall, events])
    session.ingest("jobs", jobs)
    lines = [f"{queue},10.5,HS23,{site},{country}" for queue, site, country in QUEUES]
    table = "\n".join(["name,corepower,benchmark,site,country", *lines])
    session.declared.import_values(written(folder, table, "corepower.csv"))
    session.declared.import_references(written(folder, SCORES, "scores.csv"), form="hepix-hs23")
    power = f"site,cpu_model,watts_per_core,pue,valid_from\nSITE-F,{XEON},{OWN},,2026-02-01\nSite-D,,,1.25,\n"
    session.ingest("power", written(folder, power, "power.csv"))
    session.ingest("emissions", written(folder, OWID, "owid.csv"))
    own = "country_code,year,month,g_per_kwh,kind\nFR,2026,1,30.5,life_cycle\nFR,2026,,99,direct\n"
    session.ingest("emissions", written(folder, own, "own.csv"))


BY_HAND = """
SELECT site, sum(kwh), sum(kwh * g), sum(events) FILTER (state = 'finished'),
       sum(kwh) FILTER (g IS NULL), sum(kwh) FILTER (older)
FROM (SELECT *, wall * cores / 3600 * watts * pue / 1000 AS kwh FROM job) GROUP BY site
"""


def test_sums_by_hand(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    found = {row["site"]: row for row in session.delivered.energy("site")}
    sites = {queue: (site, country) for queue, site, country in QUEUES}
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE job (site TEXT, state TEXT, wall DOUBLE, cores DOUBLE, events DOUBLE, "
            "watts DOUBLE, pue DOUBLE, g DOUBLE, older BOOL)"
        )
        for queue, state, cpu, smt, day, wall, cores, events in JOBS:
            site, country = sites[queue]
            own = site == "Site-F" and cpu == XEON and day >= "2026-02-01"
            watts = OWN if own else WATTS[cpu, smt]
            pue = 1.25 if site == "Site-D" else 1.0
            exact = country == "France" and day < "2026-02-01"
            g = 30.5 if exact else {"France": 44.3, "Germany": 371.0}.get(country)
            row = [
                site,
                state,
                wall,
                cores or None,
                events or None,
                watts,
                pue,
                g,
                not exact and g is not None,
            ]
            database.execute("INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        expected = database.execute(BY_HAND).fetchall()
    assert len(expected) == len(found) == 3
    for site, kwh, grams, events, missing, older in expected:
        site_row = found[site]
        assert site_row["energy_kwh"] == pytest.approx(kwh, rel=1e-14)
        assert site_row["gco2e"] == (None if grams is None else pytest.approx(grams, rel=1e-14))
        assert site_row["wh_per_event"] == pytest.approx(1000 * kwh / events, rel=1e-14)
        assert site_row["no_factor_kwh"] == (None if missing is None else pytest.approx(missing, rel=1e-14))
        assert site_row["older_factor_kwh"] == (older and pytest.approx(older, rel=1e-14))
        assert sum(
            site_row[f"{name}_frac"] for name in ("own", "model_smt", "model", "assumed")
        ) == pytest.approx(1)
    assert found["Site-N"]["g_per_event"] is None


def test_errors_of_a_model_are_common_and_those_of_models_add_in_squares(
    session: Session, tmp_path: Path
) -> None:
    fill(session, tmp_path)
    (row,) = [row for row in session.delivered.energy("site") if row["site"] == "Site-D"]
    mystery, epyc = (4000 * 2 * ASSUMED_W, 5000 * 16 * 5.0)
    expected = math.hypot(mystery * ASSUMED_ERROR, epyc * 0.10) * 1.25 / 3.6e6
    assert row["energy_kwh_err"] == pytest.approx(expected, rel=1e-12)
    assert row["assumed_frac"] == pytest.approx(mystery / (mystery + epyc), rel=1e-12)


def test_joules_of_records_come_before_watts(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    before = {row["site"]: row for row in session.delivered.energy("site")}
    times = "2026-01-15T01:00:00Z,2026-01-15T20:00:00Z"
    rows = [
        f"grid,j1,QF,finished,{EPYC},{times},3600,8,100,7.2e6",
        f"grid,j2,QF,finished,{EPYC},{times},,8,100,3.6e6",  # joules without wall time
        f"grid,j3,QF,finished,{EPYC},{times},3600,8,100,",
        f"grid,j4,QD,failed,{EPYC},{times},3600,4,,1.8e6",
    ]
    head = "source,job_id,queue,state,cpu_raw,start_time,end_time,wall_s,cores,events,energy_j"
    session.ingest("jobs", written(tmp_path, "\n".join([head, *rows]), "measured.csv"))
    after = {row["site"]: row for row in session.delivered.energy("site")}
    more = {name: after[name]["energy_kwh"] - before[name]["energy_kwh"] for name in after}
    assert more == {
        "Site-F": pytest.approx(2 + 1 + 8 * 5.0 / 1000),
        "Site-D": pytest.approx(0.5 * 1.25),
        "Site-N": pytest.approx(0, abs=1e-15),
    }
    france, germany = after["Site-F"], after["Site-D"]
    assert france["measured_frac"] == pytest.approx(3 / france["energy_kwh"])
    assert germany["energy_kwh_err"] == pytest.approx(before["Site-D"]["energy_kwh_err"])
    assert france["core_h"] - before["Site-F"]["core_h"] == pytest.approx(16)
    (only,) = session.delivered.energy("site", where="energy_j>2e6", window="2026-01").rows.to_pylist()
    assert (only["energy_kwh"], only["measured_frac"], only["energy_kwh_err"]) == (3.0, 1.0, None)
    (none,) = session.delivered.energy("queue", where=["energy_j is missing", "queue=QF"]).rows.to_pylist()
    assert none["measured_frac"] in (None, 0.0)
    total = none["energy_kwh"] + only["energy_kwh"]
    assert total == pytest.approx(france["energy_kwh"])


def test_kinds_are_never_mixed(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    rows = {row["site"]: row for row in session.delivered.energy("site", factors="direct")}
    assert rows["Site-F"]["gco2e"] == pytest.approx(99 * rows["Site-F"]["energy_kwh"])
    assert rows["Site-D"]["gco2e"] is None
    with raised(UsageError):
        session.delivered.energy("site", factors="net")
    with raised(UsageError):
        session.delivered.energy("federation")


def test_energy_per_measured_hour(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(session, tmp_path)
    scores = {"QF": Measured(15.0, "HS23", 0.01, 0.01), "QD": Measured(9.0, "HS06", 0.01, 0.01)}
    monkeypatch.setattr("esjobs.delivered.energy.run_for", lambda *_: object())
    monkeypatch.setattr("esjobs.delivered.energy.measured_scores", lambda *_: scores)
    rows = {row["site"]: row for row in session.delivered.energy("site", window="2026-01/2026-02")}
    hours = sum(wall * cores for queue, *_, wall, cores, _ in JOBS if queue == "QF") / 3600 * 15.0
    france = rows["Site-F"]
    assert france["wh_per_hs23_h"] == pytest.approx(1000 * france["energy_kwh"] / hours, rel=1e-12)
    assert france["g_per_hs23_h"] == pytest.approx(france["gco2e"] / hours, rel=1e-12)
    assert rows["Site-D"]["wh_per_hs23_h"] is None


def test_a_later_table_replaces_rows_of_the_same_key(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    later = Session(session.store, session.settings, clock=lambda: datetime(2026, 6, 1, tzinfo=UTC))
    done = later.ingest("power", written(tmp_path, "site,pue\nsite-d,1.5\n", "later.csv"))
    one = {row["site"]: row["energy_kwh"] for row in later.delivered.energy("site")}
    later.undo(done.run)
    other = {row["site"]: row["energy_kwh"] for row in later.delivered.energy("site")}
    assert one["Site-D"] == pytest.approx(other["Site-D"] * 1.5 / 1.25)
