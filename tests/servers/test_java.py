"""Each server gets the newest JDK that it runs on, wherever it is installed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.messages import raised
from tests.servers import java
from tests.servers.account import Account
from tests.servers.java import installed_javas, java_home
from tests.servers.missing import MissingToolError, skip_or_fail
from tests.servers.products import PRODUCTS

SELF = Account(None)
MakeJdk = Callable[..., Path]


@pytest.fixture
def jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeJdk]:
    """Installs stand-ins for JDKs on a machine that has none."""

    def make(version: str, parent: str = "jvm", status: int = 0) -> Path:
        home = tmp_path / parent / f"jdk-{version}"
        (home / "bin").mkdir(parents=True)
        program = home / "bin" / "java"
        script = f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\nexit {status}\n"
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)
        return home

    monkeypatch.setattr(java, "JVM_FOLDER", tmp_path / "jvm")
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    installed_javas.cache_clear()
    yield make
    installed_javas.cache_clear()


def test_the_newest_that_suits(jdk: MakeJdk) -> None:
    homes = {version: jdk(version) for version in ("1.8.0_402", "11.0.1", "17.0.15", "21", "25.0.3")}
    assert java_home(PRODUCTS["elasticsearch9"], SELF) == homes["25.0.3"]
    assert java_home(PRODUCTS["opensearch2"], SELF) == homes["21"]


def test_elsewhere(jdk: MakeJdk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path, named = jdk("17.0.1", "opt"), jdk("21.0.1", "home")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java_home(PRODUCTS["elasticsearch8"], SELF) == on_path
    installed_javas.cache_clear()
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert java_home(PRODUCTS["elasticsearch8"], SELF) == named


def test_one_that_does_not_start_is_passed_over(jdk: MakeJdk) -> None:
    jdk("25", status=1)
    older = jdk("17.0.15")
    assert java_home(PRODUCTS["elasticsearch8"], SELF) == older


def test_too_old_says_what_to_install(jdk: MakeJdk) -> None:
    jdk("17.0.15")
    with raised(MissingToolError):
        java_home(PRODUCTS["elasticsearch9"], SELF)


def test_none_names_the_package(jdk: MakeJdk) -> None:
    with raised(MissingToolError):
        java_home(PRODUCTS["opensearch2"], SELF)


def test_what_is_missing_is_skipped_but_not_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="Maven is missing"):
        skip_or_fail(MissingToolError("Maven is missing"))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Maven is missing"):
        skip_or_fail(MissingToolError("Maven is missing"))
