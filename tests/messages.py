"""Texts of errors under test: a test names the class, one golden file per folder of tests holds the texts.

``with raised(InputError):`` asserts the class, and that the message is one line; ``compare_text(text)`` is
for other text that people read. The texts of a test are compared when it has passed.
``pytest --update-golden`` writes them anew into ``tests/golden/messages``, for the tests that ran; look at
the diff. Texts of hypothesis examples are not compared.

What differs between machines and runs is replaced by a word in angle brackets, see :func:`normalised`. A test
that runs on several servers has one entry, marked ``<server>``; a server with a text of its own has another.
"""

import re
import socket
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.servers.products import PRODUCTS

_OURS = {"esjobs", "fitters", "dashboards", "scheduler"}
_ANY = "<server>"
_PRODUCT = re.compile(rf"(?<=[\[-])({'|'.join(PRODUCTS)})(?=[\]-])")
_OBSERVED = pytest.StashKey[dict[str, list[str]]]()
COLLECTED = pytest.StashKey[set[str]]()
_TEXTS: list[str] = []

_Error = TypeVar("_Error", bound=BaseException)
Texts = dict[str, list[str]]
"""Id of a test -> its texts in order, each after the name of its class."""


@contextmanager
def raised(expected: type[_Error]) -> Iterator[pytest.ExceptionInfo[_Error]]:
    """Assert that the block raises ``expected``; its text is compared with the golden file."""
    __tracebackhide__ = True
    with pytest.raises(expected) as caught:
        yield caught
    text = str(caught.value)
    if type(caught.value).__module__.partition(".")[0] in _OURS:
        assert "\n" not in text, "the message of an error is one line"
    _TEXTS.append(f"{type(caught.value).__name__}: {text}")


def compare_text(text: str) -> None:
    """Compare ``text`` with the golden file."""
    _TEXTS.append(f"text: {text}")


_PATTERNS = (
    (re.compile(r"\besjobs-test-[a-z0-9_]{8}\b"), "<folder>"),
    (re.compile(r"\btest-[0-9a-f]{12}-"), "<prefix>-"),
    (re.compile(r"\bJDK [^;]*; the end of its log:.*", re.DOTALL), "JDK <folder>; the end of its log: <log>"),
    (re.compile(r"\bport=\d+"), "port=<port>"),
    (re.compile(r"\bcontext found for id \[\d+\]"), "context found for id [<number>]"),
    (re.compile(r"\[1:\d+\] failed to parse"), "[1:<number>] failed to parse"),
    (re.compile(r"\b(localhost|127\.0\.0\.1|\[::1\]):\d{4,5}\b"), r"\1:<port>"),
    (re.compile(r"(?i)\b(process|pid|port) \d+"), r"\1 <number>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b"), "<hex>"),
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"(?<=<tmp>/)([A-Za-z_-]+)\d+(?=/)"), r"\1"),
    (re.compile(r"/fd/\d+"), "/fd/<number>"),
    (re.compile(r"\(_ssl\.c:\d+\)"), "(_ssl.c)"),
    (re.compile(r"/reference/\d+\.\d+/"), "/reference/<version>/"),
    (re.compile(r"\bchecksum \d+"), "checksum <number>"),
    (
        re.compile(r"[\d,]+ or more sums of tasks and queues\. The fit requires about [\d.]+ GB"),
        "<number> pairs",
    ),
    (re.compile(r"\b(gave up after) \d+ s\b"), r"\1 <number> s"),
    (re.compile(r"\b\d+(\.\d+)? (GB are free)\b"), r"<number> \2"),
    (re.compile(r"block of size [\d.]+ [KMG]iB \([^)]*\)"), "block of size <number>"),
    (re.compile(r"\(python[\d.]* "), "(python "),
)


def normalised(text: str, folders: Mapping[str, str]) -> str:
    r"""Replace what differs between machines and runs; ``folders``: path -> word, longest first.

    >>> normalised("/tmp/x/a.csv: held by process 17 on localhost:9200", {"/tmp/x": "<tmp>"})
    '<tmp>/a.csv: held by process <number> on localhost:<port>'
    """
    for path, word in folders.items():
        text = text.replace(path, word)
    for pattern, replacement in (*_PATTERNS, (_days_around(), "<today>")):
        text = pattern.sub(replacement, text)
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _days_around() -> re.Pattern[str]:
    """Return a pattern of days near the present, and of times on them."""
    now = datetime.now(UTC)
    days = "|".join(str((now + timedelta(days=number)).date()) for number in range(-2, 3))
    return re.compile(rf"\b({days})([T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z|\+00:00)?)?")


_TEMPORARY = tempfile.gettempdir()  # tests replace the function


def _folders(config: pytest.Config, item: pytest.Item) -> dict[str, str]:
    temporary = item.funcargs.get("tmp_path") if isinstance(item, pytest.Function) else None
    factory = getattr(config, "_tmp_path_factory", None)
    found = {
        **({str(temporary): "<tmp>"} if temporary is not None else {}),
        **({str(factory.getbasetemp()): "<tmp>"} if factory is not None else {}),
        str(config.rootpath.parent / "shared"): "<shared>",
        str(config.rootpath): "<checkout>",
        str(Path.home()): "<home>",
        f" on {socket.gethostname()} ": " on <host> ",
        _TEMPORARY: "<tmp>",
    }
    return {path: word for path, word in found.items() if len(path) > 1}


def golden_folder(config: pytest.Config) -> Path:
    """Return the folder of the golden files."""
    return config.rootpath / "tests" / "golden" / "messages"


