"""Report of usage: hours, people, outcomes and waiting of jobs, without any speed factor."""

import re
from pathlib import Path

import pytest

from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoJobsError
from esjobs.render.printing import installed_browser
from tests.delivered import test_energy
from tests.delivered.test_pledges import written
from tests.messages import raised

HEADER = "source,job_id,queue,user,project,state,submit_time,start_time,end_time,wall_s,cores,queue_s,cpu_s"


def jobs(path: Path) -> Path:
    """Three days: a user with 10 finished jobs of 10 core-hours, half used; another with 2 failed ones."""
    rows = [HEADER]
    for number in range(12):
        failed = number >= 10
        day = 1 + number % 3
        cells = [
            "batch",
            str(number),
            "small" if failed else "large",
            "bob" if failed else "alice<b>",
            "physics",
            "failed" if failed else "finished",
            f"2025-06-0{day}T00:00:00Z",
            f"2025-06-0{day}T02:00:00Z",
            f"2025-06-0{day}T12:00:00Z",
            "36000",
            "1",
            "7200",
            "" if failed else "18000",
        ]
        rows.append(",".join(cells))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def text_of(html: str) -> str:
    body = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_numbers_of_a_window(session: Session, tmp_path: Path) -> None:
    session.ingest("jobs", jobs(tmp_path / "jobs.csv"))
    text = text_of(session.report(usage=True).html)
    assert "12 jobs for 2 users and 1 project used 120 core-hours." in text
    assert "CPU efficiency was 50 %: 50 core-hours were idle." in text
    assert "17 % of the jobs failed; they used 20 core-hours." in text
    assert "Half of the jobs started within 2 h of submission, 95 % within 2 h." in text
    assert "finished 10 100 83.33" in text
    assert "failed 2 20 16.67" in text
    assert "large 10 100 50 50 0 0 2" in text
    assert "small 2 20 - - 100 20 2" in text


def test_a_window_holds_its_days_only(session: Session, tmp_path: Path) -> None:
    session.ingest("jobs", jobs(tmp_path / "jobs.csv"))
    text = text_of(session.report(usage="2025-06-01/2025-06-02").html)
    assert "Usage, 2025-06-01" in text
    assert "4 jobs for 1 user" in text


def test_names_are_escaped(session: Session, tmp_path: Path) -> None:
    session.ingest("jobs", jobs(tmp_path / "jobs.csv"))
    html = session.report(usage=True).html
    assert "alice<b>" not in html
    assert "alice&lt;b&gt;" in html


def test_a_store_without_runs_reports_usage(session: Session, tmp_path: Path) -> None:
    session.ingest("jobs", jobs(tmp_path / "jobs.csv"))
    out = tmp_path / "report.html"
    assert session.report(out).html == session.report(usage=True).html
    assert out.read_text(encoding="utf-8") == session.report(usage=True).html


def test_without_jobs(session: Session) -> None:
    with pytest.raises(NoJobsError):
        session.report(usage=True)


def test_issues_and_scores_are_counted_where_they_exist(session: Session, tmp_path: Path) -> None:
    session.ingest("jobs", jobs(tmp_path / "jobs.csv"))
    before = text_of(session.report(usage=True).html)
    session.issues.detect()
    session.scores.compute()
    after = text_of(session.report(usage=True).html)
    assert "Issues of jobs" not in before
    assert "Issues of jobs" in after


def test_delivered_work_and_energy_of_a_month(session: Session, tmp_path: Path) -> None:
    """Sections of federations with their pledge, and of measured watts; without imports neither."""
    test_energy.fill(session, tmp_path)
    page = session.report(usage="2026-01").html
    assert "Delivered work" in page
    assert "federation" not in page
    assert "Energy" in page
    text = "federation,year,vo,cpu,benchmark\nEast,2025,atlas,100,HS23\n"
    session.ingest("pledges", written(tmp_path, text, "pledges.csv"))
    session.ingest("pledges", written(tmp_path, "federation,site\nEast,Site-F\n", "sites.csv"))
    page = session.report(usage="2026-01").html
    assert "East" in page
    assert "74,400" in page  # 100 HS23 x 31 x 24 h
    headings = re.findall(r"<th[^>]*>(.*?)</th>", page)
    assert [each for each in headings if "_" in each] == []
    assert {"declared of the pledge, %", "of assumed power, %"} <= set(headings)


def test_energy_that_is_assumed_alone_has_no_section(session: Session, tmp_path: Path) -> None:
    """Sums whose last digits depend on their order."""
    path = tmp_path / "jobs.csv"
    states = ("finished", "failed", "cancelled")
    lines = [
        f"c,{n},Q,u,p,{states[n % 3]},,,2026-0{1 + n % 2}-{1 + n % 28:02}T10:00:00Z,"
        f"{3600 + 7.31 * n * n},1,,{n},Intel(R) Xeon(R) CPU E5-26{40 + n % 4} v4"
        for n in range(20)
    ]
    path.write_text("\n".join([f"{HEADER},cpu_raw", *lines]) + "\n")
    session.ingest("jobs", path)
    assert session.delivered.energy("site").rows["assumed_frac"].to_pylist() == [1.0]
    assert "Energy" not in text_of(session.report(usage=True).html)


def test_a_page_is_printed(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session.ingest("jobs", jobs(tmp_path / "jobs.csv"))
    if installed_browser() is None:
        pytest.skip("no browser")
    session.report(tmp_path / "usage.pdf", usage=True)
    assert (tmp_path / "usage.pdf").read_bytes().startswith(b"%PDF-")
    monkeypatch.setenv("PATH", str(tmp_path))
    with raised(InputError):
        session.report(tmp_path / "other.pdf", usage=True)
    assert not (tmp_path / "other.pdf").exists()
