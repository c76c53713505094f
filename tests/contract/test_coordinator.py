"""The questions of a coordinator, each by one call, against pandas on the same jobs, on every engine."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from esjobs.core.errors import UsageError
from esjobs.core.window import Window
from esjobs.records.demo.grid import LAST_DAY, Grid
from esjobs.records.jobs.query import Answer, Question, ask
from esjobs.records.names.cpu_models import resolve_names
from esjobs.records.names.sites import guess_site
from esjobs.store.base import JobStore
from tests.contract.jobs import job, put
from tests.messages import raised

LAST = Window.of_days(LAST_DAY - timedelta(days=6), LAST_DAY)
BEFORE = Window.of_days(LAST_DAY - timedelta(days=13), LAST_DAY - timedelta(days=7))
FAILED = ("failed", "timeout", "out_of_memory", "node_fail")


def demo_jobs() -> tuple[list[pa.RecordBatch], pd.DataFrame]:
    """Three weeks of the demo's jobs: as they are loaded, and as pandas sees them."""
    grid = Grid(seed=1, jobs_per_day=150, n_queues=24)
    days = [LAST_DAY - timedelta(days=back) for back in range(20, -1, -1)]
    batches = [batch for day in days for batch in grid.jobs(day)]
    frame = pa.Table.from_batches(batches).to_pandas(maps_as_pydicts="strict")
    frame["queue"] = frame["queue"]
    frame["site"] = frame["queue"].map(guess_site)
    frame["cpu_model"] = list(resolve_names([None if pd.isna(raw) else raw for raw in frame["cpu_raw"]]))
    frame["day"] = frame["end_time"].dt.date
    frame["week"] = frame["end_time"].dt.strftime("%G-W%V")
    frame["month"] = frame["end_time"].dt.strftime("%Y-%m")
    frame["hour"] = frame["end_time"].dt.hour
    frame["core_s"] = frame["wall_s"] * frame["cores"]
    frame["mem"] = frame["max_rss_b"] / frame["cores"]
    return batches, frame


def inside(frame: pd.DataFrame, window: Window) -> pd.DataFrame:
    return frame[(frame["end_time"] >= window.start) & (frame["end_time"] < window.end)]


def efficiency(rows: pd.DataFrame) -> float:
    known = rows.dropna(subset=["cpu_s", "core_s"])
    under = known["core_s"].sum()
    return float(known["cpu_s"].sum() / under) if under > 0 else float("nan")


def efficiency_error(rows: pd.DataFrame) -> float:
    known = rows.dropna(subset=["cpu_s", "core_s"])
    residual = known["cpu_s"] - efficiency(rows) * known["core_s"]
    n = len(known)
    if n < 2:
        return float("nan")
    return float(np.sqrt(n / (n - 1) * (residual**2).sum()) / known["core_s"].sum())


def lost(rows: pd.DataFrame) -> float:
    return float(rows.loc[rows["state"].isin(FAILED), "core_s"].sum() / 3600)


def found(answer: Answer, name: str) -> dict[Any, Any]:
    """A column of the groups by their keys, in the order of the answer."""
    rows = answer.table.to_pylist()
    keys = [dimension.name for dimension in answer.by]
    own = [row for row in rows if row.get("row", "group") == "group"]
    cells = [tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]] for row in own]
    return dict(zip(cells, [row[name] for row in own], strict=True))


def numbers(answer: Answer, name: str) -> dict[Any, Any]:
    """The same with NaN for what is missing, as pandas has it."""
    return {
        key: float("nan") if value is None else float(value) for key, value in found(answer, name).items()
    }


def by(frame: pd.DataFrame, keys: str | list[str], number: Callable[[pd.DataFrame], Any]) -> dict[Any, Any]:
    return {key: number(rows) for key, rows in frame.groupby(keys, dropna=False, observed=True)}


