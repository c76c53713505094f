"""Files of rules: what is refused, with file, line and reason; how a file changes others; null logic."""

import re
from pathlib import Path

import numpy as np
import pytest

from esjobs.core.errors import InputError
from esjobs.issues.rules.expressions import ExpressionError, read_expression
from esjobs.issues.rules.hints import read_hint
from esjobs.issues.rules.listing import change_lines, changes
from esjobs.issues.rules.reading import read_rules
from tests.messages import raised

GOOD = """
[rule.mine]
area = "cpu"
value = "cpu_load.mean"
limits = { load = "50 %" }
when = "value < load and user == 'bob'"
severity = "minor"
hint = "{user} used {value:percent}"
"""


def written(folder: Path, text: str, name: str = "site.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    path = written(folder, text)
    with raised(InputError) as refused:
        read_rules([path])
    message = str(refused.value)
    assert message.startswith(str(path))
    return message


def test_the_rules_that_come_with_it_can_be_read() -> None:
    rules = read_rules()
    names = {rule.name for rule in rules.rules}
    assert {
        "memory-bound",
        "compute-bound",
        "gpu-bound",
        "io-heavy",
        "network-heavy",
        "unrestrained",
    } <= names
    assert {"memory-leak", "io-blocking", "sync-offloading", "metadata-congestion", "collapse"} <= names
    assert all(rule.hint.text and rule.meaning for rule in rules.rules)


def test_every_detector_has_a_rule() -> None:
    from esjobs.issues.catalogue import DETECTORS

    assert {rule.detector for rule in read_rules().rules if rule.detector} == {
        each.name for each in DETECTORS
    }


def test_a_file_adds_rules_and_changes_single_keys(tmp_path: Path) -> None:
    text = GOOD + "\n[rule.cpu-imbalance]\nlimits.deviation = 0.3\n[rule.short-job]\nenabled = false\n"
    usual, changed = read_rules(), read_rules([written(tmp_path, text)])
    before, after = usual.rule("cpu-imbalance"), changed.rule("cpu-imbalance")
    assert before is not None
    assert after is not None
    assert (before.limits["deviation"], after.limits["deviation"]) == (0.2, 0.3)
    assert after.hint == before.hint
    assert changed.rule("short-job") is None
    assert changed.rule("mine") is not None
    assert changed.digest != usual.digest
    assert read_rules().digest == usual.digest


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("value < load", "value <"), 6),
        (("cpu_load.mean", "cpu_loda.mean"), 4),
        (("cpu_load.mean", "cpu_load.middle"), 4),
        (("user ==", "usr =="), 6),
        (("== 'bob'", "> 'bob'"), 6),
        (("== 'bob'", "== 3"), 6),
        (("user == 'bob'", "cores"), 6),
        (("user == 'bob'", "cores ** 9 > 1"), 6),
        (("user == 'bob'", "cores > 1e999"), 6),
        (("user == 'bob'", "user.upper() == 'B'"), 6),
        (("user == 'bob'", "__import__('os') == 1"), 6),
        (("user == 'bob'", "(" * 250 + "cores" + ")" * 250 + " > 1"), 6),
        (("user == 'bob'", "not " * 200 + "smt"), 6),
        (("user == 'bob'", "cores > " + "9" * 5000), 6),
        (('"50 %"', '"50 kg"'), 5),
        (('"50 %"', '"fifty"'), 5),
        (('"50 %"', "true"), 5),
        (('"50 %"', "inf"), 5),
        (("load =", "cores ="), 5),
        (('"50 %" }', '"50 %", other = 1 }'), 5),
        (('area = "cpu"', 'area = "disk"'), 3),
        (('severity = "minor"', 'severity = "bad"'), 7),
        (('severity = "minor"', "severity = { minor = 1 }"), 7),
        (
            ('severity = "minor"', 'severity = { of = "cores", minor = 1, major = 9, critical = 5 }'),
            7,
        ),
        (("{value:percent}", "{vaule:percent}"), 8),
        (("{value:percent}", "{value:furlongs}"), 8),
        (("{value:percent}", "{value.real}"), 8),
        (("{value:percent}", "{value!r}"), 8),
        (("{value:percent}", "{"), 8),
        (("[rule.mine]", '[rule.mine]\ndetector = "cpu-idel"'), 3),
        (("[rule.mine]", '[rule.mine]\nthreshhold = "load"'), 3),
        (("[rule.mine]", '[rule.mine]\nthreshold = "loud"'), 3),
        (("[rule.mine]", "[rules.mine]"), 2),
        (("[rule.mine]", '[rule."no name"]'), 2),
        (("[rule.mine]", "[[rule]]"), 2),
        (
            ("[rule.mine]", "[rule.cpu-idel]\nlimits = { idle = 1 }\n[rule.mine]"),
            2,
        ),
        (("[rule.mine]", "[rule.mine"), 2),
    ],
)
def test_what_is_refused(tmp_path: Path, change: tuple[str, str], line: int) -> None:
    assert change[0] in GOOD
    message = refusal(tmp_path, GOOD.replace(*change))
    assert f"line {line}" in message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[rule.swapping]\nlimits.swap = '64 h'\n", 2),
        ("[rule.short-job]\nlimits.shortest = '64 GB'\n", 2),
        ("[rule.unused-memory]\nlimits.least = '9 B/s'\n", 2),
        ("[rule.metadata-congestion]\nlimits.operations = '9 GB'\n", 2),
        ("[rule.memory-leak.severity]\nof = 'bytes_per_hour'\nminor = '1 GB/s'\n", 3),
        ("[rule.low-load.severity]\nof = 'idle_core_h'\nminor = '3 h'\n", 3),
        ("[rule.cpu-idle]\nlimits.idle = -0.1\n", 2),
        ("[rule.cpu-idle]\nlimits.idle = 60\n", 2),
        ("[rule.short-job]\nlimits.shortest = '-5 min'\n", 2),
        ("[rule.low-load.severity]\nof = 'idle_core_h'\nminor = -1\n", 3),
        ("[rule.short-job]\nwhen = 'wall_s < shortest and max_rss_b > duration'\n", 2),
        ("[rule.short-job]\nvalue = 'wall_s + max_rss_b'\n", 2),
        ("[eligible.limits]\nshortest = -5\n", 2),
        ("[eligible.limits]\nshortest = '5 GB'\n", 2),
        ("[eligible.limits]\nshortst = 5\n", 2),
        ("[eligible.require]\n'one coer' = false\n", 2),
    ],
)
def test_limits_that_cannot_be_meant_are_refused(tmp_path: Path, text: str, line: int) -> None:
    message = refusal(tmp_path, text)
    assert f"line {line}" in message


