"""Durations of the tests: all of them in a file, and a list of those that take longer than their budget.

A budget is processor time of the body of a test and of the processes that it waits for, so that other work on
the machine does not count; neither does what a test shares with others. Servers are processes of their own,
whose time is not seen. A test over its budget never fails: make it cheaper, or mark it ``slow``.
"""

import os
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

BUDGET_S = 3.0
"""Processor time that a test may take if it is not marked ``slow``."""

PHASES = ("setup", "call", "teardown")


@dataclass
class Spent:
    """Seconds of a test by phase: of the clock, and of processors."""

    clock_s: dict[str, float] = field(default_factory=dict)
    processor_s: dict[str, float] = field(default_factory=dict)


class Durations:
    """Seconds of each test, and the tests marked ``slow``."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.spent: dict[str, Spent] = defaultdict(Spent)
        self.slow: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test; with pytest-xdist in the process that collects the reports."""
        spent = self.spent[report.nodeid]
        spent.clock_s[report.when] = report.duration
        spent.processor_s[report.when] = getattr(report, "processor_s", 0.0)
        if "slow" in report.keywords:
            self.slow.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the file, and list the tests over their budget."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(durations_text(self.spent), encoding="utf-8")
        over = over_budget(self.spent, self.slow)
        if over:
            terminalreporter.section("over budget, not marked slow")
            for nodeid, seconds in over:
                terminalreporter.write_line(f"{seconds:7.1f} s  {nodeid}")


def durations_text(spent: dict[str, Spent]) -> str:
    """Return a table of all tests, those that take most processor time first.

    >>> print(durations_text({"a": Spent({"call": 2.0}, {"setup": 1.0, "call": 0.5})}), end="")
    processor_s  setup  call  teardown  clock_s  test
    1.50  1.00  0.50  0.00  2.00  a
    """
    lines = ["processor_s  setup  call  teardown  clock_s  test"]
    for nodeid, each in sorted(spent.items(), key=lambda pair: -sum(pair[1].processor_s.values())):
        phases = [each.processor_s.get(when, 0.0) for when in PHASES]
        numbers = [sum(phases), *phases, sum(each.clock_s.values())]
        lines.append("  ".join([*(f"{number:.2f}" for number in numbers), nodeid]))
    return "\n".join(lines) + "\n"


def over_budget(spent: dict[str, Spent], slow: set[str]) -> list[tuple[str, float]]:
    """Return tests that are not slow and took more than the budget, those that took most first."""
    found = []
    for nodeid, each in spent.items():
        seconds = each.processor_s.get("call", 0.0)
        if nodeid not in slow and seconds > BUDGET_S:
            found.append((nodeid, seconds))
    return sorted(found, key=lambda pair: -pair[1])


class _Meter:
    """Processor time since the last reading, of this process and of the children that it waited for."""

    def __init__(self) -> None:
        self.last = self._now()

    def read(self) -> float:
        now = self._now()
        passed, self.last = now - self.last, now
        return passed

    def _now(self) -> float:
        return sum(os.times()[:4])


_METER = _Meter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the processor time of a phase to its report, which pytest-xdist carries to where it is read."""
    report = yield
    vars(report)["processor_s"] = _METER.read()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart() -> None:
    """Begin with a test."""
    _METER.read()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--durations-file", type=Path, help="write the seconds of all tests to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Measure in the process that reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config.getoption("durations_file")))
