"""Seeded mutants of five modules: how many the tests find, those of the checkout or of another commit.

    python -m benchmarks.mutants [--seed 1] [--per-module 6] [--tests REVISION] [--only MODULE] [--out FILE]

``benchmarks.mutations`` plants mistakes that people thought of; here a seed chooses: a comparison, an
operator, a number, a condition is changed, one in each mutant. A change of the tests must not find fewer than
before: run it with ``--tests`` of the commit before, and without. Mutants that no test can find (the result
is the same) are among them, so that only the difference means something.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULES = {
    "esjobs/core/window.py": ("tests/core/test_window.py", "tests/core/test_periods.py"),
    "esjobs/records/jobs/conditions.py": (
        "tests/core/test_conditions.py",
        "tests/contract/test_conditions.py",
    ),
    "esjobs/store/duck/compile_sql.py": ("tests/store/test_compile_sql.py",),
    "esjobs/store/files/destination.py": ("tests/cli/test_destination.py",),
    "fitters/layout/buckets.py": ("tests/fitters/test_buckets.py",),
}
COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}


@dataclass(frozen=True)
class Mutant:
    """One change of a file: the text from ``start`` to ``end`` (bytes) becomes ``new``."""

    file: str
    line: int
    start: int
    end: int
    new: str
    what: str


def candidates(file: str, source: bytes) -> Iterator[Mutant]:
    """Yield all mutants of a file, in the order of the syntax tree."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def text(node: ast.expr) -> str:
        return ast.unparse(node)

    for node in ast.walk(ast.parse(source)):
        new = None
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
            new = f"({text(node.left)} {COMPARED[type(node.ops[0])]} {text(node.comparators[0])})"
        elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
            new = f"({text(node.left)} {COMPUTED[type(node.op)]} {text(node.right)})"
        elif isinstance(node, ast.BoolOp):
            word = " or " if isinstance(node.op, ast.And) else " and "
            new = "(" + word.join(f"({text(each)})" for each in node.values) + ")"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            new = f"({text(node.operand)})"
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            new = str(node.value + 1)
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            new = str(not node.value)
        if new is None or not isinstance(node, ast.expr) or node.end_lineno is None:
            continue
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + (node.end_col_offset or 0)
        yield Mutant(file, node.lineno, start, end, new, f"{source[start:end].decode()} -> {new}")


def chosen(seed: int, per_module: int) -> list[Mutant]:
    """Return the mutants of a seed; those of one module do not depend on the other modules."""
    mutants: list[Mutant] = []
    for file in MODULES:
        found = list(candidates(file, (ROOT / file).read_bytes()))
        mutants += random.Random(f"{seed} {file}").sample(found, min(per_module, len(found)))  # noqa: S311
    return mutants


def copy(folder: Path, revision: str | None) -> None:
    """Copy the packages, and the tests of the checkout or of a commit."""
    ignored = shutil.ignore_patterns("__pycache__")
    for package in ("esjobs", "fitters", "dashboards", "scheduler", "kibana_objects", "docs"):
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    if revision is None:
        shutil.copytree(ROOT / "tests", folder / "tests", ignore=ignored)
        return
    packed = subprocess.run(
        ["git", "archive", revision, "tests", "pyproject.toml"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)


def tested(folder: Path, file: str) -> tuple[bool, float]:
    """Run the tests of a module; True if one fails, and the seconds."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not server"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    began = time.perf_counter()
    tests = [test for test in MODULES[file] if (folder / test).exists()]
    done = subprocess.run(
        [*command, *tests], cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    if done.returncode not in (0, 1, 2, 4):  # 2 and 4: the mutant does not even import
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.returncode != 0, time.perf_counter() - began


def main() -> None:
    """Test all mutants, print and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-module", type=int, default=6)
    parser.add_argument("--tests", metavar="REVISION", help="tests of this commit, not those of the checkout")
    parser.add_argument("--only", nargs="*", help="modules")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "checkout"
        folder.mkdir()
        copy(folder, options.tests)
        for file in dict.fromkeys(mutant.file for mutant in chosen(options.seed, options.per_module)):
            if not options.only or file in options.only:
                found, _ = tested(folder, file)
                if found:
                    raise RuntimeError(f"{file}: its tests fail without a mutant")
        for mutant in chosen(options.seed, options.per_module):
            if options.only and mutant.file not in options.only:
                continue
            target, source = folder / mutant.file, (ROOT / mutant.file).read_bytes()
            target.write_bytes(source[: mutant.start] + mutant.new.encode() + source[mutant.end :])
            found, seconds = tested(folder, mutant.file)
            target.write_bytes(source)
            rows.append((mutant, found))
            said = "found" if found else "MISSED"
            print(f"{said:7}{seconds:6.1f} s  {mutant.file}:{mutant.line}  {mutant.what}", flush=True)
    print(f"{sum(found for _, found in rows)} of {len(rows)} found")
    if options.out:
        options.out.write_text(page(options.seed, rows), encoding="utf-8")


def page(seed: int, rows: list[tuple[Mutant, bool]]) -> str:
    """Return the table as Markdown."""
    found = sum(each for _, each in rows)
    lines = [
        "# Seeded mutants",
        "",
        f"Written by `python -m benchmarks.mutants --seed {seed}`: {found} of {len(rows)} found.",
        "",
        "| where | change | |",
        "|---|---|---|",
    ]
    for mutant, each in rows:
        what = " ".join(mutant.what.split())
        lines.append(f"| `{mutant.file}:{mutant.line}` | `{what}` | {'found' if each else '**missed**'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
