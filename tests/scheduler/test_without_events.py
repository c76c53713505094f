"""Nights of an installation whose records carry no events: a centre with Slurm alone."""

from datetime import date
from pathlib import Path

import pytest

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import NothingToFitError
from tests.conftest import NOW, memory_session

NIGHT = date(2016, 12, 31)


@pytest.fixture
def slurm(shared_data: Path) -> Path:
    return shared_data / "slurm-accounting" / "phillips.log.gz"


def notes_of(session: Session) -> dict[str, str]:
    rows = session.tables.night_steps().rows.to_pylist()
    assert {row["state"] for row in rows} == {"done"}
    return {row["step"]: row["notes"] or "" for row in rows}


def test_a_night_is_done_and_prunes(session: Session, slurm: Path) -> None:
    session.ingest("slurm", slurm)
    row = session.nights.rerun(NIGHT)
    assert (row["state"], row["reason"], row["runs"]) == ("done", None, None)
    notes = notes_of(session)
    assert notes["fit 7d"].startswith("no fit for ")
    assert {notes[step] for step in ("drift", "decompose", "watch")} == {"no speed factors this night"}
    assert "removed" in notes["prune"]


def test_a_night_is_resumed_without_a_fit(session: Session, slurm: Path) -> None:
    session.ingest("slurm", slurm)
    first = session.nights.rerun(NIGHT)
    again = session.nights.rerun(NIGHT)
    assert (first["state"], again["state"]) == ("done", "done")


def test_fits_can_be_switched_off(slurm: Path) -> None:
    settings = Settings.model_validate({"fit": {"nightly": False}})
    with memory_session(settings) as session:
        session.ingest("slurm", slurm)
        assert session.nights.rerun(NIGHT)["state"] == "done"
        assert notes_of(session)["fit 7d"] == "fits are switched off (fit.nightly)"


def test_the_switch_is_no_part_of_the_question() -> None:
    of_run = Settings.model_validate({"fit": {"nightly": False}})
    for each in (of_run, Settings()):
        with esjobs.open("duckdb::memory:", settings=each, clock=lambda: NOW):
            dumped = each.section(type(each.fit)).model_dump()  # type: ignore[attr-defined]
            assert "nightly" not in dumped


def test_a_run_by_hand_says_why(session: Session, slurm: Path) -> None:
    session.ingest("slurm", slurm)
    with pytest.raises(NothingToFitError):
        session.run()


def test_a_load_does_not_mention_fits(session: Session, slurm: Path) -> None:
    notes = session.ingest("slurm", slurm).notes
    assert not [note for note in notes if "task id" in note or "fit" in note or "CPU model" in note]
