"""The month's delivered work, for coordinators."""

import csv
import io
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import get_args

import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.numbers import count, percent
from scheduler.notifications.monthly import monthly_notice
from scheduler.notifications.rules import takes
from scheduler.notifications.settings import Recipient, Role


@pytest.fixture(scope="module")
def session(demo_folder: Path) -> Iterator[Session]:
    with esjobs.open(f"duckdb:{demo_folder / 'demo.duckdb'}") as opened:
        yield opened


def test_it_says_what_the_command_says(session: Session) -> None:
    notice = monthly_notice(session.store, date(2025, 7, 3), 3)
    assert notice is not None
    assert (notice.kind, notice.severity, notice.night) == ("delivered", "info", date(2025, 7, 3))
    (row,) = session.delivered.work((), window="2025-06").rows.to_pylist()
    assert notice.subject == f"Delivered in 2025-06: {count(row['declared_h'])} HS06-hours"
    parts = (row["core_h"], row["declared_h"], row["measured_h"], row["measured_h_err"], row["failed_core_h"])
    assert all(count(value) in notice.text for value in parts)
    assert percent(row["useful_core_h"] / row["core_h"]) in notice.text


def test_its_file_has_the_rows_of_the_command(session: Session) -> None:
    notice = monthly_notice(session.store, date(2025, 7, 3), 3)
    assert notice is not None
    assert notice.rows is not None
    rows = session.delivered.work(("federation", "site"), window="2025-06").rows.to_pylist()
    read = list(csv.DictReader(io.StringIO(notice.rows)))
    assert [each["site"] for each in read] == [row["site"] for row in rows]
    for each, row in zip(read, rows, strict=True):
        for name in ("core_h", "declared_h", "measured_h"):
            assert each[name] == "" if row[name] is None else float(each[name]) == row[name]


def test_its_page_needs_no_network_is_small_and_names_no_users(session: Session) -> None:
    notice = monthly_notice(session.store, date(2025, 7, 3), 3)
    assert notice is not None
    assert notice.page is not None
    assert "<title>Usage, 2025-06-01 to 2025-06-30</title>" in notice.page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", notice.page)
    assert len(notice.page.encode()) < 300_000
    users = session.query("user", "jobs").rows.column("user").to_pylist()
    assert users
    assert not [name for name in users if name and f">{name}<" in notice.page]


def test_it_comes_once_a_month_and_only_with_jobs(session: Session) -> None:
    month = [date(2025, 7, day) for day in range(1, 31)]
    found = [night for night in month if monthly_notice(session.store, night, 3)]
    assert found == [date(2025, 7, 3)]
    assert monthly_notice(session.store, date(2025, 7, 3), None) is None
    assert monthly_notice(session.store, date(2025, 9, 3), 3) is None
    first, again = (monthly_notice(session.store, date(2025, 7, day), day) for day in (3, 4))
    assert first is not None
    assert again is not None
    assert first.id == again.id


def test_coordinators_get_it_and_sites_do_not(session: Session) -> None:
    notice = monthly_notice(session.store, date(2025, 7, 1), 1)
    assert notice is not None
    roles = get_args(Role)
    made = [
        Recipient(name=role, role=role, channel="mail", address="{user}@b.example")
        if role == "user"
        else Recipient(name=role, role=role, channel="mail", address="a@b.example", sites=("*",))
        for role in roles
    ]
    assert [takes(each, notice) for each in made] == [role == "coordinator" for role in roles]


def test_federations_below_their_pledge_come_first(tmp_path: Path) -> None:
    """Two sites of 10 HS06 per core: 720 core-hours of 1 HS06 pledged a month, and of 20."""
    lines = [
        f"s,j{n},{site},finished,2026-04-0{n + 1}T00:00:00Z,2026-04-0{n + 1}T20:00:00Z,72000,1,72000,720000"
        for n, site in enumerate(("A", "B"))
    ]
    jobs, pledges = tmp_path / "jobs.csv", tmp_path / "pledges.csv"
    head = "source,job_id,queue,state,start_time,end_time,wall_s,cores,cpu_s,hs06_s"
    jobs.write_text("\n".join([head, *lines]))
    pledges.write_text("federation,year,vo,cpu,benchmark\nLess,2026,atlas,20,HS06\nMore,2026,atlas,1,HS06\n")
    sites = tmp_path / "sites.csv"
    sites.write_text("federation,site\nMore,A\nLess,B\n")
    declared = tmp_path / "declared.csv"
    declared.write_text("queue,corepower,site\nA,11,A\nB,11,B\n")
    with esjobs.open("duckdb::memory:") as session:
        session.ingest("jobs", jobs)
        session.ingest("pledges", pledges)
        session.ingest("pledges", sites)
        session.declared.import_values(declared, benchmark="HS06", valid_from="2025-01-01")
        notice = monthly_notice(session.store, date(2026, 5, 2), 2)
    assert notice is not None
    # 20 h of 11 HS06 of 720 h x 20 and of 720 h x 1
    assert "Less 1.5 %, More 31 %." in notice.text
