"""Provisioning and the cost of monitoring: what is kept and told is the same on every engine."""

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import NoResultError
from esjobs.records.answer import Answer
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.contract.jobs import START, Row, job, put
from tests.messages import raised
from tests.noise.runs import recorded

ON = date(2018, 8, 15)
QUESTIONS = """centre = "{centre}"
period = "2018-08-01/2018-09-01"
[[input]]
area = "support"
name = "hours until solved"
value = {hours}
worst = 120
best = 8
[[input]]
area = "efficiency"
name = "CPU time"
measure = "efficiency"
worst = 0.5
best = 0.9
"""


def jobs() -> list[Row]:
    """Twenty users, four weeks; user 3 gains on the day after the contact."""
    rng = np.random.default_rng(3)

    def used(user: int, day: int) -> float:
        return 0.5 + user / 100 + (0.3 if user == 3 and day > 14 else 0) + float(rng.normal(0, 0.02))

    return [
        job(
            f"{user}-{day}",
            user=f"u{user:02}",
            project="ab"[user % 2],
            end_time=START + timedelta(days=day, hours=3),
            wall_s=3600.0,
            cpu_s=3600.0 * 8 * used(user, day),
            queue_s=float(3600 * rng.lognormal(0, 0.3)),
            requested_wall_s=7200.0,
            state="failed" if (user + day) % 9 == 0 else "finished",
        )
        for user in range(20)
        for day in range(28)
    ]


def asked(session: Session, folder: Path) -> dict[str, list[dict[str, Any]]]:
    desk = session.provisioning
    for user in ("u03", "u12"):
        desk.contact("user", user, on=ON, by="ann")
    desk.contact("user", "u03", on=ON, by="ann", text="threads", acknowledged=ON)
    made = []
    for centre, hours in (("Here", 30), ("There", 60), ("Here", 24)):
        path = folder / "questions.toml"
        path.write_text(QUESTIONS.format(centre=centre, hours=hours), encoding="utf-8")
        made.append(desk.index(path).run)
    off, on = recorded(folder / "off.csv", {0: 1}), recorded(folder / "on.csv", {0: 1.01}, seed=2)
    session.noise.keep("ldms", off, on)
    session.noise.keep("agent", off, recorded(folder / "same.csv", {0: 1}, seed=3))
    session.noise.keep("agent", off, on)
    answers: dict[str, Callable[[], Answer]] = {
        "waiting": lambda: desk.waiting("project"),
        "used": lambda: desk.used("user"),
        "lost": lambda: desk.lost("user"),
        "effects": lambda: desk.effects(days=14),
        "indexed": lambda: desk.indexed(made[0]),
        "compared": lambda: desk.compare(made[0], made[1]),
        "contacts": session.tables.contacts,
        "quality": session.tables.quality_index,
        "noise_costs": session.tables.noise_costs,
    }
    return {name: list(answer()) for name, answer in answers.items()}


def test_every_engine_keeps_and_tells_the_same(store: JobStore, tmp_path: Path) -> None:
    session = Session(store, Settings(), clock=lambda: NOW)
    with memory_session() as embedded:
        for each in (session, embedded):
            put(each.store, "load", *jobs())
            each.scores.compute()
        told, expected = asked(session, tmp_path), asked(embedded, tmp_path)
        assert session.noise.sentences() == embedded.noise.sentences()
    for name, rows in expected.items():
        assert len(told[name]) == len(rows), name
        for row, other in zip(told[name], rows, strict=True):
            for column, value in other.items():
                same = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
                # the account is the login of each server
                assert row[column] == same or column == "account", (name, column)
    # what was entered twice is there once, as it was entered last
    assert [row["user"] for row in told["contacts"]] == ["u03", "u12"]
    assert told["contacts"][0]["acknowledged_on"] == ON
    assert {row["value"] for row in told["quality"] if row["name"] == "hours until solved"} == {24.0, 60.0}
    assert [(row["collector"], row["verdict"]) for row in told["noise_costs"]] == [
        ("agent", "seen"),
        ("ldms", "seen"),
    ]
    assert {row["user"]: row["verdict"] for row in told["effects"]}["u03"] == "improved"


def test_nothing_kept_is_nothing_told(store: JobStore) -> None:
    session = Session(store, Settings(), clock=lambda: NOW)
    assert session.noise.sentences() == ()
    assert session.tables.noise_costs().rows.num_rows == 0
    with raised(NoResultError):
        session.provisioning.effects()
