"""What scripts rely on: columns, commands with options, names of Python. Nothing of it goes without a word.

``pytest --update-golden`` writes ``tests/golden/surface.txt`` anew; a line that is gone must be named in the
change log.
"""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.cli.main import main
from esjobs.schema.catalogue import TABLES

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "surface.txt"


def surface() -> list[str]:
    """One line for each thing that a script can name."""
    columns = (f"column {table.name}.{each.name} {each.type}" for table in TABLES for each in table.columns)
    names = (f"python esjobs.{name}" for name in esjobs.__all__)
    return sorted({*columns, *names, *methods(), *options(main, "esjobs")})


def methods() -> Iterator[str]:
    with esjobs.open("duckdb::memory:") as session:
        for name in dir(session):
            if name.startswith("_"):
                continue
            found = getattr(type(session), name, None)
            if inspect.isfunction(found):
                yield f"python s.{name}({parameters(found)})"
            elif type(facade := getattr(session, name)).__module__.startswith(("esjobs", "scheduler")):
                for inner, function in inspect.getmembers(type(facade), inspect.isfunction):
                    if not inner.startswith("_"):
                        yield f"python s.{name}.{inner}({parameters(function)})"


def parameters(function: object) -> str:
    assert callable(function)
    return ", ".join(name for name in inspect.signature(function).parameters if name != "self")


def options(command: click.Command, path: str) -> Iterator[str]:
    context = click.Context(command)
    for each in command.get_params(context):
        if isinstance(each, click.Option) and not each.hidden:
            yield from (f"command {path} {name}" for name in (*each.opts, *each.secondary_opts))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield f"command {path} {name}"
            yield from options(inner, f"{path} {name}")


@pytest.fixture(scope="module")
def now() -> list[str]:
    """The surface in a process of its own: commands that have run have further options."""
    program = "from tests.test_surface import surface; print(*surface(), sep=chr(10))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True, timeout=300
    )
    return done.stdout.splitlines()


def test_nothing_that_scripts_use_goes_unannounced(now: list[str], request: pytest.FixtureRequest) -> None:
    before = GOLDEN.read_text().splitlines() if GOLDEN.exists() else []
    changes = (ROOT / "CHANGELOG.md").read_text()
    unannounced = [
        line
        for line in set(before) - set(now)
        if re.split(r"[ .(]", line.partition("(")[0])[-1] not in changes
    ]
    assert unannounced == [], "name them in the change log"
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text("\n".join(now) + "\n")
    else:
        assert now == before, "new names: run it with --update-golden and look at the diff"


def test_the_session_is_among_it(now: list[str]) -> None:
    assert any(line.startswith("python s.query(") for line in now)
    assert Session.__name__ in esjobs.__all__
