"""Changes planted in made-up jobs are found, dated and explained; where nothing changes nothing is told."""

import math
import statistics
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import NoResultError
from esjobs.core.window import Window
from esjobs.publish.publication import rows_table
from esjobs.records.demo.grid import LAST_DAY
from esjobs.records.names.cpu_models import resolve_names
from esjobs.schema.drift import DAILY_FACTORS
from tests.conftest import memory_session
from tests.flags.drift.grids import (
    DAYS,
    FIRST,
    GRID,
    WINDOW,
    contradicting,
    faster,
    faster_on_model,
    fill,
    on_one_model,
)
from tests.messages import raised

TRUTH = GRID.truth()
LARGE = sorted(
    (queue for queue in TRUTH.queues if not queue.island and not queue.short_jobs), key=lambda q: -q.share
)
STEADY, STEPPED, REFITTED = LARGE[0].name, LARGE[1].name, LARGE[2].name
SLOWEST = min(TRUTH.cpu_models, key=lambda cpu: cpu.speed)


@pytest.fixture(scope="module")
def changed() -> Session:
    """One queue 20 % faster from day 14 on, another on the slowest CPU model from day 16 on."""
    session = memory_session()
    fill(session, {14: faster(STEPPED, 1.2), 16: on_one_model(REFITTED, SLOWEST.name)})
    session.run(WINDOW)
    session.flags.drift()
    return session


def told(session: Session, name: str) -> dict[str, Any]:
    (row,) = session.tables.drifts(level="queue", name=name).rows.to_pylist()
    return dict(row)


def test_nothing_is_told_of_a_grid_where_nothing_changes(session: Session) -> None:
    fill(session)
    session.run(WINDOW)
    report = session.flags.drift()
    assert report.counts["days fitted"] == DAYS
    assert report.counts["names examined"] >= 28
    assert session.tables.drifts().to_pandas().empty


def test_a_step_is_found_on_its_day_with_its_size(changed: Session) -> None:
    row = told(changed, STEPPED)
    assert row["day_low"] <= FIRST + timedelta(days=14) <= row["day_high"]
    assert abs(math.log1p(row["change"]) - math.log(1.2)) < 3 * row["change_err"]
    assert row["cause"] == "unexplained"
    assert row["sentence"].startswith(f"{STEPPED} runs 18 % faster")
    assert "faster" in row["sentence"]


def test_another_mix_of_cpu_models_is_named_and_predicts_the_change(changed: Session) -> None:
    row = told(changed, REFITTED)
    truth = TRUTH.queue(REFITTED)
    expected = math.log(SLOWEST.speed / truth.speed)
    assert row["day_low"] <= FIRST + timedelta(days=16) <= row["day_high"]
    assert row["cause"] == "CPU mix changed"
    assert f"since {row['day']}. Cause: CPU mix changed" in row["sentence"]
    assert "to 100 % of the CPU time" in row["sentence"]
    assert math.log1p(row["mix_change"]) == pytest.approx(expected, abs=0.05)


def test_nobody_else_changed(changed: Session) -> None:
    rows = changed.tables.drifts().rows.to_pylist()
    assert {row["name"] for row in rows if row["level"] == "queue"} == {STEPPED, REFITTED}


def test_a_cpu_model_that_moves_with_a_queue_names_the_queue(session: Session) -> None:
    """The model that is found at one queue more than any other is."""
    everywhere = {
        cpu.name: sum(queue.share * dict(queue.mixture).get(cpu.name, 0.0) for queue in TRUTH.queues)
        for cpu in TRUTH.cpu_models
    }
    _, most, queue = max(
        (queue.share * part / everywhere[model], model, queue.name)
        for queue in LARGE[:12]
        for model, part in queue.mixture
    )
    fill(session, {14: faster(queue, 1.3)})
    session.run(WINDOW)
    session.flags.drift()
    (row,) = session.tables.drifts(level="cpu_model", name=resolve_names([most])[0]).rows.to_pylist()
    assert row["cause"] == f"changed at {queue}"
    assert f"Cause: {queue}, with" in row["sentence"]


SPREAD = max(
    TRUTH.cpu_models,
    key=lambda cpu: sorted(queue.share * dict(queue.mixture).get(cpu.name, 0.0) for queue in TRUTH.queues)[
        -4
    ],
)
"""The CPU model with the most jobs at its fourth queue."""


