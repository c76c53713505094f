"""The list of work: jobs, not findings, in the order of what they lost."""

from datetime import timedelta
from itertools import chain
from pathlib import Path

import pytest

import esjobs
from esjobs.core.errors import NoResultError, UsageError
from esjobs.issues.settings import DetectSettings
from esjobs.issues.worklist import recurring
from esjobs.render.person import person
from tests.conftest import with_settings
from tests.issues.made_jobs import START, busy, cores, made_series, put_records, put_series, record
from tests.messages import raised


@pytest.fixture
def detected(session: esjobs.Session, tmp_path: Path) -> esjobs.Session:
    """Big jobs of two users: one with half of its cores idle, one that leaks, one that leaked to death."""
    made = made_series()
    of_nodes = [cores([load], f"n{number}") for number, load in enumerate([busy(), busy(), busy(0), busy(0)])]
    given = {"idle": [*chain(*of_nodes)], "leak": made["leak"], "dead": made["leak"]}
    records = [
        record("idle", nodes=4),
        record("leak", user="bob", nodes=16),
        record("dead", user="carol", nodes=2, state="out_of_memory"),
        record("lazy", user="<b>'; --", nodes=1, cores=64, cpu_s=14400.0),
    ]
    put_records(session, tmp_path, records)
    put_series(session, given)
    session.issues.detect()
    return session


def test_users_are_ordered_by_the_node_hours_that_their_jobs_lost(detected: esjobs.Session) -> None:
    rows = detected.issues.work_list(least="info").rows.to_pylist()
    assert [(row["user"], row["n_jobs"], row["worst"]) for row in rows] == [
        ("alice", 1, "minor"),
        ("carol", 1, "major"),
        ("<b>'; --", 1, "major"),
        ("bob", 1, "minor"),
    ]
    # 52.5 % of 4 nodes x 4 h; 2 nodes x 4 h; 63 of 64 cores; a risk
    assert [row["lost_node_h"] for row in rows] == pytest.approx([8.4, 8.0, 3.9375, 0.0])
    assert [row["node_h"] for row in rows] == [16.0, 8.0, 4.0, 64.0]


def test_rules_of_a_user_have_hours_and_extreme_values(detected: esjobs.Session) -> None:
    rows = detected.issues.work_list(
        ["user", "detector"], where={"user": "alice"}, least="info"
    ).rows.to_pylist()
    found = {row["detector"]: (row["n_jobs"], row["lost_node_h"], row["value_high"]) for row in rows}
    assert found["cpu-idle"] == (1, 8.0, 0.5)
    assert set(found) == {"cpu-idle", "cpu-unused", "low-load", "cores-spread"}


def test_jobs_of_a_name_are_listed(detected: esjobs.Session) -> None:
    rows = detected.issues.work_list("job", where={"user": "<b>'; --"}).rows.to_pylist()
    assert [(row["source"], row["job_id"], row["n_jobs"]) for row in rows] == [("c", "lazy", 1)]


def test_an_unknown_field_and_a_name_without_issues_are_said(detected: esjobs.Session) -> None:
    with raised(UsageError):
        detected.issues.work_list("colour")
    with raised(NoResultError):
        detected.issues.work_list(where={"user": "nobody"})


def test_a_tag_that_is_reported_alone_is_not_beside_an_issue(session: esjobs.Session, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[rule.calm]\narea = "cpu"\nwhen = "cores > 1"\nseverity = "info"\nalone = true\nhint = "Calm."\n'
    )
    with_rules = session.settings.model_copy(update={"issues": DetectSettings(rules=(rules,))})
    own = with_settings(session, with_rules)
    put_records(own, tmp_path, [record("good"), record("leak")])
    put_series(own, {name: made_series()[name] for name in ("good", "leak")})
    own.issues.detect()
    found = {(row["job_id"], row["detector"]) for row in own.tables.issues()}
    assert ("good", "calm") in found
    assert {detector for job, detector in found if job == "leak"} == {"memory-leak"}


def test_an_issue_that_recurs_under_one_name_is_one_line(session: esjobs.Session, tmp_path: Path) -> None:
    def lazy(number: int, name: str | None) -> dict[str, object]:
        start = START + timedelta(days=number)
        return record(f"{name}-{number}", job_name=name, cpu_s=14400.0, cores=64, start=start)

    runs = [*(lazy(number, "relax") for number in range(4)), *(lazy(number, "twice") for number in range(2))]
    put_records(session, tmp_path, [*runs, *(lazy(number, None) for number in range(3))])
    session.issues.detect()
    rows = {(row["job_name"], row["detector"]): row for row in recurring(session.store, "user", "alice")}
    assert rows.keys() == {("relax", "one-core-used"), ("relax", "low-efficiency")}
    row = rows["relax", "one-core-used"]
    assert row["n_jobs"] == 4
    assert row["last"] - row["first"] == timedelta(days=3)
    assert row["lost_node_h"] == pytest.approx(4 * 4 * 63 / 64)
    page = person(session.store, "user", "alice")
    assert len(page.recurring) == 2
    # jobs without a name are not taken for one
    names = sorted(each["job_name"] or "" for each in page.findings)
    assert names == ["", "", "", "relax", "twice"]