def file_name(nodeid: str) -> str:
    """Return the name of the golden file of a test: that of its folder."""
    folder = Path(nodeid.partition("::")[0]).parent
    parts = folder.parts[1:] if folder.parts[:1] == ("tests",) else folder.parts
    return f"{'.'.join(parts) or 'tests'}.txt"


def read(path: Path) -> Texts:
    """Read a golden file: a line with the id of a test, below it its texts, indented."""
    texts: Texts = {}
    nodeid = ""
    lines = path.read_text("utf-8").split("\n") if path.exists() else []
    for line in lines:
        if line.startswith("    "):
            texts[nodeid].append(line[4:])
        elif line:
            nodeid = line
            texts[nodeid] = []
    return texts


def write(path: Path, texts: Texts) -> None:
    """Write a golden file, sorted by test; none is left where there are no texts."""
    if not texts:
        path.unlink(missing_ok=True)
        return
    lines = []
    for nodeid in sorted(texts):
        lines += [nodeid, *(f"    {each}" for each in texts[nodeid])]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def general(nodeid: str) -> str:
    """Return the id that a test has in common on all servers.

    >>> general("tests/a.py::test_b[opensearch3-x]")
    'tests/a.py::test_b[<server>-x]'
    """
    return _PRODUCT.sub(_ANY, nodeid)


def expected_texts(nodeid: str, texts: Texts) -> list[str]:
    """Return the texts of a test: of its server, else of all."""
    return texts.get(nodeid, texts.get(general(nodeid), []))


def updated(texts: Texts, observed: Mapping[str, list[str]]) -> Texts:
    """Return golden texts after a run; the first server in the order of the products speaks for all."""
    texts = dict(texts)
    for nodeid in sorted(observed, key=_rank):
        found, shared = observed[nodeid], general(nodeid)
        texts.pop(nodeid, None)
        if shared == nodeid or shared not in texts or _rank(nodeid)[0] == 0:
            texts[shared] = found
        elif texts[shared] != found:
            texts[nodeid] = found
    return {nodeid: found for nodeid, found in texts.items() if found or nodeid != general(nodeid)}


def _rank(nodeid: str) -> tuple[int, str]:
    found = _PRODUCT.search(nodeid)
    return (0 if found is None else list(PRODUCTS).index(found[1])), nodeid


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files."""
    parser.addoption("--update-golden", action="store_true", help="write golden texts anew; look at the diff")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the ids of the tests, those that a marker or keyword deselects too."""
    config.stash[COLLECTED] = {_id(item) for item in items}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Compare the texts of a test that passed, or collect them."""
    _TEXTS.clear()
    yield
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        return
    folders = _folders(item.config, item)
    found = [normalised(text, folders) for text in _TEXTS]
    nodeid = _id(item)
    if item.config.getoption("update_golden"):
        item.config.stash.setdefault(_OBSERVED, {})[nodeid] = found
        return
    expected = expected_texts(nodeid, _golden(golden_folder(item.config) / file_name(nodeid)))
    if found != expected:
        pytest.fail(_difference(expected, found), pytrace=False)


def _id(item: pytest.Item) -> str:
    """Return the id of a test without the group that pytest-xdist appends."""
    return re.sub(r"\]@[a-z]+$", "]", item.nodeid)


@cache
def _golden(path: Path) -> Texts:
    return read(path)


def _difference(expected: list[str], found: list[str]) -> str:
    lines = ["texts differ from the golden file; if they are meant, run it with --update-golden:"]
    lines += [f"  - {text}" for text in expected if text not in found]
    lines += [f"  + {text}" for text in found if text not in expected]
    if len(lines) == 1:
        lines += [f"  - {expected}", f"  + {found}"]
    return "\n".join(lines)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a process of pytest-xdist observed."""
    output = getattr(node, "workeroutput", {})
    node.config.stash.setdefault(_OBSERVED, {}).update(output.get("texts", {}))
    node.config.stash.setdefault(COLLECTED, set()).update(output.get("tests", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write golden files, or hand the texts to the process that does."""
    config = session.config
    if not config.getoption("update_golden"):
        return
    observed = config.stash.setdefault(_OBSERVED, {})
    collected = config.stash.setdefault(COLLECTED, set())
    if hasattr(config, "workeroutput"):
        config.workeroutput.update(texts=observed, tests=sorted(collected))
        return
    folder = golden_folder(config)
    names = {file_name(nodeid) for nodeid in observed} | {path.name for path in folder.glob("*.txt")}
    for path in (folder / name for name in names):
        of_folder = {nodeid: each for nodeid, each in observed.items() if file_name(nodeid) == path.name}
        texts = updated(read(path), of_folder)
        gone = set(orphans(texts, collected, config.rootpath, complete=not is_selected(config)))
        write(path, {nodeid: each for nodeid, each in texts.items() if nodeid not in gone})


def is_selected(config: pytest.Config) -> bool:
    """True if the run collects single tests of files."""
    return any("::" in str(argument) for argument in config.args)


def orphans(entries: Iterable[str], tests: Iterable[str], root: Path, *, complete: bool) -> list[str]:
    """Return the entries of tests that are gone.

    ``tests`` were collected; ``complete``: of the files that were collected, all tests.

    >>> orphans(["tests/no_file.py::test_a"], [], Path(), complete=False)
    ['tests/no_file.py::test_a']
    """
    present = {each for nodeid in tests for each in (nodeid, general(nodeid))}
    files = {nodeid.partition("::")[0] for nodeid in present} if complete else set()
    return [
        nodeid
        for nodeid, file in ((nodeid, nodeid.partition("::")[0]) for nodeid in entries)
        if nodeid not in present and (file in files or not (root / file).exists())
    ]