def worst_efficiency(store: JobStore, frame: pd.DataFrame) -> None:
    question = Question(
        ("queue",), ("efficiency",), window=LAST, sort="efficiency", descending=False, min_jobs=30, top=5,
        total=True, errors=True,
    )  # fmt: skip
    answer = ask(store, question)
    week = inside(frame, LAST)
    large = week.groupby("queue").filter(lambda rows: len(rows) >= 30)
    expected = sorted(by(large, "queue", efficiency).items(), key=lambda item: item[1])[:5]
    assert list(found(answer, "efficiency")) == [name for name, _ in expected]
    assert found(answer, "efficiency") == pytest.approx(dict(expected))
    errors = by(large, "queue", efficiency_error)
    assert found(answer, "efficiency_err") == pytest.approx({name: errors[name] for name, _ in expected})
    rest = week[~week["queue"].isin([name for name, _ in expected])]
    others, total = answer.table.to_pylist()[-2:]
    assert (others["queue"], others["row"], total["queue"], total["row"]) == (
        "others",
        "others",
        "total",
        "total",
    )
    assert others["efficiency"] == pytest.approx(efficiency(rest))
    assert others["efficiency_err"] == pytest.approx(efficiency_error(rest))
    assert total["efficiency"] == pytest.approx(efficiency(week))


def lost_core_hours(store: JobStore, frame: pd.DataFrame) -> None:
    names = ("lost_core_h", "lost_share", "failure_rate", "failed")
    answer = ask(store, Question(("site",), names, sort="lost_core_h", top=10, share=True))
    expected = by(frame, "site", lost)
    shown = found(answer, "lost_core_h")
    others = answer.table.to_pylist()[-1]
    largest = sorted((value for value in expected.values() if value), reverse=True)[:10]
    assert [value for value in shown.values() if value is not None] == pytest.approx(largest)
    assert sum(v or 0 for v in shown.values()) + (others["lost_core_h"] or 0) == pytest.approx(
        sum(expected.values())
    )
    shares = [row["lost_core_h_share"] or 0 for row in answer.table.to_pylist()]
    assert sum(shares) == pytest.approx(1)
    known = frame[frame["state"].isin(["finished", *FAILED])]
    rates = by(known, "site", lambda rows: float(rows["state"].isin(FAILED).mean()))
    assert found(answer, "failure_rate") == pytest.approx({name: rates[name] for name in shown})
    parts = by(known, "site", lambda rows: lost(rows) / (rows["core_s"].sum() / 3600))
    assert found(answer, "lost_share") == pytest.approx({name: parts[name] for name in shown})


def events_per_job(store: JobStore, frame: pd.DataFrame) -> None:
    answer = ask(store, Question(("queue",), ("events_per_job", "sd:events", "sem:events"), total=True))
    assert numbers(answer, "events_per_job") == pytest.approx(
        by(frame, "queue", lambda r: r["events"].mean()), nan_ok=True
    )
    assert numbers(answer, "sd:events") == pytest.approx(
        by(frame, "queue", lambda r: r["events"].std()), nan_ok=True
    )
    assert numbers(answer, "sem:events") == pytest.approx(
        by(frame, "queue", lambda r: r["events"].sem()), nan_ok=True
    )
    assert answer.table.to_pylist()[-1]["events_per_job"] == pytest.approx(frame["events"].mean())


def cpu_models_at_a_site(store: JobStore, frame: pd.DataFrame) -> None:
    site = str(frame["site"].value_counts().index[0])
    question = Question(("cpu_model",), ("jobs", "core_h"), where=(f"site={site}",), share=True)
    answer = ask(store, question)
    there = frame[frame["site"] == site]
    hours = by(
        there.assign(cpu_model=there["cpu_model"].fillna("?")), "cpu_model", lambda r: r["core_s"].sum()
    )
    shares = {name or "?": value for name, value in found(answer, "core_h_share").items()}
    assert shares == pytest.approx({name: value / sum(hours.values()) for name, value in hours.items()})