@pytest.mark.parametrize(
    "text",
    [
        "[rule.swapping]\nlimits.swap = '64 GiB'\n",
        "[rule.swapping]\nlimits.swap = 64e9\n",
        "[rule.short-job]\nwhen = 'core_h < shortest'\nlimits.shortest = '3 core-h'\n",
        "[rule.swapping]\nwhen = 'value > swap * node.memory_b'\nlimits.swap = '5 %'\n",
        "[rule.swapping]\nwhen = 'value / 1000000000 > swap'\nlimits.swap = 64\n",
        "[rule.memory-near-node]\nvalue = 'node.memory_b - mem_used_b.node_max'\nlimits.used = '-2 GB'\n",
        "[rule.io-blocking]\nlimits.most_r = -0.9\n",
        "[rule.low-load]\nwhen = 'min(value, 1) < load and abs(1 - value) > 0'\n",
        "[eligible.require]\n'one core' = false\n",
        "[eligible.limits]\nshortest = 1800\nmost = '2 d'\n[eligible.require]\nlong = 'duration < most'\n",
    ],
)
def test_limits_that_can_be_meant_are_read(tmp_path: Path, text: str) -> None:
    assert read_rules([written(tmp_path, text)]).digest != read_rules().digest


def test_bytes_an_hour_are_bytes_an_hour() -> None:
    rule = read_rules().rule("memory-leak")
    assert rule is not None
    assert dict(rule.severity.bounds) == {"minor": 1e8}


def test_a_mark_of_the_order_of_bytes_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read_rules([path]).rule("mine") is not None


def test_what_a_file_changes_is_told_key_by_key(tmp_path: Path) -> None:
    text = """
[rule.swapping]
limits.swap = 64
hint = "another"
[rule.short-job]
enabled = false
[eligible.limits]
shortest = "30 min"
[eligible.require]
"one core" = false
"a test" = "user != 'test'"
"""
    usual, changed = read_rules(), read_rules([written(tmp_path, text)])
    assert list(change_lines(usual, changed)) == [
        "swapping: hint changed; limits.swap 1 GB -> 64 B",
        "jobs that count: limits.shortest 60 min -> 30 min; 'one core' is removed; "
        "'a test' is new (user != 'test')",
    ]
    assert changes(usual, changed) == {"new": [], "changed": ["swapping"], "removed": ["short-job"]}
    path = written(tmp_path, "# nothing\n", "empty.toml")
    same = read_rules([path])
    assert same.own[str(path)] == 0
    assert list(change_lines(usual, same)) == []


