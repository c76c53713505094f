"""Commands at once on a file: one works, the other is told who does, nothing is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from esjobs.schema.jobs import BUCKETS
from tests.races.commands import Place
from tests.races.rounds import Installation

ROUNDS = [
    (("ingest", "run"), "mixed", 1),
    (("ingest", "undo"), "killed", 2),
    (("rebuild", "rebuild"), "killed", 3),
    (("corepower", "flag"), "mixed", 4),
    (("prune", "fit"), "killed", 5),
    (("ingest", "ingest", "aggregate", "run"), "mixed", 6),
]
"""Some of the pairs; ``benchmarks.races`` plays all of them, many times."""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("races")
    played = Installation(Place(f"duckdb:{folder / 'jobs.duckdb'}"), folder)
    yield played
    played.close()


@pytest.mark.parametrize(("commands", "mode", "seed"), ROUNDS, ids=str)
def test_at_once(installation: Installation, commands: tuple[str, ...], mode: str, seed: int) -> None:
    played = installation.play(commands, mode, seed)
    assert played.faults == []


def test_what_is_lost_is_noticed(tmp_path: Path) -> None:
    """The checks of a round can fail: a load that vanishes, and buckets that do."""
    installation = Installation(Place(f"duckdb:{tmp_path / 'jobs.duckdb'}"), tmp_path)
    assert installation.play(("ingest",), "mixed", 1).faults == []
    with installation.place.open() as session:
        session.undo(session.tables.loads().to_pandas()["load_id"].iloc[0])
    assert "jobs differ" in installation.play(("flag",), "mixed", 2).faults
    with installation.place.open() as session:
        written = session.store.replace(BUCKETS, "2018-08-10", [])
        session.store.publish([written])
    (fault,) = installation.play(("corepower",), "mixed", 3).faults
    assert "bucket counts differ from the recorded ones" in fault
    installation.close()
