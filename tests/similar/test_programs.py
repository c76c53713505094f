"""Jobs of programs alike: planted ones find each other, by symbols, else by name or module."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import esjobs
from esjobs.cli.main import main
from esjobs.core.errors import NoResultError
from tests.conftest import memory_session
from tests.issues.made_jobs import put_records, record
from tests.messages import compare_text, raised
from tests.similar.programs import compiled

HOSTILE = "<b>\x1b[31mjob"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[esjobs.Session]:
    with memory_session() as opened:
        put_programs(opened, tmp_path)
        yield opened


def put_programs(opened: esjobs.Session, tmp_path: Path) -> None:
    """Two versions of md, one of qc; two programs without symbols; jobs that ran them, and others."""
    new = compiled(tmp_path / "2", "md", 6)
    old = compiled(tmp_path / "1", "md", 5)
    qc = compiled(tmp_path / "1", "qc")
    bare = compiled(tmp_path / "1", "bare", strip=True, static=True)
    kin = compiled(tmp_path / "1", "kin", strip=True, static=True)
    opened.similar.scan([new, old, qc])
    opened.similar.scan([bare, kin], module="closed/1")
    put_records(
        opened,
        tmp_path,
        [
            record("new", executable=str(new.resolve())),
            record("old", executable=str(old.resolve())),
            record("again", executable=str(old.resolve()), user="ann"),
            record("qc", application="qc"),
            record("moved", executable="/gone/qc"),
            record("either", application="md"),
            record("bare", executable="bare"),
            record("bare again", application="bare"),
            record("kin", application="kin"),
            record(HOSTILE, application="unknown"),
            record("nothing"),
        ],
    )


def names(session: esjobs.Session, job_id: str) -> list[tuple[str, str]]:
    found = session.similar.programs(job_id, top=None).rows.to_pylist()
    return [(row["job_id"], row["by"]) for row in found]


def test_jobs_find_their_program_then_its_other_version_then_others(session: esjobs.Session) -> None:
    found = session.similar.programs("old", top=None)
    listed = found.rows.to_pylist()
    # the name of either says md as well; which of the two it was nobody knows
    assert [row["job_id"] for row in listed] == ["again", "new", "moved", "qc", "either"]
    assert [row["by"] for row in listed] == ["symbols"] * 4 + ["name"]
    values = [row["similarity"] for row in listed[:4]]
    assert values[0] == 1.0
    assert 1.0 > values[1] > values[2] == values[3] > 0.0
    assert listed[4]["similarity"] is None
    assert all(name.startswith("md_") for name in listed[1]["shared"].split(", "))
    assert listed[0]["user"] == "ann"
    assert (found.details.program, found.details.n_compared) == ("md", 4)
    assert found.details.left_out == {
        "with several programs of the recorded name": 1,
        "whose program has no symbols": 3,
        "whose program was not scanned": 1,
        "whose record has no program": 1,
    }


def test_without_symbols_names_and_modules_stand_in(session: esjobs.Session) -> None:
    assert names(session, "bare") == [("bare again", "name"), ("kin", "module")]
    assert names(session, "either") == [("again", "name"), ("new", "name"), ("old", "name")]


@pytest.mark.parametrize(
    ("job_id", "reason"),
    [
        ("bare", "with this job, whose program has no symbols"),
        ("either", "with this job, with several programs of the recorded name"),
    ],
)
def test_of_an_unknown_program_the_others_are_not_blamed(
    session: esjobs.Session, job_id: str, reason: str
) -> None:
    found = session.similar.programs(job_id)
    assert (found.details.n_compared, found.details.left_out) == (0, {reason: 10})


def test_a_path_without_a_name_leaves_the_application(session: esjobs.Session, tmp_path: Path) -> None:
    put_records(session, tmp_path, [record("root", executable="/", application="qc")])
    found = session.similar.programs("root", top=1)
    assert (found.details.program, found.rows.column("job_id").to_pylist()) == ("qc", ["moved"])


def test_the_same_symbols_under_one_name_are_one_program(session: esjobs.Session, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "qc"
    copy.parent.mkdir()
    copy.write_bytes((tmp_path / "1" / "qc").read_bytes())
    session.similar.scan(copy)
    assert names(session, "qc")[0] == ("moved", "symbols")


@pytest.mark.parametrize(
    ("job_id", "error"),
    [
        ("absent", NoResultError),
        ("nothing", NoResultError),
        (HOSTILE, NoResultError),
    ],
)
def test_what_cannot_be_answered_is_said(
    session: esjobs.Session, job_id: str, error: type[Exception]
) -> None:
    with raised(error):
        session.similar.programs(job_id)


def test_top_and_keywords(session: esjobs.Session) -> None:
    assert session.similar.programs("old", top=1).to_pandas()["job_id"].tolist() == ["again"]
    with raised(NoResultError):
        session.similar.programs("old", window="2020-01-01/2020-01-02")


def test_the_commands(tmp_path: Path) -> None:
    store = ["--store", f"duckdb:{tmp_path / 'jobs.duckdb'}"]
    with esjobs.open(store[1]) as opened:
        put_programs(opened, tmp_path)
    ran = CliRunner().invoke(main, [*store, "symbols", "scan", str(tmp_path / "1"), "--module", "m/1"])
    assert ran.exit_code == 0, ran.output
    ran = CliRunner().invoke(main, [*store, "similar", "old", "--static", "--top", "2"])
    assert ran.exit_code == 0, ran.output
    compare_text(ran.stderr)
    assert "md_" in ran.stdout
    assert "\x1b" not in ran.output
    both = CliRunner().invoke(main, [*store, "similar", "old", "--static", "--series", "ipc"])
    assert both.exit_code == 2
    absent = CliRunner().invoke(main, [*store, "symbols", "scan", str(tmp_path / "absent")])
    assert absent.exit_code == 1
