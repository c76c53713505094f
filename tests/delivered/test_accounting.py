"""Jobs against accounting: planted differences find their reason; our APEL text is read back."""

import csv
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from esjobs.api.session import Session
from esjobs.core.errors import NoJobsError, NoResultError, UsageError
from esjobs.delivered.accounting import UNEXPLAINED, reason
from tests.delivered.test_pledges import written
from tests.messages import raised

HEADER = "source,job_id,queue,state,start_time,end_time,wall_s,cores,cpu_s"
DAYS = range(1, 29)
SCORE, HS06, HS23 = 11.5, "hepspec", "HEPscore23"


def fill(session: Session, folder: Path) -> None:
    """Each site: 28 days x (8 cores x 10 h, 1 core x 10 h); CPU 80 %; every fourth 8-core job fails."""
    jobs = folder / "jobs.csv"
    with jobs.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER.split(","))
        for site in ("A", "B"):
            for day in DAYS:
                times = (f"2026-02-{day:02}T01:00:00Z", f"2026-02-{day:02}T11:00:00Z")
                for cores in (8, 1):
                    state = "failed" if cores == 8 and day % 4 == 0 else "finished"
                    row = [site, state, *times, 36000, cores, round(0.8 * 36000 * cores)]
                    writer.writerow(["grid", f"{site}{day}-{cores}", *row])
    session.ingest("jobs", jobs)
    lines = [
        f"{site},{score},HS23,{since},{site}"
        for site in "AB"
        for score, since in ((9.25, "2020-01-01"), (SCORE, "2026-01-01"))
    ]
    table = "\n".join(["name,corepower,benchmark,valid_from,site", *lines])
    session.declared.import_values(written(folder, table, "corepower.csv"))


def message(*blocks: dict[str, Any]) -> str:
    usual = {"Site": "a", "Month": 2, "Year": 2026, "VO": "atlas"}
    text = "APEL-normalised-summary-message: v0.4\n"
    for block in blocks:
        text += "".join(f"{key}: {value}\n" for key, value in (usual | block).items()) + "%%\n"
    return text


def sums(
    cores: int, wall_h: float, n_jobs: int, *, score: float = SCORE, label: str = "HEPscore23", **more: Any
) -> dict[str, Any]:
    """A block of jobs with 80 % CPU efficiency."""
    wall = round(3600 * wall_h)
    cpu = round(0.8 * wall * cores)
    return {
        "Processors": cores,
        "WallDuration": wall,
        "CpuDuration": cpu,
        "NormalisedWallDuration": f"{{{label}: {round(wall * score)}}}",
        "NormalisedCpuDuration": f"{{{label}: {round(cpu * score)}}}",
        "NumberOfJobs": n_jobs,
        **more,
    }


