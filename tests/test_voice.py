"""Voice of code and help: openings of docstrings, names, share of comments, length of help lines."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from esjobs.cli.registry import COMMANDS

ROOT = Path(__file__).parents[1]
PACKAGES = ("esjobs", "fitters", "dashboards", "scheduler")

NOT_YET: dict[str, frozenset[str]] = {"comments": frozenset({"esjobs"})}
"""Checks that still fail, with their folders; the list only gets shorter."""

OPENINGS = frozenset(
    "What Whether How Where Which Who Why When Those That It So".split()  # noqa: SIM905
)
"""Words that begin a noun clause or a sentence without its noun; a docstring begins with a noun or a verb."""

BANNED = frozenset(
    (  # noqa: SIM905
        "told held known given asked whole there odd alike made_keys cuts doubts foremost at_once "
        "leaving_out looking standing desk letter trial moved secrecy unwritten untidy leftovers swept "
        "patience recent tended errand office foreseeing forgetting pointed retired"
    ).split()
)
"""Names for which the field has a word."""
BANNED_DEFINITIONS = BANNED | {"place", "needs"}
"""Names that functions, classes and modules must not have; variables may be called ``place`` or ``needs``."""

LEAST_COMMENTS, MOST_COMMENTS = 0.03, 0.06
LONGEST_HELP = 80

Found = Iterator[tuple[Path, str]]


def files() -> list[Path]:
    """Modules of the program."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def trees() -> Iterator[tuple[Path, ast.Module]]:
    """Yield modules with their syntax."""
    for path in files():
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings with their lines: of modules, classes, functions, and constants (the string below)."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for before, each in zip([None, *body], body, strict=False):
            if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)):
                continue
            of_node = before is None and documented
            if isinstance(each.value.value, str) and (
                of_node or isinstance(before, ast.Assign | ast.AnnAssign)
            ):
                yield each.lineno, each.value.value


def openings() -> Found:
    """Yield docstrings that begin with a word of ``OPENINGS``."""
    for path, tree in trees():
        for line, text in docstrings(tree):
            first = re.match(r"\W*([A-Za-z]+)", text)
            if first and first[1] in OPENINGS:
                yield path, f"{line}: docstring begins with '{first[1]}'"


def predicates() -> Found:
    """Yield functions ``is_...`` and ``has_...`` whose docstring does not begin with "True if"."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or not re.match(r"_?(is|has)_", node.name):
                continue
            text = ast.get_docstring(node)
            if text is not None and not text.startswith("True if"):
                yield path, f"{node.lineno}: {node.name} does not say 'True if'"


def names() -> Found:
    """Yield names of modules, classes, functions, arguments, variables and attributes that are banned."""
    for path, tree in trees():
        if path.stem in BANNED_DEFINITIONS:
            yield path, f"1: module '{path.stem}'"
        for node in ast.walk(tree):
            for name, banned in _named(node):
                if _words(name) in banned:
                    yield path, f"{getattr(node, 'lineno', 0)}: name '{name}'"


def _named(node: ast.AST) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield what a node names, with the names that it must not have."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name, BANNED_DEFINITIONS
        case ast.arg():
            yield node.arg, BANNED
        case ast.Name(ctx=ast.Store()):
            yield node.id, BANNED
        case ast.Attribute(ctx=ast.Store()):
            yield node.attr, BANNED
        case _:
            pass


def _words(name: str) -> str:
    """Return a name in lower case with underscores, without one in front.

    >>> _words("_MadeKeys")
    'made_keys'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


CHECKS: dict[str, Callable[[], Found]] = {"openings": openings, "predicates": predicates, "names": names}


def folder(path: Path) -> str:
    """Return the folder that a module counts for: ``esjobs/NAME``, or the package."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 2 if parts[0] == "esjobs" and len(parts) > 2 else 1])


@pytest.mark.parametrize("check", CHECKS)
def test_plain_words(check: str) -> None:
    waiting = NOT_YET.get(check, frozenset())
    found: dict[str, list[str]] = {}
    for path, text in CHECKS[check]():
        found.setdefault(folder(path), []).append(f"{path.relative_to(ROOT)}:{text}")
    wrong = [line for each in sorted(found.keys() - waiting) for line in found[each]]
    assert wrong == []


def comments(text: str) -> int:
    """Return the number of lines that have a comment; directives for tools are none."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    directive = re.compile(r"#\s*(noqa|type:|pragma|fmt:|ruff:)")
    return sum(token.type == tokenize.COMMENT and not directive.match(token.string) for token in tokens)


def test_comments_are_few_and_there() -> None:
    """3 to 6 % of all lines: where a reader stops, not what the code says itself."""
    texts = [path.read_text(encoding="utf-8") for path in files()]
    share = sum(map(comments, texts)) / sum(text.count("\n") for text in texts)
    least = 0.0 if "comments" in NOT_YET else LEAST_COMMENTS
    assert least <= share <= MOST_COMMENTS


def test_help_lines_fit_a_terminal() -> None:
    """Of each command, as click prints it in a terminal of 80 columns."""
    found = []
    waiting: list[tuple[tuple[str, ...], click.Command]]
    waiting = [(("esjobs", name), entry.load.load()) for name, entry in COMMANDS.items()]
    while waiting:
        called, command = waiting.pop()
        context = click.Context(command, info_name=" ".join(called), terminal_width=LONGEST_HELP)
        lines = command.get_help(context).splitlines()
        if " ".join(called) not in NOT_YET.get("help", frozenset()):
            found += [f"{' '.join(called)}: {line}" for line in lines if len(line) > LONGEST_HELP]
        if isinstance(command, click.Group):
            waiting += [((*called, name), each) for name, each in command.commands.items()]
    assert found == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('"""What is so."""', ["What"]),
        ('"""Jobs."""\nA = 1\n"""Whether it is."""', ["Whether"]),
        ('class A:\n    """Noun."""\n\n    def is_b(self):\n        """Return it."""', []),
        ('def f():\n    """How."""\n    "So is no docstring"', ["How"]),
    ],
)
def test_docstrings_are_found(code: str, expected: list[str]) -> None:
    found = [text.split()[0].strip(".") for _, text in docstrings(ast.parse(code))]
    assert [word for word in found if word in OPENINGS] == expected