def losers_of_the_week(store: JobStore, frame: pd.DataFrame) -> None:
    answer = ask(store, Question(("queue",), ("efficiency", "jobs"), window=LAST, compare="previous"))
    assert answer.before == BEFORE
    now, past = (by(inside(frame, window), "queue", efficiency) for window in (LAST, BEFORE))
    both = [name for name in now if name in past]
    change = {name: now[name] - past[name] for name in both}
    shown = {name: value for name, value in found(answer, "efficiency_diff").items() if value is not None}
    assert shown == pytest.approx(change)
    assert list(shown.values()) == sorted(shown.values())
    sigmas = {
        name: clustered_z(["task_id"], *(side[side["queue"] == name] for side in sides(frame)))
        for name in both
    }
    z = {name: value for name, value in found(answer, "efficiency_z").items() if value is not None}
    assert len(z) >= 5
    assert z == pytest.approx({name: value for name, value in sigmas.items() if value is not None})
    changed = found(answer, "efficiency_changed")
    assert all(changed[name] == (abs(z[name]) > 3) for name in z)
    before = by(inside(frame, BEFORE), "queue", len)
    assert {name: n for name, n in found(answer, "jobs_before").items() if n} == before


def changes_of_types(store: JobStore, frame: pd.DataFrame) -> None:
    question = Question(("processing_type",), ("efficiency",), window=LAST, compare="previous", total=True)
    answer = ask(store, question)
    shown = found(answer, "efficiency_z")
    ways = ["task_id", "queue"]
    for name in frame["processing_type"].unique():
        z = clustered_z(ways, *(side[side["processing_type"] == name] for side in sides(frame)))
        assert shown[name] == (None if z is None else pytest.approx(z))
    total = answer.table.to_pylist()[-1]
    assert total["efficiency_z"] == pytest.approx(clustered_z(ways, *sides(frame)))
    parts = [total[f"efficiency_{part}"] for part in ("within", "mix", "turnover")]
    assert sum(parts) == pytest.approx(total["efficiency_diff"])
    assert parts[:2] == pytest.approx(kitagawa(*sides(frame)))


def sides(frame: pd.DataFrame) -> list[pd.DataFrame]:
    return [inside(frame, window).dropna(subset=["cpu_s", "core_s"]) for window in (BEFORE, LAST)]


def clustered_z(ways: list[str], before: pd.DataFrame, after: pd.DataFrame) -> float | None:
    """From single jobs: the quadratic form of Cameron, Gelbach and Miller with a matrix of who is alike.

    The scatter of days is the least that the variance is.
    """
    if not len(before) or not len(after):
        return None
    both = pd.concat([before, after])
    sign = np.repeat([-1.0, 1.0], [len(before), len(after)])
    ratio = np.where(sign > 0, efficiency(after), efficiency(before))
    total = np.where(sign > 0, after["core_s"].sum(), before["core_s"].sum())
    score = sign * (both["cpu_s"] - ratio * both["core_s"]).to_numpy() / total
    share = both["core_s"].to_numpy() / total / 2
    codes = [pd.factorize(both[way], use_na_sentinel=False)[0] for way in ways]
    if len(ways) == 2:
        codes.append(codes[0] * 1000 + codes[1])
    forms = []
    for code in codes:
        count = len(set(code))
        alike = code[:, None] == code[None, :]
        forms.append(score @ alike @ score * count / (count - 1) if count > 1 else 0.0)
    variance = max(*forms[:2], forms[0] + forms[1] - forms[2]) if len(ways) == 2 else forms[0]
    by_day = [side.groupby(side["end_time"].dt.date)[["cpu_s", "core_s"]].sum() for side in (before, after)]
    if min(map(len, by_day)) >= 4:
        rests: list[float] = []
        for side in by_day:
            of_day = side["cpu_s"] / side["core_s"]
            weight = side["core_s"] / side["core_s"].sum()
            rests += [*(np.sqrt(weight) * (of_day - of_day.median()).abs())]
        cut = np.minimum(rests, 2.5 * 1.4826 * np.median(rests))
        variance = max(variance, 2 * (cut**2).sum() / (len(cut) - 2))
    effective = min(1.0 / sum(share[code == one].sum() ** 2 for one in set(code)) for code in codes[:2])
    if effective < 5:
        return None
    t = (efficiency(after) - efficiency(before)) / np.sqrt(variance)
    return float(np.sign(t) * stats.norm.isf(stats.t.sf(abs(t), effective - 1)))