SAME = (sums(8, 280, 28), sums(1, 280, 28))
HALF: dict[str, Any] = {"EarliestEndTime": 1769940000, "LatestEndTime": 1771023600}  # 1 to 13 February
PLANTS: dict[str, tuple[str | None, str | None, tuple[dict[str, Any], ...]]] = {
    "equal": (None, None, SAME),
    "half": ("month edge", None, (sums(8, 130, 13, **HALF), sums(1, 130, 13, **HALF))),
    "wall": ("wall not x cores", None, (sums(1, 560, 56),)),
    "multiplied": ("wall multiplied by site", None, (sums(8, 8 * 280, 28), sums(1, 280, 28))),
    "default": (
        None,
        "default factor 12",
        tuple(sums(c, 280, 28, score=12.0, label=HS06) for c in (8, 1)),
    ),
    "others": ("other VO/local jobs", None, (*SAME, sums(1, 400, 9, VO="cms"), sums(1, 300, 9, VO="alice"))),
    "pilots": (
        "pilot vs payload",
        None,
        (sums(8, 350, 14, CpuDuration=round(0.8 * 280 * 8 * 3600)), SAME[1]),
    ),
    "failed": ("failed/closed not counted", None, (sums(8, 210, 21), SAME[1])),
    "old score": (None, "score valid from", tuple(sums(c, 280, 28, score=9.25) for c in (8, 1))),
    "doubled": (
        "label doubled",
        None,
        (*(sums(8, 280, 28, label=label) for label in (HS06, HS23)), SAME[1]),
    ),
    "no cores": (
        "cores missing",
        None,
        (sums(8, 140, 14), sums(1, 140, 14), {**sums(1, 280, 28), "Processors": 0}),
    ),
    "odd score": (None, UNEXPLAINED, tuple(sums(c, 280, 28, score=30.0) for c in (8, 1))),
    "lost": (UNEXPLAINED, None, (sums(8, 30, 3), sums(1, 30, 3))),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_differences(session: Session, tmp_path: Path, plant: str) -> None:
    why, score_why, blocks = PLANTS[plant]
    fill(session, tmp_path)
    if plant == "default":
        text = "name,corepower,benchmark,valid_from,site\nA,10.4,HS06,2026-01-15,A\n"
        session.declared.import_values(written(tmp_path, text, "old.csv"))
    session.ingest("apel", written(tmp_path, message(*blocks), "month.apel"))
    rows = {row["site"]: row for row in session.delivered.against_accounting(window="2026-02")}
    row = rows["a"]
    wall = sum(each["WallDuration"] * each["Processors"] for each in blocks) / 3600
    assert row["core_h"] == 28 * 90
    assert row["accounted_core_h"] == pytest.approx(wall, rel=1e-12)
    assert row["ratio"] == pytest.approx(wall / (28 * 90), rel=1e-12)
    assert (row["reason"], row["score_reason"]) == (why, score_why)
    assert (rows["B"]["accounted_core_h"], rows["B"]["ratio"], rows["B"]["reason"]) == (
        None,
        None,
        "not in accounting",
    )


def test_a_vo_and_a_month_without_messages(session: Session, tmp_path: Path) -> None:
    with raised(NoJobsError):
        session.delivered.against_accounting()
    fill(session, tmp_path)
    session.ingest("apel", written(tmp_path, message(*SAME, sums(1, 70, 7, VO="cms")), "month.apel"))
    (row,) = [row for row in session.delivered.against_accounting(vo="ATLAS") if row["site"] == "a"]
    assert (row["ratio"], row["month"], row["accounted_jobs"]) == (1.0, "2026-02", 56)
    with raised(NoResultError):
        session.delivered.against_accounting(vo="lhcb")


def test_the_first_cause_that_explains_half_wins() -> None:
    effects = [("one", -3.0), ("two", 4.9), ("three", 15.0), ("four", 5.0)]
    assert reason(10.0, 100.0, iter(effects)) == "three"
    assert reason(10.0, 100.0, iter(effects[:2])) == UNEXPLAINED
    assert reason(2.0, 100.0, iter(effects)) is None


def test_our_text_is_read_back(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    text, notes = session.delivered.apel(window="2026-02", vo="atlas")
    assert notes == () or "left out" in notes[0]
    assert len(re.findall(r"^%%$", text, re.MULTILINE)) == 4
    session.ingest("apel", written(tmp_path, text, "ours.apel"))
    rows = [row for row in session.tables.read("accounting") if row["site"] == "A"]
    assert {row["processors"]: row["core_s"] for row in rows} == {8: 28 * 8 * 36000, 1: 28 * 36000}
    for row in rows:
        assert row["month"] == date(2026, 2, 1)
        assert row["hs23_per_core"] == pytest.approx(SCORE, rel=1e-6)
        assert (row["n_jobs"], row["vo"], row["efficiency"]) == (28, "atlas", pytest.approx(0.8))
    for row in session.delivered.against_accounting():
        assert row["ratio"] == pytest.approx(1.0, rel=1e-6)
        assert row["score_ratio"] == pytest.approx(1.0, rel=1e-6)
        assert (row["reason"], row["score_reason"]) == (None, None)


def test_real_accounting_is_compared(session: Session, tmp_path: Path, shared_data: Path) -> None:
    """August 2016 of OSG beside a few jobs of AGLT2: the difference is not the jobs'."""
    session.ingest("apel", shared_data / "osg-apel" / "2016-08.apel")
    text = f"{HEADER}\ngrid,1,AGLT2,finished,2016-08-03T00:00:00Z,2016-08-03T10:00:00Z,36000,8,200000\n"
    session.ingest("jobs", written(tmp_path, text, "jobs.csv"))
    rows = list(session.delivered.against_accounting())
    assert len(rows) == 50
    (row,) = [row for row in rows if row["site"] == "AGLT2"]
    assert row["ratio"] > 1000
    assert row["reason"] is not None


def by_hand(path: Path) -> dict[tuple[str, str], tuple[float, float, int]]:
    """Core-hours, HS06-hours and jobs of the sites and VOs of a file of APEL."""
    found: dict[tuple[str, str], list[float]] = {}
    for block in path.read_text().split("%%"):
        fields = dict(re.findall(r"^(\w+): (.*)$", block, re.MULTILINE))
        if "Site" not in fields:
            continue
        cores = int(fields["Processors"])
        sums = found.setdefault((fields["Site"], fields["VO"]), [0.0, 0.0, 0])
        for index, name in enumerate(("WallDuration", "NormalisedWallDuration")):
            sums[index] += int(fields[name]) * cores / 3600
        sums[2] += int(fields["NumberOfJobs"])
    return {key: (core_h, work_h, int(n_jobs)) for key, (core_h, work_h, n_jobs) in found.items()}


def test_real_accounting_alone_is_delivered_work(session: Session, tmp_path: Path, shared_data: Path) -> None:
    with raised(NoResultError):
        session.delivered.accounted()
    path = shared_data / "osg-apel" / "2016-08.apel"
    session.ingest("apel", path)
    answer = session.delivered.accounted(["site", "vo"])
    found = {(row["site"], row["vo"]): (row["core_h"], row["declared_h"], row["n_jobs"]) for row in answer}
    expected = by_hand(path)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, rel=1e-12)
    assert {row["benchmark"] for row in answer} == {"HS06"}
    assert any("default of 12 HS06" in note for note in answer.notes)
    (atlas,) = session.delivered.accounted((), vo="ATLAS", window="2016-08-10/2016-08-11")
    assert atlas["core_h"] == pytest.approx(
        sum(each[0] for key, each in expected.items() if key[1] == "atlas")
    )
    with raised(NoResultError):
        session.delivered.accounted(window="2016-09")
    with raised(UsageError):
        session.delivered.accounted("queue")
    largest = max(expected, key=lambda key: expected[key][1])[0]
    hs06_h = sum(each[1] for key, each in expected.items() if key[0] == largest)
    pledge = f"federation,year,vo,cpu,benchmark\nF,2016,atlas,{hs06_h / (31 * 24) / 2},HS06\n"
    session.ingest("pledges", written(tmp_path, pledge, "p.csv"))
    session.ingest("pledges", written(tmp_path, f"federation,site\nF,{largest}\n", "s.csv"))
    (row,) = [row for row in session.delivered.accounted("federation") if row["federation"] == "F"]
    assert row["of_pledge_percent"] == pytest.approx(200)


def test_use_by_user_has_the_columns_of_auditor(session: Session, tmp_path: Path) -> None:
    """Two users of known hours, one of a site without a score; the watts are the assumed ones."""
    jobs = "source,job_id,queue,state,start_time,end_time,wall_s,cores,cpu_s,user\n" + "".join(
        f"grid,{number},{queue},finished,2026-02-03T01:00:00Z,2026-02-03T11:00:00Z,36000,{cores},{cpu},{user}\n"
        for number, (queue, cores, cpu, user) in enumerate(
            [("A", 8, 230400, "ann"), ("A", 1, 18000, "ann"), ("C", 4, 72000, "bob")]
        )
    )
    session.ingest("jobs", written(tmp_path, jobs, "jobs.csv"))
    table = f"name,corepower,benchmark,valid_from,site\nA,{SCORE},HS23,2026-01-01,A\n"
    session.declared.import_values(written(tmp_path, table, "corepower.csv"))
    ann, bob = session.delivered.auditor().rows.to_pylist()
    assert ann == pytest.approx(
        {
            "user": "ann",
            "khs23h": 90 * SCORE / 1000,
            "cpu_eff": 69 / 90,
            "corehours": 90.0,
            "power [kWh]": 90 * 4.9 / 1000,
            "co2 [kg]": None,
        }
    )
    assert (bob["khs23h"], bob["cpu_eff"], bob["corehours"]) == (None, pytest.approx(0.5), 40.0)
