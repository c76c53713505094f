"""Cost of an incident: planted truth, a second implementation in loops, and windows that lack something."""

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.api.session import Session
from esjobs.core.errors import NoJobsError, NoResultError, UsageError
from esjobs.core.tables import columns
from esjobs.core.window import Window
from esjobs.records.demo import Grid
from esjobs.records.demo.course import Course
from esjobs.today.incident import PARTS
from esjobs.today.incident_cost import cost_of
from tests.cli.running import run
from tests.conftest import memory_session
from tests.delivered.test_pledges import written
from tests.messages import compare_text
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, BAD_TO, DAYS, SITES, day, jobs_of, put

WINDOW = Window.of_days(day(BAD_FROM), day(BAD_TO))
T_90 = {2: 2.91998558, 9: 1.83311293, 13: 1.77093340}  # Of tables, 5 % at each end


def row_of(session: Session, site: str = BAD_SITE, window: Any = WINDOW) -> dict[str, Any]:
    row: dict[str, Any]
    (row,) = session.flags.today.incident(site, window=window)
    assert tuple(row)[:11] == columns(
        "name since until lost_core_h excess_core_h excess_core_h_low excess_core_h_high n_jobs n_users "
        "cause sentence"
    )
    return row


@pytest.fixture
def filled(session: Session) -> Session:
    put(session.store, jobs_of(range(DAYS + 2)))
    return session


# -- truth -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_incident_of_the_demo(tmp_path: Path) -> None:
    """0.45 x hours of finished jobs were lost to efficiency; failures by the rates that were planted."""
    grid = Grid.of_size(300_000, seed=1)
    days = grid.days(300_000)
    grid = replace(grid, monitored=True, course=Course(1, days[0], days[-1], 300_000))
    truth = grid.truth().incident
    assert truth is not None
    with memory_session() as session:
        for each in days:
            if truth.first - timedelta(days=15) < each < truth.last + timedelta(days=4):
                session.store.put_jobs(list(grid.jobs(each)), str(each))
        row = row_of(session, truth.site, Window.of_days(truth.first, truth.last))
        finished = 184_779.05
        assert row["excess_core_h"] == pytest.approx((1 - truth.efficiency_factor) * finished, rel=0.01)
        assert row["excess_core_h"] == pytest.approx(83_222, rel=0.001)
        assert row["excess_core_h_high"] - row["excess_core_h"] == pytest.approx(389, rel=0.01)
        assert row["failed_excess_core_h"] == pytest.approx(19_118, rel=0.01)
        assert row["lost_core_h"] == pytest.approx(102_340, rel=0.01)
        assert row["lost_core_h_high"] - row["lost_core_h"] == pytest.approx(550, rel=0.05)
        assert row["baseline_days"] == 14
        assert row["back_on"] == truth.last + timedelta(days=1)
        assert row["waiting_median_s"] > 3 * row["usual_waiting_median_s"]


def test_the_planted_cost_is_found(filled: Session) -> None:
    row = row_of(filled)
    jobs = [one for one in jobs_of(range(BAD_FROM, BAD_TO + 1)) if one["queue"] == BAD_SITE]
    hours = {state: sum(one["cores"] * one["wall_s"] / 3600 for one in jobs if one["state"] == state)
             for state in ("finished", "failed")}  # fmt: skip
    assert row["excess_core_h_low"] < hours["finished"] * (1 - 0.45 / 0.8) < row["excess_core_h_high"]
    usual = 0.03 / 0.97 * hours["finished"] * 0.45 / 0.8
    assert row["failed_excess_core_h_low"] < hours["failed"] - usual < row["failed_excess_core_h_high"]
    assert (row["n_jobs"], row["n_users"], row["baseline_days"]) == (len(jobs), None, 10)
    assert row["back_on"] == day(BAD_TO + 1)


def test_the_parts_add_up(filled: Session) -> None:
    row = row_of(filled)
    values = [row[column] for column in PARTS.values()]
    assert sum(values[:5]) == pytest.approx(values[5])
    assert row["lost_core_h"] == pytest.approx(row["excess_core_h"] + row["failed_excess_core_h"])
    (asked,) = filled.query((), "core_h", where=f"site={BAD_SITE}", window=WINDOW)
    assert values[5] == asked["core_h"]
    half = [
        row[f"{name}_core_h_high"] - row[f"{name}_core_h"] for name in ("excess", "failed_excess", "lost")
    ]
    assert half[2] == pytest.approx(math.hypot(*half[:2]))


def test_untouched_sites_lost_nothing(filled: Session) -> None:
    rows = [row_of(filled, site) for site in SITES if site != BAD_SITE]
    assert sum(row["lost_core_h_low"] < 0 < row["lost_core_h_high"] for row in rows) >= len(rows) - 1


# -- a second implementation -----------------------------------------------------------------------------


