"""Rules against labelled jobs: counted by hand from what detecting finds."""

from pathlib import Path

import pytest

import esjobs
from esjobs.core.errors import InputError, NoResultError
from esjobs.core.rates import wilson
from tests.issues.made_jobs import busy, cores, put_records, put_series, record
from tests.messages import raised


@pytest.fixture
def detected(session: esjobs.Session, tmp_path: Path) -> esjobs.Session:
    """Eight jobs: the first four with half of their cores idle."""
    put_records(session, tmp_path, [record(str(number)) for number in range(8)])
    loads = {
        number: [busy(0) if number < 4 and core < 2 else busy() for core in range(4)] for number in range(8)
    }
    put_series(session, {str(number): cores(load) for number, load in loads.items()})
    session.issues.detect()
    return session


def labels(folder: Path, *rows: str) -> Path:
    path = folder / "labels.csv"
    path.write_text("\n".join(["job_id,rule", *rows]) + "\n")
    return path


def test_precision_and_recall_are_those_of_a_count(detected: esjobs.Session, tmp_path: Path) -> None:
    # 0 to 2 are right, 3 is false, 5 is missed; 7 has no label
    path = labels(tmp_path, "0,cpu-idle", "1,cpu-idle", "2,cpu-idle", "3,", "4,", "5,cpu-idle", "6,", "99,")
    answer = detected.issues.replay(labels=path)
    (row,) = answer
    assert answer.notes == ("1 of 8 labelled jobs were not examined",)
    assert (row["rule"], row["n_jobs"]) == ("cpu-idle", 7)
    assert (row["n_labelled"], row["n_flagged"], row["n_right"]) == (4, 4, 3)
    assert (row["precision"], row["recall"]) == (0.75, 0.75)
    low, high = wilson(0.75, 4.0)  # type: ignore[arg-type]
    assert (row["precision_low"], row["recall_high"]) == (pytest.approx(low), pytest.approx(high))
    assert (row["missed"], row["false"]) == ("c/5", "c/3")


def test_rules_of_a_file_are_judged(detected: esjobs.Session, tmp_path: Path) -> None:
    blind = tmp_path / "blind.toml"
    blind.write_text("[rule.cpu-idle]\nlimits.idle = 0.9\n")
    (row,) = detected.issues.replay(blind, labels=labels(tmp_path, "0,cpu-idle", "6,"))
    assert (row["n_flagged"], row["precision"], row["recall"]) == (0, None, 0.0)
    assert (row["recall_low"], row["missed"]) == (0.0, "c/0")


def test_wrong_labels(detected: esjobs.Session, tmp_path: Path) -> None:
    for rows in (["0,cpu-idel"], [",cpu-idle"], []):
        with raised(InputError):
            detected.issues.replay(labels=labels(tmp_path, *rows))
    with raised(NoResultError):
        detected.issues.replay(labels=labels(tmp_path, "nobody,cpu-idle"))