@pytest.mark.parametrize("of_release", [True, False], ids=["a release", "every task"])
def test_a_release_that_speeds_up_a_cpu_model_is_told_from_the_model(
    session: Session, of_release: bool
) -> None:
    """Tasks of the release before go on for days, and are as fast as they were."""
    releases = [
        {*pa.table({"release": batch.column("release")})["release"].to_pylist()}
        for number in range(DAYS)
        for batch in list(GRID.jobs(FIRST + timedelta(days=number)))[:1]
    ]
    start = next(
        number for number in range(8, DAYS) if releases[number] - set.union(*releases[:number]) - {None}
    )
    (release,) = releases[start] - set.union(*releases[:start]) - {None}
    fill(session, {start: faster_on_model(SPREAD.name, 1.4, release if of_release else None)})
    session.run(WINDOW)
    session.flags.drift()
    (name,) = resolve_names([SPREAD.name])
    (row,) = session.tables.drifts(level="cpu_model", name=name).rows.to_pylist()
    assert row["change"] > 0.1
    if of_release:
        assert row["cause"] == f"release {release}", row["sentence"]
        assert f"{release} on {name}" in row["sentence"]
        queues = session.tables.drifts(level="queue").rows.to_pylist()
        assert all(each["cause"] == f"release {release}" for each in queues), queues
    else:
        assert not row["cause"].startswith("release"), row["sentence"]


def test_daily_factors_say_which_tasks_days_share(changed: Session) -> None:
    rows = changed.tables.daily_factors(level="queue", name=STEADY).rows.to_pylist()
    assert len(rows) == DAYS
    for row in rows:
        assert len(row["tasks"]) == len(set(row["tasks"])) == len(row["task_parts"]) <= row["n_units"]
        assert row["task_parts"] == sorted(row["task_parts"], reverse=True)
        assert row["task_parts"][0] == 1.0
    common = [len({*before["tasks"]} & {*after["tasks"]}) for before, after in pairwise(rows)]
    assert min(common) >= 1
    # tasks live up to six days
    assert not any({*rows[at]["tasks"]} & {*rows[at + 6]["tasks"]} for at in range(DAYS - 6))


def test_a_day_of_tasks_that_contradict_each_other_has_wider_errors(session: Session) -> None:
    fill(session, days=10)
    odd = FIRST + timedelta(days=10)
    session.store.put_jobs([contradicting(batch) for batch in GRID.jobs(odd)], "day 10")
    session.run((str(FIRST), str(odd + timedelta(days=1))))
    session.flags.drift()
    rows = session.tables.daily_factors(level="queue").rows.to_pylist()
    for part in ("k_err_stat", "k_err_int"):
        usual, then = (
            statistics.median(row[part] / row["k"] for row in rows if (row["day"] == odd) == is_odd)
            for is_odd in (False, True)
        )
        assert then > 1.5 * usual, part


def test_days_of_a_store_that_knows_no_tasks_are_made_again(session: Session) -> None:
    fill(session, days=20)
    session.run((str(FIRST), str(FIRST + timedelta(days=19))))
    session.flags.drift()
    made = session.tables.daily_factors().rows
    for day in sorted(set(made["day"].to_pylist())):
        rows = [{**row, "tasks": None, "task_parts": None} for row in made.to_pylist() if row["day"] == day]
        batches = rows_table(DAILY_FACTORS, rows).to_batches()
        session.store.publish([session.store.replace(DAILY_FACTORS, str(day), batches)])
    # those before the window of the run are left out, not taken for days that share nothing
    later = (str(FIRST + timedelta(days=5)), str(FIRST + timedelta(days=19)))
    session.run(later)
    report = session.flags.drift(later)
    assert report.counts["days fitted"] == 14
    assert report.rows_in == len([row for row in made.to_pylist() if row["day"] >= FIRST + timedelta(days=5)])


