"""The page about faults has a row for each fault that a test makes, and no other."""

from pathlib import Path

from tests.elastic.table import rows

PAGE = Path(__file__).parent / "faults.md"


def test_the_page_says_what_the_tests_do() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    written = [line for line in lines if line.startswith("| ") and not line.startswith("| what was done")]
    tested = [str(row) for row in rows()]
    assert len(set(tested)) == len(tested)
    assert sorted(written) == sorted(tested), f"{PAGE} is stale"
