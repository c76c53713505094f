"""Pledges: imports of real shapes and broken files, hours by hand-written SQL, federations and VOs."""

import csv
import json
import math
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoResultError, UsageError
from esjobs.core.window import Window
from esjobs.delivered.pledges import Pledge, Pledges, pledge_quarter
from esjobs.delivered.work import delivered
from esjobs.records.ingest.formats.pledges import quarter_start
from tests.messages import compare_text, raised

HEADER = "source,job_id,queue,state,start_time,end_time,wall_s,cores,cpu_s"


def cric(**changed: Any) -> dict[str, Any]:
    """A federation as CRIC describes it (ES-ATLAS-T2 of 2021)."""
    quarters = {f"Q{number}": {"atlas": {"CPU": 46512, "Disk": 3726}} for number in range(1, 5)}
    return {
        "accounting_name": "ATLAS Federation",
        "country": "Spain",
        "country_code": "ES",
        "id": 22,
        "infrastructure": "EGI",
        "monit_tag": "Spain",
        "name": "ES-ATLAS-T2",
        "pledges": {"2021": quarters},
        "rcsites": ["ifae", "UAM-LCG2", "IFIC-LCG2"],
        "tier_level": 2,
        "type": "official",
        "vos": ["atlas"],
        **changed,
    }


def written(folder: Path, content: object, name: str = "pledges.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def rows(session: Session, table: str) -> list[dict[str, Any]]:
    return list(getattr(session.tables, table)())


def test_cric(session: Session, tmp_path: Path) -> None:
    other = cric(name="CH-CERN", rcsites=["CERN-PROD"], vos=["atlas", "cms"], tier_level=0)
    other["pledges"] = {"2024": {"Q4": {"atlas": {"CPU": 0}, "cms": {"Disk": 5}, "lhcb": {"CPU": "many"}}}}
    report = session.ingest("pledges", written(tmp_path, {"a": cric(), "b": other}))
    assert (report.rows_in, report.rows_out) == (4 + 3 + 3 + 2, 4 + 3 + 1 + 2)
    assert report.dropped == {"no CPU pledge": 1, "not a number": 1}
    pledges = rows(session, "pledges")
    assert [(row["year"], row["quarter"], row["cpu"], row["benchmark"]) for row in pledges] == [
        (2024, 4, 0.0, "HS23"),
        *((2021, quarter, 46512.0, "HS06") for quarter in range(1, 5)),
    ]
    assert pledges[0]["valid_from"] == datetime(2025, 1, 1, tzinfo=UTC)
    assert (pledges[1]["country_code"], pledges[1]["tier"], pledges[1]["infrastructure"]) == ("ES", 2, "EGI")
    sites = {(row["federation"], row["site"], row["vo"]) for row in rows(session, "federation_sites")}
    assert ("ES-ATLAS-T2", "ifae", "atlas") in sites
    assert ("CH-CERN", "CERN-PROD", "cms") in sites


def test_rebus(session: Session, tmp_path: Path) -> None:
    row: dict[str, Any] = {"Federation": "NL-T1", "Country": "Netherlands", "Tier": "Tier 1"}
    row |= {
        "PledgeType": "CPU",
        "PledgeUnit": "HEP-SPEC06",
        "ALICE": 13140,
        "ATLAS": 80332,
        "CMS": "",
        "LHCb": 26287,
    }
    disk = {**row, "PledgeType": "Disk", "PledgeUnit": "Tbytes"}
    file = written(tmp_path, [row, disk])
    with raised(InputError):
        session.ingest("pledges", file)
    report = session.ingest("pledges", file, fill={"year": 2020})
    assert (report.rows_in, report.rows_out) == (8, 3)
    assert report.dropped == {"not CPU": 4, "no CPU pledge": 1}
    found = {row["vo"]: row for row in rows(session, "pledges")}
    assert {vo: row["cpu"] for vo, row in found.items()} == {"alice": 13140, "atlas": 80332, "lhcb": 26287}
    assert (found["atlas"]["country_code"], found["atlas"]["tier"], found["atlas"]["quarter"]) == (
        "NL",
        1,
        None,
    )


def test_tables_in_text(session: Session, tmp_path: Path) -> None:
    text = """federation;year;quarter;vo;cpu;benchmark
A;2026;;ATLAS;1000;HS23
A;2026;;atlas;1000;HS23
A;2026;;atlas;2000;HS23
A;2026;5;atlas;2000;HS23
A;26;1;atlas;2000;HS23
A;2026;1;atlas;-1;HS23
A;2026;1;atlas;1,5;HS23;x
A;2026;2;atlas;nan;HS23
A;2026;3;;5;HS23
A;2026;3;atlas;5;SI2K
;2026;3;atlas;5;HS23
"""
    report = session.ingest("pledges", written(tmp_path, text, "p.csv"))
    assert (report.rows_in, report.rows_out) == (11, 1)
    assert report.dropped == {
        "repeated": 1,
        "contradicts an earlier row": 1,
        "out of range": 3,
        "wrong number of columns": 1,
        "not a number": 1,
        "missing value": 2,
        "no benchmark": 1,
    }


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        "[1, null, []]",
        '{"a": {"name": "A", "pledges": [1], "rcsites": "B", "vos": {}}}',
        '{"a": {"name": "A", "pledges": {"2021": {"Q1": 7}}}}',
        '{"a": {"name": 5, "pledges": {"2021": {"Q1": {"atlas": {"CPU": true}}}}}}',
        '{"a": {"name": "\\ud800"}}',
        "[" * 100_000,
        '{"pledges": NaN}',
        "federation,year\nA,2026\n",
        "federation,federation,site\nA,B,C\n",
        'federation,site\n"A,B\n',
        "federation,site,fraction\nA,B,1.5\n",
        "federation,site\nA\0,B\n",
    ],
)
def test_broken_files_end_in_one_line_or_in_refused_rows(
    session: Session, tmp_path: Path, content: str
) -> None:
    try:
        report = session.ingest("pledges", written(tmp_path, content))
    except InputError as error:
        compare_text(str(error))
        return
    assert report.rows_out == 0
    assert sum(report.dropped.values()) == report.rows_in > 0


