"""The step that scores jobs: what it writes, when it does so again, what it says of what it cannot tell."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoJobsError
from esjobs.core.query import Count, Query, Sum
from esjobs.core.tables import columns
from esjobs.records.clusters.settings import ClustersSettings
from esjobs.records.night import NightWork, Schedule
from esjobs.schema.pop import POP
from esjobs.schema.scores import MEASURES, SCORE_NAMES, SCORES
from esjobs.scores import score as step
from esjobs.scores.night import score_inputs, score_night
from esjobs.scores.settings import EfficiencySettings
from tests.conftest import memory_session, with_settings
from tests.contract.jobs import START, Row, day, job, put
from tests.messages import raised
from tests.scores.made_jobs import CPUS, batch_of, detected, made_jobs, put_all
from tests.scores.per_job import scores_of_job

HASWELL = CPUS[0]
PUBLISHED = columns(
    "source job_id queue user project application processing_type cpu_model end_time node_h "
    "score_cpu score_mem score_mpi score_io score_gpu score_gpumem cpu_efficiency variant"
)


def rows_of(session: Session) -> dict[str, Row]:
    """The rows of the scores by the id of their job."""
    return {row["job_id"]: row for row in session.tables.scores().rows.to_pylist()}


def scored(*jobs: Row, settings: Settings | None = None) -> dict[str, Row]:
    """The scores of some jobs."""
    with memory_session(settings or Settings()) as session:
        put_all(session.store, list(jobs))
        session.scores.compute()
        return rows_of(session)


def test_the_columns_begin_as_they_were_promised() -> None:
    names = list(SCORES.column_names)
    assert names[: len(PUBLISHED)] == list(PUBLISHED)
    beside = [f"{name}_{what}" for name in MEASURES for what in ("unclipped", "reason")]
    assert names[len(PUBLISHED) : len(PUBLISHED) + len(beside)] == beside


def test_every_job_has_a_row_and_every_missing_score_a_reason() -> None:
    jobs = made_jobs(400)
    rows = scored(*jobs)
    assert rows.keys() == {row["job_id"] for row in jobs}
    for row in rows.values():
        for name in MEASURES:
            assert (row[name] is not None) or row[f"{name}_reason"], name
            assert row[name] is None or 0 <= row[name] <= (1 if name == "cpu_efficiency" else 100)
    assert sum(row["score_cpu"] is not None for row in rows.values()) > 100


def test_rows_agree_with_a_loop_over_jobs() -> None:
    jobs = made_jobs(300, seed=2)
    rows = scored(*jobs)
    for given in jobs:
        row = rows[given["job_id"]]
        counters = {name.replace(".", "_"): value for name, value in given["counters"] or ()}
        for name, value in scores_of_job(counters, row["cpu_model"], given["smt"]).items():
            assert row[name] == (None if value is None else pytest.approx(value, rel=1e-12)), name
        efficiency = given["cpu_s"] / given["wall_s"] / given["cores"]
        assert row["cpu_efficiency_unclipped"] == pytest.approx(efficiency)
        assert (row["cpu_efficiency"] is None) == (efficiency > 1)
        core_h = given["wall_s"] * given["cores"] / 3600
        assert row["core_h"] == pytest.approx(core_h)
        if given["nodes"] is not None:
            assert row["node_h"] == pytest.approx(given["wall_s"] * given["nodes"] / 3600)
            assert row["node_h_from"] == "nodes"


def test_cpu_time_beyond_all_time_is_a_fault_of_the_record() -> None:
    with memory_session() as session:
        put_all(
            session.store,
            [
                job(1, wall_s=100.0, cores=2, cpu_s=201.0),
                job(2, wall_s=100.0, cores=2, cpu_s=200.0),
                job(3, wall_s=0.0, cores=2, cpu_s=0.0),
                job(4, wall_s=100.0, cores=None),
                job(5, cpu_s=None),
            ],
        )
        report = session.scores.compute()
        rows = rows_of(session)
    why = {name: (row["cpu_efficiency"], row["cpu_efficiency_reason"]) for name, row in rows.items()}
    assert why == {
        "1": (None, "CPU time above wall time x cores"),
        "2": (1.0, None),
        "3": (None, "no wall time"),
        "4": (None, "no cores"),
        "5": (None, "no CPU time"),
    }
    assert rows["1"]["cpu_efficiency_unclipped"] == 1.005
    assert [rows[n]["idle_core_h"] for n in "1245"] == [pytest.approx(-1 / 3600), 0.0, None, None]
    assert report.counts["CPU efficiency above 1"] == 1
    assert "1 of 5 jobs" in report.notes[0]


def test_what_was_asked_for_beside_what_was_used() -> None:
    rows = scored(
        job(
            1,
            wall_s=3600.0,
            requested_wall_s=7200.0,
            requested_memory_b=64e9,
            max_rss_b=48e9,
            max_pss_b=32e9,
            cores=8,
            requested_cores=16,
            cpu_s=4 * 3600.0,
        ),
        job(2, wall_s=3600.0, requested_wall_s=1800.0, requested_memory_b=0.0, max_rss_b=1e9, cores=8),
    )
    assert (rows["1"]["time_used_frac"], rows["1"]["memory_used_frac"]) == (0.5, 0.5)
    assert rows["1"]["cores_used_frac"] == 0.25
    assert rows["1"]["idle_core_h"] == pytest.approx(4.0)
    # it ran past what it had asked for
    assert rows["2"]["time_used_frac"] == 2.0
    assert rows["2"]["memory_used_frac"] is None
    assert rows["2"]["gpus_used_frac"] is None


def test_a_request_that_nothing_was_stopped_by_is_counted_and_not_averaged() -> None:
    jobs = [job(1, wall_s=3600.0, requested_wall_s=10.0), job(2, wall_s=3600.0, requested_wall_s=3000.0)]
    with memory_session() as session:
        put_all(session.store, [*jobs, job(3, wall_s=3600.0, requested_wall_s=None)])
        report = session.scores.compute()
        rows = rows_of(session)
    assert [(rows[key]["time_used_frac"], rows[key]["time_used_reason"]) for key in "123"] == [
        (None, "more than twice the requested time"),
        (1.2, None),
        (None, "no requested time"),
    ]
    assert report.counts["time used above twice the request"] == 1
    assert any("1 of 3 jobs report more than twice the requested" in note for note in report.notes)


def test_cores_follow_from_described_nodes(tmp_path: Path) -> None:
    described = tmp_path / "clusters.toml"
    described.write_text('[[cluster]]\nname = "emmy"\n[[cluster.subcluster]]\nname = "main"\ncores = 20\n')
    hour = {"wall_s": 3600.0, "cores": None, "cpu_s": 36000.0}
    rows = scored(
        job(1, nodes=2, cluster="emmy", **hour),
        job(2, nodes=2, cluster="other", **hour),
        job(3, nodes=None, cluster="emmy", **hour),
        job(4, nodes=2, cluster="emmy", **{**hour, "cores": 10}),
        settings=Settings(clusters=ClustersSettings(files=(described,))),
    )
    assert [(rows[key]["cpu_efficiency"], rows[key]["cores_from"]) for key in "1234"] == [
        (0.25, "cluster"),
        (None, None),
        (None, None),
        (1.0, "cores"),
    ]
    assert rows["1"]["core_h"] == 40.0
    assert rows["2"]["cpu_efficiency_reason"] == "no cores"


def test_hours_of_nodes_follow_what_is_known_of_them(tmp_path: Path) -> None:
    described = tmp_path / "clusters.toml"
    described.write_text(
        '[[cluster]]\nname = "emmy"\n[[cluster.subcluster]]\nname = "main"\ncores = 20\nsmt = true\n'
        'cpu_model = "Intel Xeon E5-2697 v3"\n'
    )
    hour = {"wall_s": 3600.0, "cores": 8, "cpu_s": 3600.0}
    counters = [("uops_retired.retire_slots", 1e9), ("cpu_clk_unhalted.thread_any", 1e9)]
    rows = scored(
        job(1, nodes=2, **hour),
        job(2, cluster="emmy", cpu_raw=None, counters=counters, **hour),
        job(3, cpu_raw=CPUS[3], **hour),
        job(4, cpu_raw=None, **hour),
        settings=Settings(clusters=ClustersSettings(files=(described,))),
    )
    assert [(row["node_h_from"], row["node_h"]) for _, row in sorted(rows.items())] == [
        ("nodes", 2.0),
        ("cluster", pytest.approx(8 / 20)),
        ("cpu", pytest.approx(8 / 64)),
        ("assumed", pytest.approx(8 / 64)),
    ]
    # the description tells the CPU and that two threads of a core ran
    assert (rows["2"]["cpu_model"], rows["2"]["score_cpu"]) == ("Intel Xeon E5-2697 v3", pytest.approx(50.0))


def test_issues_make_scores_of_the_jobs_that_were_judged() -> None:
    issues: list[Row] = [
        {"job_id": "1", "area": "io", "severity": "critical", "share_frac": 0.5},
        {"job_id": "1", "area": "io", "severity": "minor", "share_frac": 0.5},
        {"job_id": "1", "area": "cpu", "severity": "critical", "share_frac": 1.0},
        {"job_id": "2", "area": "mpi", "severity": "major", "share_frac": None},
        {"job_id": "3", "area": "mpi", "severity": "info", "share_frac": 1.0},
        {"job_id": "gone", "area": "io", "severity": "major", "share_frac": 1.0},
    ]
    blocking = {"detector": "io-blocking", "value": None, "eligible": True, "reason": None}
    measures: list[Row] = [
        {"job_id": "3", **blocking, "value": 0.0},
        {"job_id": "4", **blocking, "reason": "a series is constant"},
        {"job_id": "5", **blocking, "reason": "too many gaps"},
        {"job_id": "6", **blocking, "value": 0.0, "eligible": False},
        {"job_id": "7", **blocking, "value": 0.0, "detector": "cpu-idle"},
    ]
    with memory_session() as session:
        put_all(session.store, [job(1, gpus=4, requested_gpus=8), *map(job, range(2, 8))])
        detected(session.store, 0, issues, measures, net_b_s=1e6, gpu_load=0.5)
        session.scores.compute()
        rows = rows_of(session)
    assert rows["1"]["score_io"] == pytest.approx(100 * (1 - 0.5 * (1 - 0.15)))
    # its network was watched, but nothing looks for communication in it
    assert rows["1"]["score_mpi"] is None
    assert rows["1"]["gpus_used_frac"] == pytest.approx(0.25)
    assert (rows["2"]["score_mpi"], rows["2"]["score_io"]) == (pytest.approx(60.0), None)
    assert rows["2"]["score_io_reason"] == "no detector of input and output could judge it"
    assert rows["3"]["score_mpi_reason"] == "communication was not measured (TALP)"
    assert [rows[name]["score_io"] for name in "34567"] == [0.0, 0.0, None, None, None]
    assert (rows["1"]["issues_variant"], rows["5"]["issues_variant"]) == ("product", None)


def test_reports_of_talp_make_the_score_of_communication() -> None:
    def report(job_id: str, efficiency: float | None, number: int = 0, **more: Any) -> Row:
        main = {"main": True, "level": "application", "elapsed_s": 100.0, "cpus": 4, "fingerprint": "a"}
        return {"job_id": job_id, "mpi_parallel_efficiency": efficiency, "day": day(number), **main, **more}

    def put_pop(session: Session, number: int, *rows: Row) -> None:
        full = [{"source": "panda", **row} for row in rows]
        session.store.publish([session.store.replace(POP, str(day(number)), [batch_of(POP, full)])])

    with memory_session() as session:
        put_all(session.store, [job(1), job(2), job(3)])
        # a job of two launches, one of which is three times as long; a region; no MPI
        put_pop(
            session,
            0,
            report("1", 0.9),
            report("1", 0.5, elapsed_s=300.0),
            report("1", 0.1, main=False),
            report("2", None),
        )
        session.scores.compute()
        rows = rows_of(session)
        assert rows["1"]["score_mpi"] == pytest.approx(100 * (1 - (0.9 + 3 * 0.5) / 4))
        assert (rows["1"]["score_mpi_reason"], rows["1"]["issues_variant"]) == (None, None)
        assert (rows["2"]["score_mpi"], rows["3"]["score_mpi"]) == (None, None)
        # of the day after, because a report is written at the end
        put_pop(session, 1, report("3", 0.8, 1))
        assert session.scores.compute().counts["days scored"] == 1
        assert rows_of(session)["3"]["score_mpi"] == pytest.approx(20.0)


def test_sums_of_issues_have_their_own_weights() -> None:
    issues: list[Row] = [
        {"job_id": "1", "area": "io", "severity": "critical", "share_frac": 0.5},
        {"job_id": "1", "area": "io", "severity": "minor", "share_frac": 0.5},
    ]
    with memory_session(Settings(scores=EfficiencySettings(issues="sum", weight_minor=0.4))) as session:
        put_all(session.store, [job(1)])
        detected(session.store, 0, issues)
        session.scores.compute()
        assert rows_of(session)["1"]["score_io"] == pytest.approx(70.0)


def test_days_are_scored_again_when_anything_they_rest_on_moves() -> None:
    with memory_session() as session:
        put_all(session.store, made_jobs(60))
        assert session.scores.compute().counts["days scored"] == 3
        before = rows_of(session)
        again = session.scores.compute()
        assert (again.counts["days scored"], again.counts["days up to date"]) == (0, 3)
        assert again.rows_in == 60
        assert rows_of(session) == before
        put(session.store, "late", job("late", end_time=START + timedelta(hours=30)))
        assert session.scores.compute().counts["days scored"] == 1
        detected(session.store, 2, [{"job_id": "1", "area": "io", "severity": "minor", "share_frac": 0.1}])
        assert session.scores.compute().counts["days scored"] == 1
        detected(session.store, 2, [{"job_id": "1", "area": "io", "severity": "major", "share_frac": 0.1}])
        assert session.scores.compute().counts["days scored"] == 1
        larger = with_settings(session, Settings(scores=EfficiencySettings(cores_per_node=32)))
        assert larger.scores.compute().counts["days scored"] == 3
        assert larger.scores.compute(rebuild=True).counts["days scored"] == 3
        session.store.undo_load("late")
        assert larger.scores.compute().rows_in > 0
        assert "late" not in rows_of(session)


def test_a_day_without_jobs_has_no_scores() -> None:
    with memory_session() as session:
        put(session.store, "a", job(1))
        put(session.store, "b", job(2, end_time=START + timedelta(hours=30)))
        session.scores.compute()
        session.store.undo_load("b")
        session.scores.compute("2018-08-01/2018-08-03")
        assert rows_of(session).keys() == {"1"}
        session.store.undo_load("a")
        with pytest.raises(NoJobsError):
            session.scores.compute("2018-08-01/2018-08-03")
        assert rows_of(session) == {}


def test_a_description_that_cannot_be_read_is_told_before_anything_is_written(tmp_path: Path) -> None:
    with memory_session(Settings(clusters=ClustersSettings(files=(tmp_path / "none.toml",)))) as session:
        put(session.store, "a", job(1))
        with raised(InputError):
            session.scores.compute()


def test_memory_follows_the_batch_not_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch of jobs becomes rows of its own: never are two of them together in one."""
    sizes: list[tuple[int, int]] = []
    whole = step.scored_jobs

    def watched(jobs: Any, *rest: Any) -> Any:
        made = whole(jobs, *rest)
        sizes.append((jobs.num_rows, made.num_rows))
        return made

    monkeypatch.setattr(step, "scored_jobs", watched)
    with memory_session() as session:
        put_all(session.store, made_jobs(500, days=1))
        session.scores.compute()
    assert sum(rows for rows, _ in sizes) == 500
    assert all(rows == made for rows, made in sizes)


