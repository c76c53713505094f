"""GPU efficiency, GPU-hours and energy by name are planted ones, on every engine, in all that shows them."""

from datetime import timedelta

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import UsageError
from esjobs.render.person import person
from esjobs.scores.settings import EfficiencySettings
from esjobs.store.base import JobStore
from tests.contract.jobs import START, Row, job
from tests.messages import raised
from tests.scores.made_jobs import put_all

# user, job name, GPUs, hours, load of the GPUs (None: unknown), kWh
PLANTED = [
    ("ann", "train", 4, 2.0, 0.9, 3.0),
    ("ann", "train", 1, 8.0, 0.1, None),
    ("ann", "serve", 2, 1.0, None, 0.5),
    ("bob", "idle", 8, 3.0, 0.0, None),
    ("eve", "cpu only", 0, 5.0, None, None),
    ("eve", "cpu only", None, 5.0, None, 1.0),
]
MANY = 40
METRICS = ["gpu_h", "gpu_efficiency", "energy_kwh"]


def made(session: Session) -> None:
    """The planted jobs on three days, many times each, so that ordinary ones share rows."""
    rows: list[Row] = []
    for copy in range(MANY):
        for user, name, gpus, hours, load, kwh in PLANTED:
            of_load = None if load is None else [("gpu_load.mean", load)]
            rows.append(
                job(
                    len(rows),
                    user=user,
                    project="p",
                    job_name=name,
                    gpus=gpus,
                    wall_s=hours * 3600,
                    energy_j=None if kwh is None else kwh * 3.6e6,
                    counters=of_load,
                    end_time=START + timedelta(days=copy % 3),
                )
            )
    put_all(session.store, rows)
    session.scores.compute()


def truth(chosen: list[tuple[str, str, int | None, float, float | None, float | None]]) -> list[float | None]:
    """GPU-hours, GPU efficiency and energy of planted jobs."""
    hours = [(gpus or 0) * wall for _, _, gpus, wall, _, _ in chosen if gpus is not None]
    loads = [(gpus * wall, load) for _, _, gpus, wall, load, _ in chosen if gpus and load is not None]
    energies = [kwh for *_, kwh in chosen if kwh is not None]
    return [
        MANY * sum(hours) if hours else None,
        sum(weight * load for weight, load in loads) / sum(weight for weight, _ in loads) if loads else None,
        MANY * sum(energies) if energies else None,
    ]


def test_numbers_of_names_are_the_planted_ones(store: JobStore) -> None:
    session = Session(store, Settings(scores=EfficiencySettings(own_rows=5)))
    made(session)
    assert session.tables.scores().rows.column("job_id").null_count > 0
    for by, at in (("user", 0), ("job_name", 1)):
        rows = session.query(by=[by], metrics=METRICS).rows.to_pylist()
        assert len(rows) == len({row[at] for row in PLANTED})
        for row in rows:
            expected = truth([planted for planted in PLANTED if planted[at] == row[by]])
            assert [row[name] for name in METRICS] == [
                None if value is None else pytest.approx(value, rel=1e-9) for value in expected
            ]
    for keys in ([], ["project"], ["site"], ["month"], ["queue", "week"]):
        (row,) = session.query(by=keys, metrics=METRICS).rows.to_pylist()
        assert [row[name] for name in METRICS] == [pytest.approx(value) for value in truth(PLANTED)]
    ranked = session.scores.rank("user", "gpu_efficiency").rows.to_pylist()
    found = {row["name"]: (row["gpu_h"], row["score"]) for row in ranked}
    everyone = {row["user"]: row for row in session.query(by=["user"], metrics=METRICS).rows.to_pylist()}
    for name, (hours, score) in found.items():
        expected = everyone[name]["gpu_efficiency"]
        assert hours == (everyone[name]["gpu_h"] or 0)
        assert score == (None if expected is None else pytest.approx(expected, rel=1e-9))
    assert ranked[0]["name"] == "bob"
    assert person(store, "user", "ann").total["gpu_efficiency"] == pytest.approx(
        everyone["ann"]["gpu_efficiency"]
    )


def test_windows_conditions_and_rows_of_others(store: JobStore) -> None:
    session = Session(store, Settings(scores=EfficiencySettings(own_rows=5)))
    made(session)
    chosen = session.query(by=["user"], metrics=METRICS, where=["job_name=train"], window="2018-08-02")
    (row,) = chosen.rows.to_pylist()
    expected = truth(PLANTED[:2])[1]
    assert row["gpu_efficiency"] == pytest.approx(expected)
    answer = session.query(by=["user"], metrics=["gpu_efficiency"], top=1, total=True)
    others = {row["row"]: row["gpu_efficiency"] for row in answer.rows.to_pylist()}
    assert others["total"] == pytest.approx(truth(PLANTED)[1])
    assert any(f"{MANY} of {MANY * len(PLANTED)} jobs excluded" in note for note in answer.notes)
    for by, where in (("hour", []), ("user", ["cpu_s>0"])):
        with raised(UsageError):
            session.query(by=[by], metrics=["gpu_efficiency"], where=where)


def test_gpu_efficiency_is_what_sql_makes_of_the_scores(session: Session) -> None:
    made(session)
    statement = (
        'select "user", sum(gpus_used_frac * gpu_h) / sum(gpu_h) filter (gpus_used_frac is not null) as busy '
        "from scores where gpu_h is not null group by 1"
    )
    by_hand = {row["user"]: row["busy"] for row in session.sql(statement).rows.to_pylist()}
    found = session.query(by=["user"], metrics=["gpu_efficiency"]).rows.to_pylist()
    assert {row["user"]: row["gpu_efficiency"] for row in found} == pytest.approx(by_hand)
