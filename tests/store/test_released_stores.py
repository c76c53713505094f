"""Stores that a released version wrote open in this one, say the same, and can be worked on.

``pytest tests/store/test_released_stores.py --update-golden`` adds the store of this version, if it has none
yet; the file of a released version is never written again.
"""

import json
import lzma
from pathlib import Path

import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.records.demo import Grid

STORES = Path(__file__).parents[1] / "golden" / "stores"
RELEASED = sorted(each.name.removesuffix(".duckdb.xz") for each in STORES.glob("*.duckdb.xz"))
N_JOBS = 2010  # 67 a day
SHOWN = ["name", "verdict", "k", "k_err", "deviation", "confirmed"]


def load(session: Session) -> None:
    grid = Grid.of_size(N_JOBS, seed=1, n_queues=20)
    session.store.put_jobs((batch for day in grid.days(N_JOBS) for batch in grid.jobs(day)), "made up")


def verdicts(session: Session) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = (
        session.flags.verdicts().to_arrow().select(SHOWN).sort_by("name").to_pylist()
    )
    return rows


def kept(version: str) -> list[dict[str, object]]:
    rows = json.loads((STORES / f"{version}.json").read_text())
    return [{name: near(value) for name, value in row.items()} for row in rows]


def near(value: object) -> object:
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


@pytest.fixture(params=RELEASED)
def released(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A version, and a copy of the store that it wrote."""
    path = tmp_path / "store.duckdb"
    path.write_bytes(lzma.decompress((STORES / f"{request.param}.duckdb.xz").read_bytes()))
    return request.param, path


def test_it_is_read_as_it_is(released: tuple[str, Path]) -> None:
    version, path = released
    before = path.read_bytes()
    with esjobs.open(f"duckdb:{path}", read_only=True) as session:
        assert verdicts(session) == kept(version)
        assert session.query(metrics=["jobs"]).to_pandas()["jobs"].tolist() == [N_JOBS]
        for table in ("buckets", "factors", "fits", "lines", "residuals", "runs"):
            assert len(session.tables.read(table)) > 0
    assert path.read_bytes() == before


def test_work_goes_on_in_it(released: tuple[str, Path]) -> None:
    version, path = released
    with esjobs.open(f"duckdb:{path}") as session:
        load(session)
        assert session.query(metrics=["jobs"]).to_pandas()["jobs"].tolist() == [N_JOBS]
        session.run(rebuild=True)
        assert verdicts(session) == kept(version)


def test_this_version_has_a_store(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    packed = STORES / f"{esjobs.__version__}.duckdb.xz"
    if request.config.getoption("update_golden") and not packed.exists():
        path = tmp_path / "store.duckdb"
        with esjobs.open(f"duckdb:{path}") as session:
            load(session)
            session.run()
            rows = verdicts(session)
        STORES.mkdir(exist_ok=True)
        packed.write_bytes(lzma.compress(path.read_bytes(), preset=9))
        (STORES / f"{esjobs.__version__}.json").write_text(json.dumps(rows, indent=1) + "\n")
    assert packed.exists(), "write it before the release: --update-golden"