def test_unknown_benchmarks_and_imports(session: Session, tmp_path: Path) -> None:
    with raised(InputError):
        session.ingest("pledges", written(tmp_path, {"a": cric()}), fill={"benchmark": "SI2K"})
    with raised(NoResultError):
        session.undo("nothing")


def test_an_import_can_be_repeated_replaced_and_removed(session: Session, tmp_path: Path) -> None:
    first = session.ingest("pledges", written(tmp_path, {"a": cric()}))
    again = session.ingest("pledges", written(tmp_path, {"a": cric()}, "renamed.json"))
    assert (first.run, len(rows(session, "pledges"))) == (again.run, 4)
    assert session.undo(first.run).rows_in == 7
    assert rows(session, "pledges") == rows(session, "federation_sites") == []


# -- hours -----------------------------------------------------------------------------------------------


def test_the_pledge_year_begins_in_april() -> None:
    day = datetime(2020, 1, 1, tzinfo=UTC)
    for _ in range(800):
        year, quarter = pledge_quarter(day)
        assert quarter_start(year, quarter) <= day < quarter_start(year, quarter + 1)
        day += timedelta(days=1)


@given(
    first=st.integers(0, 24 * 900),
    length=st.integers(1, 24 * 500),
    seed=st.integers(0, 99),
)
def test_hours_are_the_sum_over_days(first: int, length: int, seed: int) -> None:
    """Days by SQL: capacity x 24 h x share of the day in the window, quarter by the calendar."""
    cpu = np.random.default_rng(seed).integers(0, 10**6, 16).tolist()
    pledges = tuple(
        Pledge(
            "HS23", cpu[4 * at + q - 1], Window(quarter_start(2024 + at, q), quarter_start(2024 + at, q + 1))
        )
        for at in range(4)
        for q in range(1, 5)
    )
    start = datetime(2024, 4, 1, tzinfo=UTC) + timedelta(hours=first)
    window = Window(start, start + timedelta(hours=length))
    values = ", ".join(f"({number}, {value})" for number, value in enumerate(cpu))
    by_day = f"""
        WITH pledged(n, cpu) AS (VALUES {values}),
        day AS (SELECT unnest(generate_series(TIMESTAMP '2024-04-01', '2028-03-31', INTERVAL 1 DAY)) d)
        SELECT sum(cpu * greatest(0, date_diff('hour', greatest(d, ?), least(d + INTERVAL 1 DAY, ?))))
        FROM day JOIN pledged ON n = (year(d) * 12 + month(d) - 4 - 2024 * 12) // 3"""  # noqa: S608
    naive = [moment.replace(tzinfo=None) for moment in (window.start, window.end)]
    row = duckdb.execute(by_day, naive).fetchone()
    assert row is not None
    found = Pledges(of={"A": pledges}).hours("A", window)
    assert found is not None
    assert found["HS23"] == float(row[0])


