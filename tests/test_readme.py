"""What the README says one can type runs as it stands, on a small demo of the same grid."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from esjobs.cli.demo import demonstrate

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL))
SETTING, *QUESTIONS = BLOCKS["sh"].splitlines()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as it is after ``make demo``: the demo and the commands in an environment."""
    folder = tmp_path_factory.mktemp("checkout")
    demonstrate(folder / "demo", jobs=20_000, seed=1)
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    return folder


def typed(script: str, folder: Path) -> str:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 100
    assert len(QUESTIONS) == 5


@pytest.mark.slow
def test_the_lines_of_python_run(checkout: Path) -> None:
    out = typed(f"{sys.executable} - <<'END'\n{BLOCKS['python']}END\n", checkout)
    assert "2025-W25" in out


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_questions_are_answered(checkout: Path, question: str) -> None:
    rows = typed(f"{SETTING}\n{question}", checkout).splitlines()
    assert len(rows) > 2
    for words, name in (("show flags", "TAMARIND-HEP_HIMEM"), ("--compare previous", "EBONY-LCG2")):
        if words in question:
            assert rows[2].startswith(name)
