"""Durations of the tests: all of them in a file, and a list of those that take longer than their budget.

A budget is for the body of a test, on a machine that does nothing else; what a test shares with others is not
counted. A test over its budget never fails: make it cheaper, or mark it ``slow``.
"""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.servers.vendors import vendor_of

BUDGET_S = 5.0
SERVER_BUDGET_S = 10.0
"""A test that is not marked ``slow`` should take less; with a server, that is started already."""


class Durations:
    """Seconds of each test by phase, and the tests marked ``slow``."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.seconds: dict[str, dict[str, float]] = defaultdict(dict)
        self.slow: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test; with pytest-xdist in the process that collects the reports."""
        self.seconds[report.nodeid][report.when] = report.duration
        if "slow" in report.keywords:
            self.slow.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the file, and list the tests over their budget, longest first."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(durations_text(self.seconds), encoding="utf-8")
        over = over_budget(self.seconds, self.slow)
        if over:
            terminalreporter.section("over budget, not marked slow")
            for nodeid, seconds in over:
                terminalreporter.write_line(f"{seconds:7.1f} s  {nodeid}")


def durations_text(seconds: dict[str, dict[str, float]]) -> str:
    """Return a table of all tests, longest first: total, setup, body, teardown in seconds, id.

    >>> print(durations_text({"a": {"setup": 1.0, "call": 0.5}}), end="")
    total  setup  call  teardown  test
    1.50  1.00  0.50  0.00  a
    """
    lines = ["total  setup  call  teardown  test"]
    for nodeid, phases in sorted(seconds.items(), key=lambda each: -sum(each[1].values())):
        columns = [sum(phases.values()), *(phases.get(when, 0.0) for when in ("setup", "call", "teardown"))]
        lines.append("  ".join([*(f"{each:.2f}" for each in columns), nodeid]))
    return "\n".join(lines) + "\n"


def over_budget(seconds: dict[str, dict[str, float]], slow: set[str]) -> list[tuple[str, float]]:
    """Return tests that are not slow and took longer than their budget, longest first."""
    found = []
    for nodeid, phases in seconds.items():
        budget = BUDGET_S if vendor_of(nodeid) is None else SERVER_BUDGET_S
        if nodeid not in slow and phases.get("call", 0.0) > budget:
            found.append((nodeid, phases["call"]))
    return sorted(found, key=lambda each: -each[1])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--durations-file", type=Path, help="write the seconds of all tests to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Measure in the process that reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config.getoption("durations_file")))