def test_a_window_of_odd_seconds_is_covered() -> None:
    spans = [Window(quarter_start(2026, q), quarter_start(2026, q + 1)) for q in (1, 2, 3, 4)]
    pledges = Pledges(of={"A": tuple(Pledge("HS23", 3.0, span) for span in spans)})
    for seconds in (1, 7, 13, 3601):
        start = spans[0].start + timedelta(seconds=seconds)
        window = Window(start, spans[3].end - timedelta(seconds=seconds, microseconds=1))
        found = pledges.hours("A", window)
        assert found is not None
        assert found["HS23"] == pytest.approx(3 * (window.end - window.start).total_seconds() / 3600)


def test_a_window_beyond_the_pledges_has_none() -> None:
    pledge = Pledge("HS23", 10.0, Window.parse("2026-04-01/2026-07-01"))
    pledges = Pledges(of={"A": (pledge,)})
    assert pledges.hours("A", Window.parse("2026-05")) == {"HS23": 10.0 * 24 * 31}
    assert pledges.hours("A", Window.parse("2026-03-31/2026-04-02")) is None
    assert pledges.hours("B", Window.parse("2026-05")) is None


# -- delivered work --------------------------------------------------------------------------------------

JOBS = (
    *(("Q1", "2026-03-31", 3600.5, 4), ("Q1", "2026-04-01", 7200.25, 8), ("Q2", "2026-04-30", 100.0, 1)),
    *(("Q2", "2026-05-02", 36000.0, 16), ("Q3", "2026-04-15", 500.0, 2), ("Q4", "2026-04-20", 999.0, 3)),
)
SITES = {"Q1": "Site-A", "Q2": "SITE-B", "Q3": "Site-C", "Q4": "Site-D"}
SCORES = {"Q1": 11.3, "Q2": 9.7, "Q3": 13.1, "Q4": 17.9}
PLEDGED = (
    ("East", 2025, 4, 70.5),
    ("East", 2026, 1, 80.25),
    ("West", 2026, 1, 33.0),
    ("North", 2026, 1, 5.0),
)


def fill(session: Session, folder: Path, benchmark: str = "HS23") -> None:
    """Sites A and B are East, C is West; nobody has D; North has no jobs."""
    jobs = folder / "jobs.csv"
    with jobs.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER.split(","))
        for number, (queue, day, wall, cores) in enumerate(JOBS):
            times = (f"{day}T01:00:00Z", f"{day}T23:00:00Z")
            writer.writerow(["grid", number, queue, "finished", *times, wall, cores, wall])
    session.ingest("jobs", jobs)
    lines = [f"{queue},{SCORES[queue]},{benchmark},{SITES[queue]}" for queue in SCORES]
    table = written(folder, "\n".join(["name,corepower,benchmark,site", *lines]), "corepower.csv")
    session.declared.import_values(table)
    lines = [f"{name},{year},{quarter},atlas,{cpu},HS23" for name, year, quarter, cpu in PLEDGED]
    text = "\n".join(["federation,year,quarter,vo,cpu,benchmark", *lines])
    session.ingest("pledges", written(folder, text, "pledges.csv"))
    text = "federation,site,vo,fraction\nEast,site-a,atlas,0.25\nEast,Site-B,,\nWest,Site-C,atlas,\n"
    session.ingest("pledges", written(folder, text, "sites.csv"))