def kitagawa(before: pd.DataFrame, after: pd.DataFrame) -> list[float]:
    """Within and mix of the pairs of a task and a queue that have jobs in both windows."""
    sums = [
        side.groupby(["task_id", "queue"], dropna=False)[["cpu_s", "core_s"]].sum()
        for side in (before, after)
    ]
    old, new = (side.loc[sums[0].index.intersection(sums[1].index)] for side in sums)
    shares = [side["core_s"] / side["core_s"].sum() for side in (old, new)]
    ratios = [side["cpu_s"] / side["core_s"] for side in (old, new)]
    within = (shares[0] + shares[1]) / 2 * (ratios[1] - ratios[0])
    mix = (ratios[0] + ratios[1]) / 2 * (shares[1] - shares[0])
    return [float(within.sum()), float(mix.sum())]


def only_simulation_on_8_cores(store: JobStore, frame: pd.DataFrame) -> None:
    where = ("processing_type=simul", "cores=8")
    answer = ask(store, Question((), ("jobs", "cpu_h"), where=where))
    chosen = frame[(frame["processing_type"] == "simul") & (frame["cores"] == 8)]
    (row,) = answer.table.to_pylist()
    assert row == {"jobs": len(chosen), "cpu_h": pytest.approx(chosen["cpu_s"].sum() / 3600)}


def large_memory(store: JobStore, frame: pd.DataFrame) -> None:
    names = ("jobs", "mem_per_core_gb", "mem_per_core_p95_gb", "mem_per_core_max_gb")
    question = Question(("queue", "processing_type"), names, bins=("mem_per_core_b=2e9,",))
    answer = ask(store, question)
    large = frame[frame["mem"] >= 2e9]
    shown = {key[:2]: value for key, value in found(answer, "jobs").items() if key[2] == ">= 2e+09"}
    assert shown == by(large, ["queue", "processing_type"], len)
    top = {k[:2]: v for k, v in found(answer, "mem_per_core_p95_gb").items() if k[2] == ">= 2e+09"}
    assert top == pytest.approx(
        by(large, ["queue", "processing_type"], lambda r: r["mem"].quantile(0.95) / 1e9)
    )


def waiting_by_site_and_week(store: JobStore, frame: pd.DataFrame) -> None:
    names = ("waiting_median_s", "waiting_p95_s", "waiting_s")
    answer = ask(store, Question(("site", "week"), names, total=True))
    for name, number in (
        ("waiting_median_s", lambda rows: rows["queue_s"].median()),
        ("waiting_p95_s", lambda rows: rows["queue_s"].quantile(0.95)),
        ("waiting_s", lambda rows: rows["queue_s"].mean()),
    ):
        assert numbers(answer, name) == pytest.approx(by(frame, ["site", "week"], number), nan_ok=True)
    total = answer.table.to_pylist()[-1]
    assert total["waiting_p95_s"] == pytest.approx(frame["queue_s"].quantile(0.95))


def volume_over_time(store: JobStore, frame: pd.DataFrame) -> None:
    for part in ("week", "month", "hour", "day"):
        answer = ask(store, Question((part, "site"), ("jobs", "core_h")))
        shown = found(answer, "jobs")
        assert shown == by(frame, [part, "site"], len)
        assert list(shown) == sorted(shown)


def work_without_cpu_model(store: JobStore, frame: pd.DataFrame) -> None:
    answer = ask(store, Question(("cpu_model",), ("jobs", "core_h"), share=True))
    unknown = frame[frame["cpu_model"].isna()]
    assert found(answer, "jobs")[None] == len(unknown)
    assert found(answer, "core_h_share")[None] == pytest.approx(
        unknown["core_s"].sum() / frame["core_s"].sum()
    )