def test_scores_can_be_asked_for_by_any_column() -> None:
    with memory_session() as session:
        put_all(session.store, made_jobs(100))
        session.scores.compute()
        asked = Query(("variant", "node_h_from"), (Count("n"), Sum("node_h", "h")), over=SCORES)
        assert session.store.aggregate(asked).table.num_rows > 3
        assert set(SCORE_NAMES) < set(session.tables.scores().to_pandas().columns)
        assert session.tables.scores(window=f"{day(0)}/{day(1)}").to_pandas().shape[0] > 0


def test_a_store_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    with esjobs.open(f"duckdb:{tmp_path / 'a.duckdb'}") as session, pytest.raises(NoJobsError):
        session.scores.compute()


def test_a_night_scores_its_jobs_unless_it_is_told_not_to() -> None:
    for nightly in (True, False):
        settings = Settings(scores=EfficiencySettings(nightly=nightly))
        with memory_session(settings) as session:
            put(session.store, "a", job(1))
            work = NightWork(session._context, day(0), Schedule((7, 30, 90), 30, 7))
            before = score_inputs(work)
            account = score_night(work)
            assert (account.rows_out, len(rows_of(session))) == ((1, 1) if nightly else (0, 0))
            assert score_night(work) == account
            assert score_inputs(work) == before
            put(session.store, "b", job(2))
            assert (score_inputs(work) != before) is nightly


def test_a_cpu_that_no_model_stands_for_is_named_as_the_record_spells_it() -> None:
    with memory_session() as session:
        counters = {"uops_retired.retire_slots": 1e9, "cpu_clk_unhalted.thread": 1e9}
        put(session.store, "a", job(1, cpu_raw="VAX 11/780", counters=list(counters.items())))
        session.scores.compute()
        (row,) = session.tables.scores().rows.to_pylist()
    assert row["cpu_model"] is None
    assert row["score_cpu_reason"] == row["score_mem_reason"] == "unknown CPU: VAX 11/780"


def test_a_ranking_tells_of_counters_that_do_not_fit_each_other() -> None:
    with memory_session() as session:
        for number, retired in enumerate((9e6, 2e6)):
            counters = {"uops_retired.retire_slots": retired, "cpu_clk_unhalted.thread": 1e6}
            values = {"cpu_raw": CPUS[0], "smt": False, "nodes": 1, "wall_s": 3600.0, "user": "ann"}
            put(session.store, f"l{number}", job(number, counters=list(counters.items()), **values))
        session.scores.compute()
        ranking = session.scores.rank("user", "score_cpu")
    assert any("50 % of the scored node-hours: inconsistent counters" in note for note in ranking.notes)
