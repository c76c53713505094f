"""Tables of jobs one by one: the first of them, however many there are, and the folder of pages no larger."""

import random
from datetime import date
from typing import Any

import pytest

from dashboards.pages.issues import JOBS_TABLE, MOST_ROWS
from dashboards.view.ask import query_rows
from esjobs.api.session import Session
from esjobs.publish.publication import rows_table
from esjobs.render.html_pages import pages_of
from esjobs.schema.issues import ISSUES

SEVERITIES = ("info", "minor", "major", "critical")


def issues(n: int) -> list[dict[str, Any]]:
    """Made-up issues: some of severity info, some without hours, many alike."""
    chosen = random.Random(7)
    return [
        {
            "day": date(2025, 6, 1),
            "source": "jobs",
            "job_id": f"{number:07d}",
            "user": f"user{number % 7}",
            "project": f"project{number % 3}",
            "queue": f"QUEUE{number % 5}",
            "detector": "cpu-idle",
            "severity": SEVERITIES[rank],
            "severity_rank": rank,
            "idle_core_h": chosen.choice([None, 1.0, 2.5, 40.0]),
            "hint": f"this job {number} did nothing",
            "n_issues": 1,
        }
        for number in range(n)
        for rank in [chosen.randrange(4)]
    ]


def fill(session: Session, n: int) -> list[dict[str, Any]]:
    """The issues of a day, stored in several batches."""
    rows = issues(n)
    batches = rows_table(ISSUES, rows).to_batches(max_chunksize=1_700)
    session.store.publish([session.store.replace(ISSUES, "2025-06-01", batches)])
    return rows


def worst(row: dict[str, Any]) -> tuple[Any, ...]:
    hours = row["idle_core_h"]
    return -row["severity_rank"], hours is None, -(hours or 0.0), row["job_id"]


@pytest.mark.parametrize("n", [500, 5_000])
def test_the_first_of_all_are_listed(session: Session, n: int) -> None:
    rows = fill(session, n)
    wanted = sorted((row for row in rows if row["severity"] != "info"), key=worst)[:MOST_ROWS]
    found = query_rows(session.store, JOBS_TABLE.view)
    assert [row["job_id"] for row in found] == [row["job_id"] for row in wanted]


def test_pages_do_not_grow_with_issues(session: Session) -> None:
    sizes = []
    for n in (4_000, 40_000):
        fill(session, n)
        part = pages_of(session.store).parts["issues-0.js"]
        assert f'"first": {MOST_ROWS}' in part or f'"first":{MOST_ROWS}' in part
        sizes.append(len(part))
    assert sizes[1] < 1.2 * sizes[0]


def test_a_table_of_all_says_nothing_of_more(session: Session) -> None:
    fill(session, 500)
    assert '"first":' not in pages_of(session.store).parts["issues-0.js"].replace(" ", "")