def rates_and_shares(store: JobStore, frame: pd.DataFrame) -> None:
    names = (
        "stagein_share",
        "stageout_share",
        "read_mb_s",
        "retries",
        "retries_per_job",
        "hs06_h",
        "stagein_mean_s",
    )
    (row,) = ask(store, Question((), names)).table.to_pylist()

    def ratio(over: str, under: str) -> float:
        known = frame.dropna(subset=[over, under])
        return float(known[over].sum() / known[under].sum())

    assert row["stagein_share"] == pytest.approx(ratio("stagein_s", "wall_s"))
    assert row["stageout_share"] == pytest.approx(ratio("stageout_s", "wall_s"))
    assert row["read_mb_s"] == pytest.approx(ratio("read_b", "wall_s") / 1e6)
    assert row["retries"] == frame["failed_attempts"].sum()
    assert row["retries_per_job"] == pytest.approx(frame["failed_attempts"].mean())
    assert row["hs06_h"] == pytest.approx(frame["hs06_s"].sum() / 3600)
    assert row["stagein_mean_s"] == pytest.approx(frame["stagein_s"].mean())


def any_number(store: JobStore, frame: pd.DataFrame) -> None:
    names = (
        "min:wall_s",
        "max:wall_s",
        "median:cpu_s",
        "p99.5:cpu_s",
        "sum:read_b",
        "mean:read_b",
        "max:events",
    )
    answer = ask(store, Question(("cpu_model",), names))
    models = frame.assign(cpu_model=frame["cpu_model"].fillna("?"))
    for name, number in (
        ("min:wall_s", lambda rows: rows["wall_s"].min()),
        ("max:wall_s", lambda rows: rows["wall_s"].max()),
        ("median:cpu_s", lambda rows: rows["cpu_s"].median()),
        ("p99.5:cpu_s", lambda rows: rows["cpu_s"].quantile(0.995)),
        ("sum:read_b", lambda rows: rows["read_b"].sum()),
        ("mean:read_b", lambda rows: rows["read_b"].mean()),
        ("max:events", lambda rows: rows["events"].max()),
    ):
        shown = {model or "?": value for model, value in numbers(answer, name).items()}
        assert shown == pytest.approx(by(models, "cpu_model", number), nan_ok=True)


QUESTIONS = (
    worst_efficiency,
    lost_core_hours,
    events_per_job,
    cpu_models_at_a_site,
    losers_of_the_week,
    changes_of_types,
    only_simulation_on_8_cores,
    large_memory,
    waiting_by_site_and_week,
    volume_over_time,
    work_without_cpu_model,
    rates_and_shares,
    any_number,
)


def test_each_question_has_the_answer_of_pandas(store: JobStore) -> None:
    batches, frame = demo_jobs()
    store.put_jobs(batches, "demo")
    for question in QUESTIONS:
        question(store, frame)


OF_FAILED = (
    Question(("site",), sort="lost_core_h"),
    Question(("site",), sort="lost_core_h", top=3, share=True, total=True),
    Question(("site", "week"), errors=True, top=5),
    Question(("week",)),
    Question(("hour", "processing_type")),
    Question(("queue", "cpu_model"), sort="queue"),
    Question(("day",), bins=("cores=1,8",), where=("processing_type=simul",)),
    Question(("queue",), where=("state=finished",), sort="failed"),
    Question(("site",), window=LAST, compare="previous"),
)


def test_failed_jobs_alone_give_what_they_give_among_all(store: JobStore) -> None:
    batches, _ = demo_jobs()
    store.put_jobs(batches, "demo")
    names = ("failed", "lost_core_h")
    for asked in OF_FAILED:
        alone = ask(store, replace(asked, metrics=names)).table
        among = ask(store, replace(asked, metrics=(*names, "jobs"))).table.select(alone.column_names)
        assert alone.num_rows > 1
        for name in alone.column_names:
            values, expected = (table.column(name).to_pylist() for table in (alone, among))
            if pa.types.is_floating(alone.schema.field(name).type):
                expected = pytest.approx(expected, nan_ok=True)
            assert values == expected, (asked, name)


