"""What the program tells of itself: groups, one meaning per option, examples to be typed as they stand."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from esjobs.cli import main as cli
from esjobs.cli.help import examples_of
from esjobs.cli.registry import COMMANDS as REGISTERED
from esjobs.cli.registry import GROUPS
from tests.cli.running import run
from tests.messages import compare_text


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by what one types."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    if command.invoke_without_command:
        yield " ".join(path), command
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        yield from commands(child, (*path, name))


COMMANDS = dict(commands(cli.main))
EXAMPLES = sorted({line for command in COMMANDS.values() for line in examples_of(command)})


def meaning(text: str) -> str:
    """What an option means, without what it is for this command: all before the first stop."""
    return re.split(r"[:;.,]", text)[0].strip()


def test_an_option_means_the_same_in_every_command() -> None:
    meanings: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.help, f"esjobs {name}: {option.opts[0]} has no help"
                for spelling in option.opts:
                    meanings[spelling][meaning(option.help)].add(name)
    assert {name: dict(told) for name, told in meanings.items() if len(told) > 1} == {}


def test_format_is_the_output_format() -> None:
    for name, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden and "--format" in option.opts:
                assert (option.help or "").startswith("Output format"), name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    assert any(
        line.split(maxsplit=1)[1].startswith(name) or name in line for line in examples_of(COMMANDS[name])
    )


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_are_understood(line: str) -> None:
    words = shlex.split(line)
    assert words[0] == "esjobs"
    command: click.Command = cli.main
    context = command.make_context("esjobs", words[1:], resilient_parsing=False)
    rest = [*context._protected_args, *context.args]
    while isinstance(command, click.Group) and rest:
        name, child, rest = command.resolve_command(context, rest)
        assert child is not None
        command = child
        context = command.make_context(name, rest, parent=context)
        rest = [*getattr(context, "_protected_args", []), *context.args]


def test_help_lists_every_command_once_in_a_group_with_an_example() -> None:
    shown = run("--help").stdout
    listed = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", shown, re.MULTILINE)
    assert sorted(listed) == sorted(REGISTERED)
    for group in GROUPS:
        section = shown.partition(f"{group.name}:\n")[2].partition("\n\n")[0]
        assert f"Example: {group.example}" in section
        assert shlex.split(group.example)[1] in {member.name for member in group.commands}
    assert not re.search(r"\.\.\.$", shown.partition("-h, --help")[2], re.MULTILINE)


@pytest.mark.parametrize("name", REGISTERED)
def test_the_registry_has_each_command_and_its_sentence(name: str) -> None:
    command = REGISTERED[name].load.load()
    assert (command.name, command.get_short_help_str(200)) == (name, REGISTERED[name].help)


MENTIONED = re.compile(r"\b(IMPORT|QUEUE|CPU|JOBID|RECIPIENT)\b|://|rules\.toml|HS23scores")
"""What stands for something of one's own, or needs a server."""

READING = (
    *(
        "show",
        "query",
        "jobs",
        "sql",
        "compare",
        "report",
        "queue",
        "cpu",
        "flags",
        "rank",
        "export",
        "fields",
    ),
    *("nights", "doctor", "fit-file", "line-file", "dashboards", "rules", "notify preview", "notify log"),
)
CHANGES = ("flags ack", "flags answer", "nights forget", "nights pause", "nights resume")


def reads(line: str) -> bool:
    """Whether an example only reads; what it writes are files of its own."""
    typed = line.removeprefix("esjobs ")
    return typed.startswith(READING) and not typed.startswith(CHANGES)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the demo was run, with flags that stand open and two runs to compare."""
    folder = tmp_path_factory.mktemp("examples")
    runner = CliRunner(env={"ESJOBS_STORE": f"duckdb:{folder / 'demo' / 'demo.duckdb'}"})
    for line in (
        f"--store duckdb:{folder}/demo/demo.duckdb demo --jobs 12000 --out {folder}/demo",
        "run --window 2025-05-17/2025-06-16",
        "watch",
    ):
        done = runner.invoke(cli.main, ["--quiet", *shlex.split(line)])
        assert done.exit_code == 0, (line, done.output)
    return folder


def runnable(line: str) -> bool:
    return MENTIONED.search(line) is None


@pytest.mark.parametrize("line", [line for line in EXAMPLES if runnable(line) and reads(line)])
def test_examples_that_read_run_on_the_demo_and_leave_the_store_as_it_is(
    demo: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(demo)
    store = demo / "demo" / "demo.duckdb"
    monkeypatch.setenv("ESJOBS_STORE", "duckdb:demo/demo.duckdb")
    if line.startswith("esjobs line-file"):
        assert run("export", "flags", "--out", "flags.csv").exit_code == 0
    before = store.read_bytes()
    done = run(*shlex.split(line)[1:])
    assert done.exit_code == 0, done.output
    assert store.read_bytes() == before
    assert not [each for each in store.parent.iterdir() if each.name.startswith("demo.duckdb.")]


WRITING = (
    *("ingest jobs", "corepower import", "aggregate", "correlate", "flag --window", "watch", "decompose"),
    *("prune", "setup"),
)


@pytest.mark.parametrize(
    "line", [line for line in EXAMPLES if runnable(line) and line.removeprefix("esjobs ").startswith(WRITING)]
)
def test_examples_of_steps_run_on_the_demo(demo: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)
    monkeypatch.setenv("ESJOBS_STORE", "duckdb:demo/demo.duckdb")
    done = run(*shlex.split(line)[1:])
    assert done.exit_code == 0, done.output


def test_the_form_of_an_input_is_an_argument(tmp_path: Path) -> None:
    table = tmp_path / "corepower.csv"
    table.write_text("level,name,corepower,benchmark\nqueue,A,10,HS06\n")
    for given in (("csv", str(table)), (str(table),)):
        done = run("corepower", "import", *given, store=tmp_path / f"{len(given)}.duckdb")
        assert done.exit_code == 0, done.output
    wrong = run("corepower", "import", "xml", str(table), store=tmp_path / "x.duckdb")
    assert wrong.exit_code == 2
    compare_text(wrong.stderr)
    lacking = run("reference", "import", str(table), store=tmp_path / "x.duckdb")
    assert lacking.exit_code == 2
    compare_text(lacking.stderr)
    assert not (tmp_path / "x.duckdb").exists()
