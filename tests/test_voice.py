"""Voice of code, help and texts: openings of docstrings, names, comments, negations, words, lengths."""

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
RULES = ROOT / "esjobs" / "issues" / "rules" / "default.toml"
TEMPLATES = ROOT / "scheduler" / "notifications" / "templates"

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

NEGATIONS = re.compile(r"\b(is|are|was|were) (no(?! longer\b)|none|nothing)\b")
"""Negations that belong to the verb: "X is not a Y" instead of "X is no Y"."""
PHRASES = re.compile(
    r"\b(one by one|so many|name (another|one)|any more|not known|half-written|nobody|somebody|whoever"
    r"|says? nothing|as it stands|held against|hangs? on|a (row|line|file) a|told|mend(ed|s)?|ran like"
    r"|set aside|left alone|may (not )?be sent|not to be sent|of others|tried change|fixed cost)\b",
    re.IGNORECASE,
)
"""Phrases for which the field has words."""

LEAST_COMMENTS, MOST_COMMENTS = 0.03, 0.06
LONGEST_HELP = 80
LONGEST_SENTENCE = 25  # Words; a value that is put in counts as one

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


def texts() -> Iterator[tuple[Path, int, str]]:
    """Yield literals of two words or more that are not docstrings, with ``X`` for each value put in."""
    for path, tree in trees():
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        skipped |= {id(part) for node in formatted for part in ast.walk(node) if part is not node}
        for node in ast.walk(tree):
            text = None if id(node) in skipped else literal(node)
            if text is not None and len(re.findall(r"[A-Za-z]{2,}", text)) > 1 and not _is_query(text):
                yield path, getattr(node, "lineno", 0), text


def literal(node: ast.AST) -> str | None:
    """Return the text of a literal, with ``X`` for each value put in; None for other nodes.

    >>> literal(ast.parse("f'{a} jobs'").body[0].value)
    'X jobs'
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
        case _:
            return None


def _is_query(text: str) -> bool:
    return re.search(r"\b(SELECT|INSERT|CREATE|UPDATE|DELETE|FROM)\b", text) is not None


def phrases() -> Found:
    """Yield texts with a negation of ``NEGATIONS`` or a phrase of ``PHRASES``."""
    for path, line, text in texts():
        found = NEGATIONS.search(text) or PHRASES.search(text)
        if found:
            yield path, f"{line}: '{found[0]}' in '{text[:80]}'"


def errors() -> Found:
    """Yield texts of errors with a sentence that is too long."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for text in filter(None, map(literal, node.exc.args)):
                    for sentence in too_long(text):
                        yield path, f"{node.lineno}: {len(sentence.split())} words in '{sentence[:80]}'"


def too_long(text: str) -> list[str]:
    """Return the sentences of a text that have too many words; a semicolon ends one, too.

    >>> too_long("Short. " + "word " * 26 + "end; short")[0].split()[:2]
    ['word', 'word']
    """
    return [each for each in re.split(r"[.;!?]\s+", text) if len(each.split()) > LONGEST_SENTENCE]


CHECKS: dict[str, Callable[[], Found]] = {
    "openings": openings,
    "predicates": predicates,
    "names": names,
    "phrases": phrases,
    "errors": errors,
}


@pytest.mark.parametrize("check", CHECKS)
def test_plain_words(check: str) -> None:
    assert [f"{path.relative_to(ROOT)}:{text}" for path, text in CHECKS[check]()] == []


@pytest.mark.parametrize("path", [RULES, *sorted(TEMPLATES.rglob("*.txt"))], ids=lambda path: path.name)
def test_sentences_of_mails_and_hints_are_short(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    shown = [line for line in lines if not re.match(r"(when|value|\"[a-z ]+\") = ", line)]
    texts_of = re.findall(r'"((?:[^"\\]|\\.)*)"', "\n".join(shown))
    assert [sentence for text in texts_of for sentence in too_long(text)] == []
    assert [text for text in texts_of if NEGATIONS.search(text) or PHRASES.search(text)] == []


def comments(text: str) -> int:
    """Return the number of lines that have a comment; directives for tools are none."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    directive = re.compile(r"#\s*(noqa|type:|pragma|fmt:|ruff:)")
    return sum(token.type == tokenize.COMMENT and not directive.match(token.string) for token in tokens)


def test_comments_are_few_and_there() -> None:
    """3 to 6 % of all lines: where a reader stops, not what the code says itself."""
    texts = [path.read_text(encoding="utf-8") for path in files()]
    share = sum(map(comments, texts)) / sum(text.count("\n") for text in texts)
    assert LEAST_COMMENTS <= share <= MOST_COMMENTS


def test_help_lines_fit_a_terminal() -> None:
    """Of each command, as click prints it in a terminal of 80 columns."""
    found = []
    waiting: list[tuple[tuple[str, ...], click.Command]]
    waiting = [(("esjobs", name), entry.load.load()) for name, entry in COMMANDS.items()]
    while waiting:
        called, command = waiting.pop()
        context = click.Context(command, info_name=" ".join(called), terminal_width=LONGEST_HELP)
        lines = command.get_help(context).splitlines()
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