def test_questions_that_make_no_sense_say_why(store: JobStore) -> None:
    store.put_jobs(list(Grid(jobs_per_day=20).jobs(date(2025, 6, 30))), "demo")
    window = Window(datetime(2025, 6, 30, tzinfo=UTC), datetime(2025, 7, 1, tzinfo=UTC))
    for question in (
        Question(("cpu_s",)),
        Question(("job_id",)),
        Question(("queue",), ("nonsense",)),
        Question(("queue",), ("p101:cpu_s",)),
        Question(("queue",), ("mean:site",)),
        Question(("queue",), sort="nothing"),
        Question(("queue",), top=0),
        Question(("queue",), ()),
        Question((), top=3),
        Question(("queue",), compare="previous"),
        Question(("week",), compare="previous", window=window),
        Question((), bins=("cores=8,1",)),
        Question((), bins=("cores=0",)),
        Question((), bins=("queue=3",)),
        Question((), bins=("cores",)),
        Question((), bins=("cores=1,inf",)),
        Question((), bins=("cores=1,nan",)),
    ):
        with raised(UsageError):
            ask(store, question)


def test_what_is_not_known_of_states_is_no_zero(store: JobStore) -> None:
    """Of jobs without a state nobody knows how many failed, nor what that cost; others beside them count."""
    put(
        store,
        "a",
        *(job(n, queue="SILENT", state=None, wall_s=3600.0, cores=2) for n in range(3)),
        job("odd", queue="ODD", state="a word of its own", wall_s=3600.0, cores=2),
        job("f", queue="HALF", state="failed", wall_s=3600.0, cores=2),
        job("n", queue="HALF", state=None, wall_s=3600.0, cores=2),
        job("t", queue="BARE", state="timeout", wall_s=None, cores=2),
        job("c", queue="GOOD", state="closed", wall_s=7200.0, cores=1),
        job("g", queue="GOOD", state="finished", wall_s=3600.0, cores=2),
    )
    names = ("failed", "cancelled", "failure_rate", "lost_core_h", "cancelled_core_h", "lost_share")
    expected = {
        "SILENT": (None,) * 6,
        "ODD": (None,) * 6,
        "HALF": (1, 0, 1.0, 2.0, 0.0, 1.0),
        "BARE": (1, 0, 1.0, None, 0.0, None),
        "GOOD": (0, 1, 0.0, 0.0, 2.0, 0.0),
    }
    for metrics in (names, *((name,) for name in names), ("failed", "lost_core_h")):
        answer = ask(store, Question(("queue",), metrics))
        rows = {row["queue"]: tuple(row[name] for name in metrics) for row in answer.table.to_pylist()}
        assert rows == {
            queue: tuple(values[names.index(name)] for name in metrics) for queue, values in expected.items()
        }
    answer = ask(store, Question(("queue",), ("failed", "lost_core_h"), where=("queue!=GOOD",)))
    assert [note.split(" jobs")[0] for note in answer.notes] == [
        "failed: 5 of 7",
        "lost_core_h: 6 of 7",
    ]
    assert ask(store, Question((), ("failed", "lost_core_h"), ("queue=SILENT",))).table.to_pylist() == [
        {"failed": None, "lost_core_h": None}
    ]


def test_core_hours_without_cpu_time_follow_from_core_hours_and_efficiency(store: JobStore) -> None:
    put(
        store,
        "a",
        job(1, queue="A", wall_s=3600.0, cores=8, cpu_s=2 * 3600.0),
        job(2, queue="A", wall_s=3600.0, cores=1, cpu_s=3 * 3600.0),
        job(3, queue="A", wall_s=3600.0, cores=1, cpu_s=None),
        job(4, queue="B", wall_s=None, cores=1, cpu_s=3600.0),
    )
    question = Question(("queue",), ("idle_core_h",), errors=True, total=True, share=True)
    answer = ask(store, question)
    rows = {row["queue"]: row for row in answer.table.to_pylist()}
    assert (rows["A"]["idle_core_h"], rows["B"]["idle_core_h"]) == (pytest.approx(4.0), None)
    assert rows["A"]["idle_core_h_err"] == pytest.approx(np.hypot(6.0, 2.0))
    assert rows["total"]["idle_core_h"] == pytest.approx(4.0)
    assert [note.split(" jobs")[0] for note in answer.notes] == ["idle_core_h: 2 of 4"]
