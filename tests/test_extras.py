"""The wheel in an environment with its own dependencies alone: what works, and what asks for an extra."""

import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = ("altair", "PIL", "elftools", "gensim", "opensearchpy", "botocore", "starlette", "uvicorn")

PLOT = """
import esjobs
with esjobs.open("duckdb:demo/demo.duckdb", read_only=True) as session:
    session.query(by="cpu_model").plot()
"""
LEARN = """
from esjobs.similar.learned import LearnedSimilarity
LearnedSimilarity([["main"]])
"""
PICTURE = """
from scheduler.notifications.picture import _drawn
_drawn([], 0.2, 0)
"""


def needed(requirements: list[str]) -> Iterator[str]:
    """Yield packages that requirements bring, without those of extras."""
    waiting, seen = list(requirements), set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = requirement.name.lower().replace("_", "-")
        if name in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        yield name
        waiting += distribution(name).requires or []


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment: the wheel, and links to its dependencies; and a demo."""
    home = tmp_path_factory.mktemp("bare")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    options = ["--quiet", "--no-deps", "--no-index"]
    wheel = [*pip, "wheel", *options, "--no-build-isolation", "--wheel-dir", str(home), str(ROOT)]
    subprocess.run(wheel, check=True)
    venv.create(home / "env", symlinks=True)
    (site,) = (home / "env" / "lib").glob("python*/site-packages")
    for name in needed(PROJECT["dependencies"]):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            target = Path(str(found.locate_file(top)))
            if not (site / top).exists():
                (site / top).symlink_to(target)
    python = str(home / "env" / "bin" / "python")
    (built,) = home.glob("esjobs-*.whl")
    subprocess.run([*pip, "--python", python, "install", *options, str(built)], check=True)
    done = run(home, "esjobs", "demo", "--jobs", "3000")
    assert done.returncode == 0, done.stderr
    return home


def run(bare: Path, program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the bare environment."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ESJOBS"))
    }
    return subprocess.run(
        [str(bare / "env" / "bin" / program), *arguments],
        cwd=bare,
        env={**inherited, "HOME": str(bare), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_dependencies_are_few() -> None:
    assert len(PROJECT["dependencies"]) <= 18


def test_the_environment_has_no_optional_library(bare: Path) -> None:
    """Else the other tests of this file would show nothing."""
    code = f"from importlib.util import find_spec; print([name for name in {OPTIONAL} if find_spec(name)])"
    assert run(bare, "python", "-c", code).stdout == "[]\n"


def test_every_module_that_needs_no_extra_is_imported(bare: Path) -> None:
    code = """
import importlib, pkgutil
import esjobs, dashboards, fitters, scheduler
for package in (esjobs, dashboards, fitters, scheduler):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.startswith("esjobs.testing") and not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except esjobs.MissingExtraError:
                print(module.name)
"""
    done = run(bare, "python", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["esjobs.store.elastic.transport.opensearch_client", "esjobs.web.app"]


@pytest.mark.parametrize(
    "command",
    [
        ("--help",),
        ("--version",),
        ("--store", "duckdb:demo/demo.duckdb", "show", "flags"),
        ("--store", "duckdb:demo/demo.duckdb", "query", "--by", "cpu_model"),
        ("--store", "duckdb:demo/demo.duckdb", "report", "--out", "report.html"),
        ("--store", "duckdb:demo/demo.duckdb", "doctor"),
    ],
    ids=" ".join,
)
def test_first_commands_need_no_extra(bare: Path, command: tuple[str, ...]) -> None:
    done = run(bare, "esjobs", *command)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("extra", "program", "arguments"),
    [
        ("programs", "esjobs", ("symbols", "scan", "env/bin/python")),
        ("opensearch", "esjobs", ("--store", "http://127.0.0.1:9", "show", "flags")),
        ("plots", "python", ("-c", PLOT)),
        ("programs", "python", ("-c", LEARN)),
        ("mail", "python", ("-c", PICTURE)),
        ("web", "esjobs", ("--store", "duckdb:demo/demo.duckdb", "web")),
    ],
)
def test_a_missing_extra_is_one_line(
    bare: Path, extra: str, program: str, arguments: tuple[str, ...]
) -> None:
    done = run(bare, program, *arguments, ESJOBS_CLUSTER__PRODUCT="opensearch")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.endswith(f"run: pip install 'esjobs[{extra}]'")
    assert "is not installed" in last
    if program == "esjobs":
        assert len(done.stderr.splitlines()) == 1
