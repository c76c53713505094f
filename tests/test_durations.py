"""Durations: tests over their budget are listed, none fails for it."""

from pathlib import Path

from tests.durations import BUDGET_S, SERVER_BUDGET_S, Durations, over_budget


def test_tests_over_their_budget_are_listed_longest_first() -> None:
    seconds = {
        "a": {"setup": 100.0, "call": BUDGET_S},
        "b": {"call": BUDGET_S + 1},
        "b[opensearch3]": {"call": BUDGET_S + 1},
        "c[opensearch3]": {"call": SERVER_BUDGET_S + 1},
        "slow": {"call": 1000.0},
    }
    assert over_budget(seconds, {"slow"}) == [
        ("c[opensearch3]", SERVER_BUDGET_S + 1),
        ("b", BUDGET_S + 1),
    ]


def test_the_file_has_every_test(tmp_path: Path) -> None:
    class Lines:
        def __init__(self) -> None:
            self.written: list[str] = []

        def section(self, title: str) -> None:
            self.written.append(title)

        def write_line(self, line: str) -> None:
            self.written.append(line)

    path, lines = tmp_path / "below" / "durations.txt", Lines()
    measured = Durations(path)
    measured.seconds = {"a": {"call": 1.0}, "b": {"setup": 1.0, "call": 100.0}}
    measured.pytest_terminal_summary(lines)  # type: ignore[arg-type]
    assert [line.split()[-1] for line in path.read_text().splitlines()[1:]] == ["b", "a"]
    assert [line.split()[-1] for line in lines.written[1:]] == ["b"]
