"""Pages of users and projects."""

from itertools import chain
from pathlib import Path

import pytest

from esjobs.api.session import Session
from esjobs.core.errors import NoJobsError, UsageError
from tests.issues.made_jobs import busy, cores, put_records, put_series, record
from tests.messages import raised

HOSTILE = "<script>\x1b[31m'\",="


@pytest.fixture
def judged(session: Session, tmp_path: Path) -> Session:
    """Two jobs of a hostile name that waste, ten good ones of bob, scored."""
    good = [record(f"good-{number}", user="bob", cpu_s=57600.0) for number in range(10)]
    wasteful = [
        record("idle", user=HOSTILE, nodes=40, cores=160),
        record("lazy", user=HOSTILE, cores=64, cpu_s=14400.0, application="sim"),
    ]
    put_records(session, tmp_path, [*good, *wasteful])
    half = [busy(), busy(), busy(0), busy(0)]
    put_series(session, {"idle": [*chain(*(cores(half, f"n{node}") for node in range(40)))]})
    session.issues.detect()
    session.scores.compute()
    return session


def test_hours_issues_and_jobs_of_a_user(judged: Session) -> None:
    page = judged.user(HOSTILE)
    assert page.total["jobs"] == 2
    # only one record has CPU time: 1 of 64 cores
    assert page.total["efficiency"] == pytest.approx(1 / 64)
    assert page.saved["n_jobs"] == 2
    # 1.9 of 4 cores were busy on 40 nodes, 1 of 64 on one, 4 h each
    assert page.saved["lost_node_h"] == pytest.approx((1 - 1.9 / 4) * 160 + 3.9375)
    assert [row["job_id"] for row in page.findings] == ["idle", "lazy"]
    assert set(page.hints) == {row["detector"] for row in page.issues}
    (rank,) = [row for row in page.ranks if row["name"] == "cpu_efficiency"]
    assert (rank["place"], rank["n_names"], rank["n_scored"]) == (2, 2, 2)


def test_text_and_page_show_a_hostile_name_and_do_not_obey_it(judged: Session) -> None:
    page = judged.user(HOSTILE)
    assert "<script>" not in page.html
    assert "&lt;script&gt;" in page.html
    assert "\x1b" not in page.html + str(page)
    assert "2 jobs had issues; without them 87.94 node-hours" in str(page)


def test_a_user_without_scores_and_issues_is_told_so(session: Session, tmp_path: Path) -> None:
    put_records(session, tmp_path, [record("one", user="carol")])
    page = session.user("CAROL")
    assert (page.name, page.ranks, page.saved) == ("carol", [], None)
    assert page.total["efficiency"] is None
    text = str(page)
    assert "CPU efficiency is unknown" in text
    assert "No job of carol has a score; run: esjobs score." in text
    assert "No issues found" in text


def test_names_gpu_hours_and_energy_of_jobs(session: Session, tmp_path: Path) -> None:
    jobs = [record(f"n-{number}", user="dan", job_name=f"run {number % 2}", gpus=2) for number in range(4)]
    put_records(session, tmp_path, [*jobs, record("m", user="dan", job_name="run 1", energy_j=7.2e6)])
    page = session.user("dan")
    assert {row["job_name"]: row["jobs"] for row in page.groups["job_name"]} == {"run 0": 2, "run 1": 3}
    assert "32 GPU-hours, 2 kWh of measured energy" in str(page)


def test_a_window_and_a_project(judged: Session) -> None:
    assert judged.project("phys", window="2026-03").total["jobs"] == 12
    with pytest.raises(NoJobsError):
        judged.project("phys", window="2027-03")


def test_an_unknown_name_is_refused_with_close_ones(judged: Session, session: Session) -> None:
    with raised(UsageError):
        judged.user("bop")