def by_hand(
    cpu: list[Any], hours: list[Any], failed: list[float], site: int, window: list[int], baseline: list[int]
) -> tuple[float, float, float, float]:
    """Excess, its half width, failed beyond the usual, its half width, cell by cell."""
    sites, strata, days = range(len(cpu)), range(len(cpu[0])), range(len(cpu[0][0]))

    def usual(s: int, d: int) -> float:
        others = [b for b in baseline if b != d]

        def total(what: list[Any], places: Any, kinds: Any) -> float:
            return float(sum(what[i][c][b] for i in places for c in kinds for b in others))

        grid = [total(cpu, sites, [c]) / total(hours, sites, [c]) for c in strata]
        at_own_mix = sum(total(hours, [s], [c]) * grid[c] for c in strata)
        factor = total(cpu, [s], strata) / at_own_mix
        return float(
            sum(
                cpu[s][c][d]
                * (total(hours, [s], [c]) + 100)
                / (total(cpu, [s], [c]) + 100 * grid[c] * factor)
                for c in strata
            )
        )

    needed = [[usual(s, d) for d in days] for s in sites]
    ratio = [[math.log(sum(hours[s][c][d] for c in strata) / needed[s][d]) for d in days] for s in sites]
    shift = []
    for d in days:
        pairs = sorted((ratio[s][d], math.sqrt(needed[s][d])) for s in sites if s != site)
        whole = sum(weight for _, weight in pairs)
        reached = 0.0
        for value, weight in pairs:
            reached += weight
            if reached >= whole / 2:
                shift.append(value)
                break
    weights = [math.sqrt(needed[site][b]) for b in baseline]

    def spread(values: list[float]) -> tuple[float, float]:
        mean = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
        square = sum(w * (v - mean) ** 2 for w, v in zip(weights, values, strict=True)) / sum(weights)
        return mean, math.sqrt(square * len(values) / (len(values) - 1))

    mean, sd = spread([ratio[site][b] - shift[b] for b in baseline])
    expected = [needed[site][d] * math.exp(shift[d] + mean) for d in days]
    u = sum(expected[d] for d in window)
    m = u * u / sum(expected[d] ** 2 for d in window)
    wide = T_90[len(baseline) - 1] * u * math.sqrt(1 / m + 1 / len(baseline))
    spent = sum(hours[site][c][d] for c in strata for d in window)
    share = sum(failed[b] for b in baseline) / sum(expected[b] for b in baseline)
    _, share_sd = spread([failed[b] / expected[b] for b in baseline])
    beyond = sum(failed[d] for d in window) - share * u
    return spent - u, wide * sd, beyond, wide * share_sd


