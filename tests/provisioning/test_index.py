"""The index of a centre: points by hand, what is missing, wrong questionnaires, two held together."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoResultError, ReadOnlyError
from esjobs.provisioning.index import area_points, index_points
from esjobs.provisioning.questionnaire import Input, read_questionnaire
from esjobs.schema.provisioning_names import AREAS
from tests.cli.running import run
from tests.conftest import NOW
from tests.contract.jobs import START, job, put
from tests.messages import raised

HEAD = 'centre = "{centre}"\nperiod = "2018-08-01/2018-08-11"\n'
INPUTS = """
[[input]]
area = "support"
name = "hours until solved"
value = 30
worst = 120
best = 8
weight = 3
[[input]]
area = "support"
name = "answers"
worst = 0
best = 1
[[input]]
area = "efficiency"
name = "CPU time"
measure = "efficiency"
worst = 0.5
best = 0.9
"""


def written(folder: Path, text: str, centre: str = "Here") -> Path:
    path = folder / f"{centre}.toml"
    path.write_text(HEAD.format(centre=centre) + text, encoding="utf-8")
    return path


def rows_of(session: Session, path: Path) -> dict[str, dict[str, object]]:
    report = session.provisioning.index(path)
    return {row["name"]: row for row in session.provisioning.indexed(report.run).rows.to_pylist()}


def test_points_by_hand_and_missing_is_never_zero(session: Session, tmp_path: Path) -> None:
    put(
        session.store, "load", job(1, cpu_s=6000.0), job(2, cpu_s=6000.0, end_time=START + timedelta(days=40))
    )
    rows = rows_of(session, written(tmp_path, INPUTS))
    solved = 100 * (120 - 30) / (120 - 8)
    assert rows["hours until solved"]["points"] == pytest.approx(solved)
    assert (rows["answers"]["points"], rows["answers"]["origin"]) == (None, "missing")
    support, efficiency, index = rows["support"], rows["efficiency"], rows["index"]
    assert support["points"] == pytest.approx(solved)  # not three quarters of it
    assert (support["coverage"], support["points_low"]) == pytest.approx((0.75, 0.75 * solved))
    assert support["points_high"] == pytest.approx(0.75 * solved + 25)
    assert (rows["CPU time"]["value"], efficiency["points"]) == pytest.approx((0.75, 62.5))
    assert index["points"] == pytest.approx((3 * solved + 2 * 62.5) / 5)
    assert index["coverage"] == pytest.approx((3 * 0.75 + 2) / 10)
    assert index["points_low"] == pytest.approx((3 * 0.75 * solved + 2 * 62.5) / 10)
    assert rows["documentation"]["points"] is None


def test_again_replaces_and_names_what_is_missing(session: Session, tmp_path: Path) -> None:
    path = written(tmp_path, INPUTS)
    report = session.provisioning.index(path)
    assert report.notes[:2] == (
        "missing: support: answers (not entered)",
        "missing: efficiency: CPU time (no jobs in the period)",
    )
    assert "missing: promotion (no questions in the questionnaire)" in report.notes
    session.provisioning.index(path)
    assert session.tables.quality_index().rows.num_rows == 1 + 5 + 3


def test_two_centres_over_what_both_know(session: Session, tmp_path: Path) -> None:
    put(session.store, "load", job(1, cpu_s=6000.0))
    session.provisioning.index(written(tmp_path, INPUTS))
    other = INPUTS.replace("value = 30", "value = 8").replace(
        "worst = 0\nbest = 1", "value = 1\nworst = 0\nbest = 1"
    )
    session.provisioning.index(written(tmp_path, other, "There"))
    compared = session.provisioning.compare("Here", "There 2018-08-01/2018-08-11")
    rows = {row["area"]: row for row in compared.rows.to_pylist()}
    solved = 100 * (120 - 30) / (120 - 8)
    assert (rows["support"]["points_a"], rows["support"]["points_b"]) == pytest.approx((solved, 100.0))
    assert rows["index"]["difference"] == pytest.approx(3 * (100 - solved) / 5)
    assert (rows["support"]["n_inputs"], rows["support"]["n_left_out"]) == (1, 1)
    assert compared.notes == ("only in one of them: support: answers",)
    with raised(NoResultError):
        session.provisioning.compare("Here", "Nowhere")


def test_flags_that_nobody_answered_are_measured(session: Session, tmp_path: Path) -> None:
    text = '[[input]]\narea = "support"\nname = "x"\nmeasure = "flags_answered"\nworst = 0\nbest = 1\n'
    assert rows_of(session, written(tmp_path, text))["x"]["origin"] == "missing"


@pytest.mark.parametrize(
    "text",
    [
        "",
        INPUTS.replace("support", "moon", 1),
        INPUTS.replace("best = 8", "best = 120"),
        INPUTS.replace("value = 30", "value = nan"),
        INPUTS.replace("value = 30", "value = true"),
        INPUTS.replace("value = 30", "value = 30\nmeasure = 'jobs'"),
        INPUTS.replace('"efficiency"\nworst', '"efficency"\nworst'),
        INPUTS.replace("weight = 3", "weight = 0"),
        INPUTS.replace("weight = 3", "wait = 3"),
        INPUTS.replace('"answers"', '"hours until solved"'),
        "[weights]\nmoon = 1\n" + INPUTS,
        "[weights]\n" + "".join(f"{area} = 0\n" for area in AREAS) + INPUTS,
        "[[",
        "a = " + "[" * 5000,
    ],
)
def test_wrong_questionnaires_are_one_line(text: str, tmp_path: Path) -> None:
    with raised(InputError):
        read_questionnaire(written(tmp_path, text), NOW)


def test_unreadable_files_and_stores_for_reading(session: Session, tmp_path: Path) -> None:
    with raised(InputError):
        session.provisioning.index(tmp_path / "none.toml")
    big = tmp_path / "big.toml"
    big.write_bytes(b"#" * (300 << 10))
    with raised(InputError):
        session.provisioning.index(big)
    with pytest.raises(ReadOnlyError):
        Session(session.store, session.settings, read_only=True).provisioning.index(written(tmp_path, INPUTS))


def test_the_printed_questionnaire_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "centre.toml"
    path.write_text(run("provision", "questions").stdout, encoding="utf-8")
    asked = read_questionnaire(path, NOW)
    assert {each.area for each in asked.inputs} == set(AREAS)
    store = tmp_path / "jobs.duckdb"
    with esjobs.open(f"duckdb:{store}") as opened:
        put(opened.store, "load", job(1))
    hostile = path.read_text(encoding="utf-8").replace("Demo grid", r"<b>\u001b[31m--")
    path.write_text(hostile, encoding="utf-8")
    told = run("provision", "index", str(path), store=store)
    assert (told.exit_code, "\x1b" in told.output) == (0, False)
    shown = run("show", "quality_index", store=store)
    assert (shown.exit_code, "\x1b" in shown.output) == (0, False)


@given(
    st.lists(st.tuples(st.floats(0.1, 10), st.one_of(st.none(), st.floats(-5, 5))), min_size=1, max_size=6)
)
def test_points_lie_between_their_bounds(given_inputs: list[tuple[float, float | None]]) -> None:
    inputs = [Input("support", str(n), 0.0, 1.0, weight=weight) for n, (weight, _) in enumerate(given_inputs)]
    found = area_points(inputs, [value for _, value in given_inputs])
    index = index_points({"support": found}, dict.fromkeys(AREAS, 1.0))
    for points in (found, index):
        assert -1e-9 <= points.low <= points.high <= 100 + 1e-9
        if points.points is not None:
            assert points.low - 1e-9 <= points.points <= points.high + 1e-9
    assert (found.points is None) == all(value is None for _, value in given_inputs)