BY_HAND = """
WITH job AS (SELECT federation, strftime(day::TIMESTAMP, '%Y-%m') AS month, wall * cores * score / 3600 AS h
             FROM jobs JOIN scores USING (queue) LEFT JOIN members USING (site)),
days AS (SELECT unnest(generate_series(?::TIMESTAMP, ?::TIMESTAMP - INTERVAL 1 DAY, INTERVAL 1 DAY)) AS day),
pledge AS (SELECT federation, strftime(day, '%Y-%m') AS month, sum(cpu * 24) AS pledge_h
           FROM days JOIN pledged
           ON year = year(day) - (month(day) <= 3)::INT AND quarter = (month(day) + 8) % 12 // 3 + 1
           GROUP BY ALL),
done AS (SELECT federation, month, sum(h) AS declared_h FROM job GROUP BY ALL)
SELECT coalesce(done.federation, pledge.federation) AS federation,
       coalesce(done.month, pledge.month) AS month, coalesce(declared_h, 0) AS declared_h, pledge_h,
       100 * coalesce(declared_h, 0) / nullif(pledge_h, 0) AS percent
FROM done FULL JOIN pledge ON done.federation = pledge.federation AND done.month = pledge.month
"""


def by_hand(start: date, end: date) -> dict[tuple[object, object], tuple[float, float | None, float | None]]:
    with duckdb.connect() as database:
        database.execute("CREATE TABLE jobs (queue TEXT, day DATE, wall DOUBLE, cores DOUBLE)")
        database.executemany("INSERT INTO jobs VALUES (?, ?, ?, ?)", list(JOBS))
        database.execute("CREATE TABLE scores (queue TEXT, score DOUBLE, site TEXT)")
        rows = [(queue, score, SITES[queue].lower()) for queue, score in SCORES.items()]
        database.executemany("INSERT INTO scores VALUES (?, ?, ?)", rows)
        database.execute(
            "CREATE TABLE members AS SELECT * FROM (VALUES ('East', 'site-a'), ('East', 'site-b'), "
            "('West', 'site-c')) AS t(federation, site)"
        )
        database.execute("CREATE TABLE pledged (federation TEXT, year INT, quarter INT, cpu DOUBLE)")
        database.executemany("INSERT INTO pledged VALUES (?, ?, ?, ?)", list(PLEDGED))
        found = database.execute(BY_HAND, [start, end]).fetchall()
    return {(federation, month): (*numbers,) for federation, month, *numbers in found}


