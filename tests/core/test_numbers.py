"""One way to write numbers for people: nobody below has one of his own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from esjobs.core.numbers import amount, core_h, duration, percent, signed_percent

ROOT = Path(__file__).parents[2]
OWN = "esjobs/core/numbers.py"

EXCEPTIONS = {
    "dashboards/targets/vegalite/tasks.py": "an expression of Vega, evaluated in the browser",
    "esjobs/similar/evaluation.py": "names of columns",
    "esjobs/records/jobs/questions/bin_names.py": "edges of bins, with as many digits as tell them apart",
    "esjobs/pop/text.py": "hundredths of seconds beside each other",
}
"""Files with formats of their own, and why."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for room in ("esjobs", "dashboards", "scheduler"):
        for path in sorted((ROOT / room).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def own_formats(tree: ast.AST) -> Iterator[int]:
    """Lines with percents or thousands of fractions in a format of their own; counts are ``{n:,}``."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FormattedValue):
            continue
        spec = "" if node.format_spec is None else ast.unparse(node.format_spec)
        is_percent = (
            isinstance(node.value, ast.BinOp)
            and isinstance(node.value.op, ast.Mult)
            and any(
                isinstance(side, ast.Constant) and side.value == 100
                for side in (node.value.left, node.value.right)
            )
        )
        if "%'" in spec or is_percent or ",." in spec:
            yield node.lineno


def test_nobody_has_a_format_of_his_own() -> None:
    found = {path: list(own_formats(tree)) for path, tree in modules() if path != OWN}
    assert {path: lines for path, lines in found.items() if lines and path not in EXCEPTIONS} == {}


@pytest.mark.parametrize("line", ['f"{100 * x:.0f} %"', 'f"{x:.0%}"', 'f"{x:,.2f}"', 'f"{x * 100} %"'])
def test_a_format_of_ones_own_is_found(line: str) -> None:
    assert list(own_formats(ast.parse(line)))
    assert not list(own_formats(ast.parse('f"{n:,} jobs, {x:.4g}, {percent(x)}"')))


def test_a_minus_is_a_minus_and_a_zero_has_no_sign() -> None:
    texts = [signed_percent(-0.3), amount(-2.5), amount(-1e6), duration(-200), core_h(-12.0, "h")]
    assert all(text.startswith("−") and "-" not in text for text in texts)
    assert {signed_percent(value) for value in (0.0, -0.0, -1e-5, 1e-5)} == {"0 %"}


def test_digits_of_percents_follow_one_rule() -> None:
    assert [percent(value) for value in (0.0994, 0.0996, 0.005, 1.234, 12.5)] == [
        *("9.9 %", "10 %", "0.5 %", "123 %", "1,250 %"),
    ]
    # with an error its size decides, for both
    assert signed_percent(0.04, 0.02) == "+4 ± 2 %"
    assert signed_percent(0.43, 0.004) == "+43.0 ± 0.4 %"
