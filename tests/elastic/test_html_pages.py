"""Pages of HTML written from a cluster are those written from DuckDB: the same rows under the same panels."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from dashboards.pages import HEADLINE, PAGES
from dashboards.spec import OWN, Page
from dashboards.targets.html.pages.pools import pools_of
from dashboards.view.rows import Row
from esjobs.api.session import Session
from esjobs.publish.latest import latest_run
from esjobs.render.html_pages import Stored, pages_of
from esjobs.render.job_pages import job_pages
from esjobs.schema.catalogue import KINDS
from esjobs.schema.speed import SPEED
from tests.dashboards.made_runs import add_runs
from tests.elastic.demos import demo_in_both
from tests.servers.plugin import server_params
from tests.servers.pool import Servers

pytestmark = pytest.mark.slow
MOST_JOB_PAGES = 40


@dataclass(frozen=True)
class Pair:
    """The same demo in both stores."""

    embedded: Session
    cluster: Session


@pytest.fixture(scope="module", params=server_params("elasticsearch8"))
def pair(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """The demo with few jobs, run in both, and reports of TALP: nothing is copied from one to the other."""
    folder = tmp_path_factory.mktemp("pages")
    with demo_in_both(servers.running(request.param), folder, "html-pages", jobs=6_000) as sessions:
        for session in sessions:
            add_runs(session)
        yield Pair(*sessions)


def reader(session: Session) -> Stored:
    """What the pages of a store are read with."""
    runs = {kind.name: latest_run(session.store, kind) for kind in KINDS}
    shown = runs[SPEED.name]
    assert shown is not None
    latest = {name: run.run for name, run in runs.items() if run is not None}
    return Stored(session.store, latest, HEADLINE, shown.window)


CLOCK = re.compile(r"(?:^|_)(?:seconds|made_at|created|finished|noted_at|at)$")
"""Columns of when and how long something was done, which differ from run to run."""


def told(rows: list[Row]) -> list[Row]:
    """Rows without what a clock said, in an order that no engine chooses."""
    kept = [{name: value for name, value in row.items() if not CLOCK.search(name)} for row in rows]
    return sorted(kept, key=lambda row: [(value is None, written(value)) for value in row.values()])


def written(value: Any) -> str:
    """A value to sort by; sums that differ in their last digits are in one place."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def same(left: Any, right: Any) -> bool:
    """Equal values; sums of engines that add in another order differ in their last digits."""
    if isinstance(left, float | int) and isinstance(right, float | int):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(left, datetime) and isinstance(right, datetime):
        return left == right
    return type(left) is type(right) and bool(left == right)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
def test_the_rows_of_a_page_are_the_same(page: Page, pair: Pair) -> None:
    mine, of_panel = pools_of(page, reader(pair.embedded), OWN)
    theirs, of_other = pools_of(page, reader(pair.cluster), OWN)
    assert of_panel.keys() == of_other.keys()
    assert any(pool.rows for pool in mine)
    for one, other in zip(mine, theirs, strict=True):
        assert (one.name, one.columns, one.choices) == (other.name, other.columns, other.choices)
        left, right = told(one.rows), told(other.rows)
        assert len(left) == len(right), one.name
        for expected, found in zip(left, right, strict=True):
            differing = {
                name: (value, found[name]) for name, value in expected.items() if not same(value, found[name])
            }
            assert not differing, (one.name, expected)


def test_pages_say_the_same_around_their_rows(pair: Pair) -> None:
    """The folder of the rows is named after them, clocks and last digits included."""
    mine, theirs = pages_of(pair.embedded.store), pages_of(pair.cluster.store)
    assert mine.parts.keys() == theirs.parts.keys()
    around = [
        {name: text.replace(site.folder, "rows") for name, text in site.pages.items()}
        for site in (mine, theirs)
    ]
    assert around[0] == around[1]


def test_the_same_jobs_have_a_page(pair: Pair) -> None:
    mine = job_pages(pair.embedded.store, MOST_JOB_PAGES)
    assert len(mine.files) == MOST_JOB_PAGES
    assert job_pages(pair.cluster.store, MOST_JOB_PAGES) == mine
