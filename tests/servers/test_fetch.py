"""The cache of unpacked servers is filled once, and what lies in it is whole."""

import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.messages import raised
from tests.servers.account import Account
from tests.servers.fetch import cache_folder, unpacked
from tests.servers.missing import MissingToolError
from tests.servers.products import PRODUCTS

PRODUCT = PRODUCTS["opensearch2"]
SELF = Account(None)


def fake_maven(folder: Path, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "mvn").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / "mvn").chmod(0o755)


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for Maven that writes its calls into this file, beside an empty cache."""
    archive, calls = tmp_path / "archive.zip", tmp_path / "calls"
    with zipfile.ZipFile(archive, "w") as file:
        script = zipfile.ZipInfo(f"{PRODUCT.folder_name}/bin/opensearch")
        script.external_attr = 0o100755 << 16
        file.writestr(script, "#!/bin/sh\n")
        file.writestr(f"{PRODUCT.folder_name}/lib/whole.jar", "whole")
    copy = f'case $a in -DoutputDirectory=*) cp {archive} "${{a#*=}}/{PRODUCT.folder_name}.zip";; esac'
    fake_maven(tmp_path / "bin", f'echo "$@" >> {calls}; sleep 0.1; for a in "$@"; do {copy}; done')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return calls


def test_it_is_fetched_once_and_can_be_run(calls: Path) -> None:
    first = unpacked(PRODUCT, SELF)
    assert unpacked(PRODUCT, SELF) == first
    assert os.access(first / "bin" / "opensearch", os.X_OK)
    get, copy = calls.read_text(encoding="utf-8").splitlines()
    assert f"dependency:get -Dtransitive=false -Dartifact={PRODUCT.artifact}" in get
    assert "dependency:copy" in copy


def test_several_at_once_fetch_once(calls: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: unpacked(PRODUCT, SELF), range(4)))
    assert len(found) == 1
    assert len(calls.read_text(encoding="utf-8").splitlines()) == 2


def test_what_was_half_unpacked_is_thrown_away(calls: Path) -> None:
    half = cache_folder() / f"{PRODUCT.folder_name}.part-1" / "tree" / PRODUCT.folder_name / "lib"
    half.mkdir(parents=True)
    place = unpacked(PRODUCT, SELF)
    assert (place / "lib" / "whole.jar").read_text(encoding="utf-8") == "whole"
    assert {path.name for path in cache_folder().iterdir()} == {place.name, f"{place.name}.lock"}


def test_a_failed_download_says_why_and_leaves_nothing(calls: Path, tmp_path: Path) -> None:
    fake_maven(tmp_path / "bin", "echo 'Could not transfer artifact'; exit 1")
    with raised(MissingToolError):
        unpacked(PRODUCT, SELF)
    assert [path.suffix for path in cache_folder().iterdir()] == [".lock"]


def test_without_maven_the_package_is_named(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with raised(MissingToolError):
        unpacked(PRODUCT, SELF)