def test_an_edit_of_the_declaration_stands_beside_the_change(changed: Session, tmp_path: Path) -> None:
    table = tmp_path / "corepower.csv"
    since = FIRST + timedelta(days=13)
    table.write_text(
        "name,corepower,benchmark,level,valid_from\n"
        f"{STEPPED},10.4,HS06,queue,2025-01-01\n{STEPPED},12.3,HS06,queue,{since}\n"
        f"{REFITTED},11,HS06,queue,2025-01-01\n{REFITTED},9,HS06,queue,2025-02-01\n"
    )
    imported = changed.declared.import_values(table)
    try:
        changed.flags.drift()
        row = told(changed, STEPPED)
        assert row["cause"] == "unexplained", "a declared value slows no machine"
        assert (row["corepower_before"], row["corepower_after"], row["declared_on"]) == (10.4, 12.3, since)
        assert f"changed from 10.4 to 12.3 on {since}" in row["sentence"]
        other = told(changed, REFITTED)
        assert other["cause"] == "CPU mix changed"
        assert other["corepower_before"] is None, "an edit months before is none of this change"
    finally:
        changed.declared.remove(imported.run)
        changed.flags.drift()


def test_again_it_leaves_the_same_rows_and_fits_no_day(changed: Session) -> None:
    drifts, daily = changed.tables.drifts().to_pandas(), changed.tables.daily_factors().to_pandas()
    report = changed.flags.drift()
    assert report.counts["days fitted"] == 0
    assert changed.tables.drifts().to_pandas().equals(drifts)
    assert changed.tables.daily_factors().to_pandas().equals(daily)


def test_days_are_fitted_once_and_again_when_their_jobs_change(session: Session) -> None:
    fill(session, days=20)
    shorter = (str(FIRST), str(FIRST + timedelta(days=19)))
    session.run(shorter)
    assert session.flags.drift().counts["days fitted"] == 19
    session.run((str(FIRST), str(FIRST + timedelta(days=20))))
    assert session.flags.drift().counts["days fitted"] == 1
    before = session.tables.daily_factors().rows.to_pylist()
    late = [batch.slice(0, 400) for batch in GRID.jobs(FIRST + timedelta(days=40))]
    moved = [_on_day(batch, 5) for batch in late]
    session.store.put_jobs(moved, "late")
    session.run((str(FIRST), str(FIRST + timedelta(days=20))))
    assert session.flags.drift().counts["days fitted"] == 1
    after = session.tables.daily_factors().rows.to_pylist()
    differ = {row["day"] for row in before if row not in after}
    assert differ == {FIRST + timedelta(days=5)}
    # an older window takes nothing back
    assert session.flags.drift(shorter).counts["days fitted"] == 0


def _on_day(batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
    shift = pa.scalar(timedelta(days=40 - number))
    for name in ("submit_time", "start_time", "end_time"):
        place = batch.schema.get_field_index(name)
        moved = pc.subtract(batch.column(name), shift).cast(batch.schema.field(name).type)
        batch = batch.set_column(place, name, moved)
    return batch


def test_without_a_run_there_is_nothing_to_look_at(session: Session) -> None:
    fill(session, days=2)
    with raised(NoResultError):
        session.flags.drift()
    session.run(where=[f"queue={STEADY}"])
    with raised(NoResultError):
        session.flags.drift()


def test_few_days_tell_nothing_and_say_so(session: Session) -> None:
    fill(session, days=4)
    session.run()
    report = session.flags.drift()
    assert report.counts["names examined"] == 0
    assert report.counts["names with too few days"] > 20


def test_a_slow_change_is_one_slope_with_its_pace(session: Session) -> None:
    """1 % a day for 28 days: not a stair of steps, and the queue beside it changes not at all."""
    days, begins, pace = 42, 14, 0.99
    first = LAST_DAY - timedelta(days=days - 1)
    fill(
        session,
        {day: faster(STEPPED, pace) for day in range(begins, days)},
        first=first,
        days=days,
    )
    session.run(Window.of_days(first, LAST_DAY))
    session.flags.drift()
    row = told(session, STEPPED)
    assert row["per_week"] == pytest.approx(pace**7 - 1, abs=0.015)
    assert row["change"] == pytest.approx(pace ** (days - begins) - 1, abs=0.06)
    assert abs(row["day"] - (first + timedelta(days=begins))) <= timedelta(days=5)
    assert row["day_low"] <= row["day"] <= row["day_high"]
    assert row["cause"] == "unexplained"
    assert " % a week since " in row["sentence"]
