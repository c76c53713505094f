"""The folder of compiled code: the user's own, never the installed package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fitters
from fitters.compiled import cache_folder


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_folder_is_below_the_users_cache(home: Path) -> None:
    folder = cache_folder()
    assert folder is not None
    assert folder.parent == home / ".cache" / "esjobs"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_write_is_not_used(home: Path) -> None:
    folder = cache_folder()
    assert folder is not None
    folder.chmod(0o770)
    assert cache_folder() is None


def test_a_file_in_its_place_means_no_cache(home: Path) -> None:
    (home / ".cache").write_text("")
    assert cache_folder() is None


def test_the_users_choice_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/chosen")
    assert cache_folder() == Path("/chosen")


def test_a_fit_compiles_once_and_leaves_nothing_in_the_package(home: Path) -> None:
    code = """
import numba
import fitters
columns = {"jobs": [5.0] * 4, "rel_var": [0.01] * 4}
buckets = fitters.Buckets.from_columns([1, 1, 2, 2], ["A", "B"] * 2, [1.0, 2.0, 1.1, 2.1], **columns)
fitters.fit_speed_factors(buckets)
assert not numba.config.CACHE_DIR
"""
    package = Path(fitters.__file__).parent
    before = set(package.rglob("*.nb?"))
    kept = []
    for _ in range(2):
        subprocess.run([sys.executable, "-W", "error", "-c", code], env=dict(os.environ), check=True)
        kept.append({path: path.stat().st_mtime_ns for path in home.rglob("*.nb?")})
    assert kept[0]
    assert kept[1] == kept[0]
    assert set(package.rglob("*.nb?")) == before