@given(
    seed=st.integers(0, 10**6),
    n_sites=st.integers(2, 6),
    n_strata=st.integers(1, 4),
    length=st.integers(1, 3),
    n=st.sampled_from([3, 10, 14]),
)
def test_loops_give_the_same(seed: int, n_sites: int, n_strata: int, length: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    shape = n_sites, n_strata, n + length
    hours = rng.uniform(1, 500, shape)
    cpu = hours * rng.uniform(0.3, 0.95, shape)
    failed = rng.uniform(0, 50, n + length)
    baseline, window = list(range(n)), list(range(n, n + length))
    masks = [np.isin(np.arange(n + length), days) for days in (window, baseline)]
    found = cost_of(cpu, hours, failed, 0, *masks)
    assert found is not None
    expected = by_hand(cpu.tolist(), hours.tolist(), failed.tolist(), 0, window, baseline)
    values = (found.excess.value, found.excess.half, found.failed.value, found.failed.half)
    assert values == pytest.approx(expected, rel=1e-6, abs=1e-6)


# -- enemies ---------------------------------------------------------------------------------------------


def test_without_a_baseline(session: Session) -> None:
    with pytest.raises(NoJobsError):
        session.flags.today.incident(BAD_SITE, window=WINDOW)
    put(session.store, jobs_of(range(BAD_FROM - 2, DAYS)))
    with pytest.raises(NoResultError) as caught:
        session.flags.today.incident(BAD_SITE, window=WINDOW)
    compare_text(str(caught.value))


def test_unknown_sites_and_windows(filled: Session) -> None:
    for name, window in (("nobody", WINDOW), (BAD_SITE, None), ("nobody", None)):
        with pytest.raises(UsageError):
            filled.flags.today.incident(name, window=window)
    assert row_of(filled, BAD_SITE.lower()) == row_of(filled)


def test_another_incident_or_outage_is_no_baseline(filled: Session, tmp_path: Path) -> None:
    filled.flags.today.update()
    later = Window.of_days(day(BAD_TO + 1), day(BAD_TO + 1))
    row = row_of(filled, BAD_SITE, later)
    assert row["baseline_days"] == 10
    assert row["lost_core_h_low"] < 0 < row["lost_core_h_high"]
    assert row["cause"] is None
    text = f"site,begin,until\n{BAD_SITE},{day(2)},{day(4)}\n{BAD_SITE},{day(5)},{day(5)}T11:00\n"
    filled.ingest("downtimes", written(tmp_path, text, "d.csv"))
    assert row_of(filled)["baseline_days"] == 8
    assert row_of(filled)["available_share"] == 1.0


def test_the_window_of_the_watch(filled: Session) -> None:
    filled.flags.today.update()
    row = row_of(filled, BAD_SITE, None)
    first = datetime.combine(day(BAD_FROM), datetime.min.time(), UTC)
    assert row["since"] == first
    assert row["until"] >= first + timedelta(days=BAD_TO - BAD_FROM + 1)
    assert row["cause"] == "all queues and kinds of work"
    assert row_of(filled)["cause"] == row["cause"]


def test_the_parts_of_a_window_are_those_of_the_whole(filled: Session) -> None:
    """Cut within days; the zone of the ends does not matter."""
    cuts = [
        "2026-03-12T00:00:00Z",
        "2026-03-12T13:30:00+01:00",
        "2026-03-14T05:00:00Z",
        "2026-03-15T00:00:00Z",
    ]
    rows = [row_of(filled, BAD_SITE, f"{a}/{b}") for a, b in pairwise(cuts)]
    whole = row_of(filled)
    assert sum(row["n_jobs"] for row in rows) == whole["n_jobs"]
    for column in ("core_h", "not_compared_core_h"):
        assert sum(row[column] for row in rows) == pytest.approx(whole[column], abs=1e-6)
    assert sum(row["lost_core_h"] for row in rows) == pytest.approx(whole["lost_core_h"], rel=0.05)
    assert rows[0]["since"] == datetime(2026, 3, 12, tzinfo=UTC)
    assert rows[1]["since"] == datetime(2026, 3, 12, 12, 30, tzinfo=UTC)
    # the first full day after a cut one
    assert [row["back_on"] for row in rows] == [date(2026, 3, 15)] * 3


@pytest.mark.parametrize("lacks", ["finished", "cores of finished", "cores of failed", "cpu"])
def test_what_is_unknown_is_null(session: Session, lacks: str) -> None:
    bad = range(BAD_FROM, BAD_TO + 1)
    jobs = jobs_of(range(DAYS))
    for job in jobs:
        if job["queue"] == BAD_SITE and any(job["job_id"].startswith(f"{number}-") for number in bad):
            if lacks == "finished":
                job["state"] = "failed"
            elif lacks == "cpu" and job["state"] == "finished":
                job["cpu_s"] = None
            elif lacks.endswith(job["state"]):
                job["cores"] = None
    put(session.store, jobs)
    row = row_of(session)
    nulls = {name for name in ("excess_core_h", "failed_excess_core_h", "lost_core_h") if row[name] is None}
    expected = {
        "finished": set(),
        "cpu": {"excess_core_h", "lost_core_h"},
        "cores of finished": {"excess_core_h", "lost_core_h"},
        "cores of failed": {"failed_excess_core_h", "lost_core_h"},
    }
    assert nulls == expected[lacks]
    if lacks == "finished":
        hours = sum(
            one["cores"] * one["wall_s"] / 3600
            for one in jobs
            if one["queue"] == BAD_SITE and any(one["job_id"].startswith(f"{number}-") for number in bad)
        )
        assert row["lost_core_h"] == pytest.approx(hours)
        assert row["lost_core_h_low"] is None


def test_a_kind_of_work_without_past_and_a_single_site(session: Session) -> None:
    jobs = jobs_of(range(DAYS), sites=(BAD_SITE,))
    for job in jobs[BAD_FROM * 60 :: 7]:
        job["processing_type"] = "never seen"
    put(session.store, jobs)
    row = row_of(session)
    assert row["excess_core_h"] == pytest.approx(
        3 * 60 * 0.75 * 8 * 15_000 / 3600 * (1 - 0.45 / 0.8), rel=0.15
    )


@pytest.mark.parametrize(("spread", "named"), [(1, True), (10, False)])
def test_the_node_with_most_of_the_failed_jobs_is_named(session: Session, spread: int, named: bool) -> None:
    def change(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
        row["node"] = f"wn{index % 10}"
        if row["queue"] == BAD_SITE and BAD_FROM <= number <= BAD_TO:
            row["node"] = f"wn{index % spread}" if index % 3 == 0 else row["node"]
            row["state"] = "failed" if index % 3 == 0 else "finished"
        return row

    put(session.store, jobs_of(range(DAYS), change=change))
    sentence = row_of(session)["sentence"]
    assert ("wn0 ran 100 %" in sentence) == named
    assert (f"(esjobs nodes --site {BAD_SITE} --window {WINDOW})" in sentence) == named


def test_the_command_prints_a_paragraph_and_parts(tmp_path: Path) -> None:
    import esjobs

    address = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    with esjobs.open(address) as session:
        put(session.store, jobs_of(range(DAYS + 2)))
    arguments = ["--store", address, "incident", BAD_SITE, "--window", str(WINDOW)]
    shown = run(*arguments)
    compare_text(shown.stdout)
    rows = run(*arguments, "--format", "csv")
    assert rows.stdout.startswith("name,since,until,lost_core_h,excess_core_h,")