def test_depth_and_size_are_bounded(tmp_path: Path) -> None:
    assert "nested too deeply" in refusal(tmp_path, "a = " + "[" * 20_000)
    assert "is larger than" in refusal(tmp_path, "# " + "x" * 300_000)
    path = tmp_path / "latin.toml"
    path.write_bytes(b'[rule.a]\nhint = "\xff"\n')
    with raised(InputError):
        read_rules([path])


def test_a_wrong_override_names_the_file_that_is_wrong(tmp_path: Path) -> None:
    right = written(tmp_path, GOOD, "right.toml")
    wrong = written(tmp_path, '[rule.mine]\nlimits = { load = "1 parsec" }\n', "wrong.toml")
    with raised(InputError):
        read_rules([right, wrong])


def truth(text: str, **columns: list[float]) -> list[float]:
    arrays = {name: np.array(values, np.float64) for name, values in columns.items()}
    expression = read_expression(text, lambda name: "number" if name in arrays else None)
    n = len(next(iter(arrays.values())))
    return [float(value) for value in expression.of(arrays.__getitem__, n)]


nan = float("nan")


def test_missing_values_are_unknown_and_never_true() -> None:
    assert truth("a > 1", a=[2, 1, nan]) == [1, 0, 0.5]
    assert truth("not a > 1", a=[2, 1, nan]) == [0, 1, 0.5]
    assert truth("a != 1", a=[nan]) == [0.5]
    assert truth("a > 1 or b > 1", a=[nan, nan, nan], b=[2, 1, nan]) == [1, 0.5, 0.5]
    assert truth("a > 1 and b > 1", a=[nan, nan, nan], b=[2, 1, nan]) == [0.5, 0, 0.5]
    assert truth("a / b > 0 or a / b <= 0", a=[1, 0], b=[0, 0]) == [0.5, 0.5]
    assert truth("known(a) and min(a, b) > 0", a=[1, nan], b=[nan, 1]) == [0.5, 0]


def test_a_hint_says_what_is_not_known_and_shows_hostile_text() -> None:
    hint = read_hint("{user}: {value:percent}, {limit:bytes}", {"user", "value", "limit"}.__contains__)
    values = {"user": "a\x1b[31m\n{value}", "value": nan, "limit": 2e9}
    (told, other) = hint.filled_rows({name: [value, value] for name, value in values.items()}, 2)
    assert other == told
    assert told.endswith(": ?, 1.86 GiB")
    assert "\x1b" not in told
    assert "\n" not in told
    assert "{value}" in told


def test_an_expression_is_no_python() -> None:
    for text in (
        "(lambda: 1)()",
        "[a for a in b]",
        "a if b else c",
        "a.b.c > 1",
        "a[0] > 1",
        "f'{a}' == a",
        "",
    ):
        with pytest.raises(ExpressionError):
            read_expression(text, lambda _: "number")


def test_the_rules_of_the_documentation_can_be_read(tmp_path: Path) -> None:
    import textwrap

    from esjobs.records.clusters.reading import read_clusters

    page = (Path(__file__).parents[2] / "docs" / "scores.md").read_text(encoding="utf-8")
    blocks = [
        textwrap.dedent(block) for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", page, re.MULTILINE)
    ]
    rules = [block for block in blocks if block.lstrip().startswith(("[rule", "[eligible"))]
    described = [block for block in blocks if "[[cluster]]" in block]
    assert len(rules) >= 4
    assert len(described) == 1
    paths = [written(tmp_path, block, f"{number}.toml") for number, block in enumerate(rules)]
    assert read_rules(paths).rule("low-gpu-memory") is not None
    assert read_clusters([written(tmp_path, described[0], "clusters.toml")]).described("emmy") is not None


def test_the_documentation_names_every_detector_and_number() -> None:
    from esjobs.issues.catalogue import DETECTORS

    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
    for detector in DETECTORS:
        for name in (detector.name, *detector.numbers):
            assert f"`{name}`" in page, name
