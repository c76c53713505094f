"""What the page for operators quotes of nights are reasons that the program or the system really gives."""

import ast
import errno
import os
import re
from pathlib import Path

import pytest

from esjobs.schema.catalogue import TABLES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operator.md").read_text()
TABLE = PAGE.split("## What alerts mean")[1].split("\n## ")[0]
QUOTED = [
    quoted
    for row in TABLE.splitlines()
    if row.startswith("| night ")
    for quoted in re.findall(r"`([^`]+)`", row.split("|")[1])
]
BY_THE_SYSTEM = {os.strerror(number) for number in (errno.ENOSPC, errno.EACCES, errno.EROFS)}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """All texts of the program but docstrings."""
    found = []
    for room in ("esjobs", "scheduler"):
        for path in (ROOT / room).rglob("*.py"):
            tree = ast.parse(path.read_text())
            said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
            found += [str(node.value) for node in constants if id(node) not in said]
    return found


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_quoted_reason_is_one_that_there_is(quoted: str, texts: list[str]) -> None:
    assert quoted in BY_THE_SYSTEM or any(quoted in text for text in texts)


def test_reasons_are_quoted() -> None:
    assert len(QUOTED) >= 10


def test_the_page_names_what_nobody_can_compute_again() -> None:
    told = PAGE.partition("cannot be computed again")[2].partition("everything else")[0]
    indices = {f"esjobs-{table.name.replace('_', '-')}" for table in TABLES if table.entered}
    assert set(re.findall(r"`(esjobs-[a-z-]+)`", told)) == indices
