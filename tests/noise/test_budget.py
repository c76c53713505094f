"""What a collector costs is kept, and told beside the scores that are made of what it collects."""

from pathlib import Path

import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import InputError, ReadOnlyError, UsageError
from tests.cli.running import run
from tests.conftest import NOW
from tests.messages import compare_text, raised
from tests.noise.runs import recorded
from tests.scores.made_jobs import made_jobs, put_all

CONFIGURED = "level,seconds,collective,bytes,count,ranks\n"


def configured(path: Path, seconds: list[float], collective: str = "alltoall", ranks: str = "28") -> Path:
    lines = [f"0,{each},{collective},2048,100,{ranks}" for each in seconds]
    path.write_text(CONFIGURED + "\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    off, on = [100.0, 100.1, 99.9, 100.05], [101.0, 101.1, 100.9, 101.05]
    return configured(tmp_path / "off.csv", off), configured(tmp_path / "on.csv", on)


def test_a_cost_is_replaced_by_that_of_the_same_configuration(
    session: Session, files: tuple[Path, Path], tmp_path: Path
) -> None:
    off, on = files
    session.noise.keep("ldms", off, off)
    session.noise.keep(" ldms ", off, on)
    session.noise.keep("other", off, on)
    more = [configured(tmp_path / f"{name}.csv", [50.0, 50.1, 50.2], ranks="56") for name in ("a", "b")]
    session.noise.keep("ldms", *more)
    rows = session.tables.noise_costs().rows.to_pylist()
    assert [(row["collector"], row["ranks"], row["verdict"]) for row in rows] == [
        ("ldms", 28, "seen"),
        ("ldms", 56, "not seen"),
        ("other", 28, "seen"),
    ]
    assert rows[0]["cost_frac"] == pytest.approx(0.01, rel=0.01)
    assert rows[0]["low_frac"] < 0.01 < rows[0]["high_frac"]
    assert rows[0]["entered_at"] == NOW
    told = session.noise.sentences()
    assert told[0].startswith("ldms: the collector costs 1.0 % of the time (")
    assert told[0].endswith(", timed by alltoall of 2,048 B on 28 ranks")
    assert "below the detection limit of this test" in told[1]


def test_it_is_told_beside_scores(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESJOBS_STORE", f"duckdb:{tmp_path}/jobs.duckdb")
    with esjobs.open(f"duckdb:{tmp_path}/jobs.duckdb") as session:
        put_all(session.store, made_jobs(30))
        session.scores.compute()
    before = run("rank", "--by", "user")
    assert "cost of monitoring" not in before.stderr
    kept = run("noise", "compare", *map(str, files), "--collector", "ldms")
    assert kept.exit_code == 0, kept.stderr
    for command in (("rank", "--by", "user"), ("show", "scores")):
        told = run(*command)
        assert told.exit_code == 0, told.stderr
        compare_text(told.stderr)
        assert "cost of monitoring" not in told.output.replace(told.stderr, "")
        assert "cost of monitoring" not in run("-q", *command).stderr
    with esjobs.open(f"duckdb:{tmp_path}/jobs.duckdb") as session:
        page = session.job("7").html
    assert "cost of monitoring" in page
    assert "cost of monitoring" in run("job", "7").output


def test_what_is_wrong_is_refused_and_nothing_written(
    session: Session, files: tuple[Path, Path], tmp_path: Path
) -> None:
    off, on = files
    for name in ("", "  ", "x" * 201, "a\nb", "\ud800"):
        with raised(UsageError):
            session.noise.keep(name, off, on)
    other = configured(tmp_path / "barrier.csv", [1.0, 1.1], "barrier")
    with raised(InputError):
        session.noise.keep("x", off, other)
    single = configured(tmp_path / "one.csv", [1.0])
    with raised(InputError):
        session.noise.keep("x", single, on)
    with pytest.raises(ReadOnlyError):
        Session(session.store, session.settings, read_only=True).noise.keep("x", off, on)
    assert session.noise.sentences() == ()


def test_odd_configurations_are_kept_as_text(session: Session, tmp_path: Path) -> None:
    odd = "<img onerror=x>" + "\u202e" + "y" * 500
    off, on = (configured(tmp_path / f"{name}.csv", [1.0, 1.1, 1.2], odd, "many") for name in ("off", "on"))
    session.noise.keep("ldms", off, on)
    (row,) = session.tables.noise_costs().rows.to_pylist()
    assert row["collective"] == odd[:200]
    assert row["ranks"] is None
    (told,) = session.noise.sentences()
    assert "\u202e" not in told


def test_files_that_do_not_say_how_they_were_made(session: Session, tmp_path: Path) -> None:
    off = recorded(tmp_path / "off.csv", {0: 1})
    session.noise.keep("ldms", off, recorded(tmp_path / "on.csv", {0: 1.01}, seed=2))
    (told,) = session.noise.sentences()
    assert told.endswith("99 %)")
    (row,) = session.tables.noise_costs().rows.to_pylist()
    assert (row["collective"], row["bytes"], row["ranks"]) == (None, None, None)
