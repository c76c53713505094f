"""Durations: tests over their budget are listed, none fails for it."""

from pathlib import Path

import pytest

from tests.durations import BUDGET_S, Durations, Spent, over_budget


def test_tests_over_their_budget_are_listed_by_processor_time() -> None:
    spent = {
        "a": Spent({"call": 100.0}, {"setup": 100.0, "call": BUDGET_S}),
        "b": Spent({}, {"call": BUDGET_S + 1}),
        "c": Spent({}, {"call": BUDGET_S + 2}),
        "slow": Spent({}, {"call": 1000.0}),
    }
    assert over_budget(spent, {"slow"}) == [("c", BUDGET_S + 2), ("b", BUDGET_S + 1)]


def test_the_file_has_every_test(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    written = []

    class Lines:
        def section(self, title: str) -> None:
            written.append(title)

        def write_line(self, line: str) -> None:
            written.append(line)

    measured = Durations(tmp_path / "below" / "durations.txt")
    for nodeid, seconds in (("a", 1.0), ("b", 100.0)):
        report = pytest.TestReport(nodeid, ("", 0, ""), {}, "passed", None, "call", processor_s=seconds)
        measured.pytest_runtest_logreport(report)
    measured.pytest_terminal_summary(Lines())  # type: ignore[arg-type]
    lines = (tmp_path / "below" / "durations.txt").read_text().splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["b", "a"]
    assert [line.split()[-1] for line in written[1:]] == ["b"]