def test_work_against_pledges_by_hand(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    answer = session.delivered.work(["federation", "month"], window="2026-03-01/2026-06-01")
    found = {
        (row["federation"], row["month"]): (row["declared_h"], row["pledge_h"], row["of_pledge_percent"])
        for row in answer
    }
    expected = by_hand(date(2026, 3, 1), date(2026, 6, 1))
    assert set(found) == set(expected)
    for key, (declared_h, pledge_h, percent) in expected.items():
        assert found[key][0] == pytest.approx(declared_h, rel=1e-14), key
        assert found[key][1] == pledge_h, key
        assert found[key][2] == (None if percent is None else pytest.approx(percent, rel=1e-14)), key
    assert found["East", "2026-04"][1] == 80.25 * 24 * 30
    assert found["North", "2026-05"][::2] == (0.0, 0.0)
    assert found[None, "2026-04"][1] is None


def test_totals_need_a_pledge_of_all_days(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    rows = {
        row["federation"]: row for row in session.delivered.work("federation", window="2026-03-01/2026-06-01")
    }
    assert rows["East"]["pledge_h"] == (70.5 * 31 + 80.25 * 61) * 24
    assert rows["West"]["pledge_h"] is None
    assert rows["West"]["of_pledge_percent"] is None
    part = session.delivered.work("federation", window=("2026-04-30T12:00Z", "2026-05-01T06:00Z"))
    assert {row["federation"]: row["pledge_h"] for row in part}["West"] == 33.0 * 18


def _same(moment: datetime) -> datetime:
    return moment


def test_the_running_month_is_compared_with_the_days_that_have_jobs(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    store, window = session.store, Window.parse("2026-05")
    for day in (4, 20):
        now = datetime(2026, 5, day, 8, tzinfo=UTC)
        answer = delivered(store, ("federation",), window, clock=partial(_same, now))
        assert {row["federation"]: row["pledge_h"] for row in answer}["East"] == 80.25 * 24 * 2
        assert "2026-05-01/2026-05-03" in " ".join(answer.notes)
    over = delivered(store, ("federation",), window, clock=lambda: datetime(2026, 6, 1, tzinfo=UTC))
    assert {row["federation"]: row["pledge_h"] for row in over}["East"] == 80.25 * 24 * 31


def test_sites_have_a_pledge_by_their_fraction_only(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    rows = list(session.delivered.work(["federation", "site"], window="2026-04"))
    found = {row["site"]: row["pledge_h"] for row in rows}
    assert found == {"Site-A": 0.25 * 80.25 * 24 * 30, "SITE-B": None, "Site-C": None, "Site-D": None}
    assert all(row["pledge_h"] is None for row in session.delivered.work("queue", window="2026-04"))


def test_benchmarks_are_compared_only_on_request(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path, benchmark="HS06")
    answer = session.delivered.work("federation", window="2026-04")
    east = {row["benchmark"]: row for row in answer if row["federation"] == "East"}
    assert (east["HS06"]["pledge_h"], east["HS23"]["pledge_h"]) == (None, 80.25 * 24 * 30)
    assert (east["HS06"]["of_pledge_percent"], east["HS23"]["of_pledge_percent"]) == (None, None)
    assert any("--one-scale" in note for note in answer.notes)
    (row,) = [
        row
        for row in session.delivered.work("federation", window="2026-04", one_scale=True)
        if row["federation"] == "East"
    ]
    assert row["of_pledge_percent"] == pytest.approx(100 * row["declared_h"] / (80.25 * 24 * 30), rel=1e-14)


def test_pledges_of_several_vos_need_a_choice(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    text = "federation,year,vo,cpu,benchmark\nEast,2026,cms,7,HS23\n"
    session.ingest("pledges", written(tmp_path, text, "cms.csv"))
    session.ingest("pledges", written(tmp_path, "federation,site,vo\nSouth,site-a,cms\n", "south.csv"))
    answer = session.delivered.work("federation", window="2026-04")
    assert all(row["pledge_h"] is None for row in answer)
    assert any("--vo" in note for note in answer.notes)
    chosen = {
        row["federation"]: row for row in session.delivered.work("federation", window="2026-04", vo="CMS")
    }
    assert chosen["East"]["pledge_h"] == 7 * 24 * 30
    assert chosen["South"]["n_jobs"] == 1
    with raised(UsageError):
        session.delivered.work("federation", window="2026-04", vo="lhcb")


def test_the_newest_import_counts(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    later = Session(session.store, session.settings, clock=lambda: datetime(2026, 6, 1, tzinfo=UTC))
    text = "federation,year,quarter,vo,cpu,benchmark\nEast,2026,1,atlas,90,HS23\n"
    later.ingest("pledges", written(tmp_path, text, "new.csv"))
    later.ingest("pledges", written(tmp_path, "federation,site\nWest,SITE-A\n", "moved.csv"))
    rows = {row["federation"]: row for row in session.delivered.work("federation", window="2026-04")}
    assert rows["East"]["pledge_h"] == 90 * 24 * 30
    assert rows["West"]["n_jobs"] == 2
    assert math.isclose(rows["West"]["core_h"], (7200.25 * 8 + 500 * 2) / 3600, rel_tol=1e-14)
