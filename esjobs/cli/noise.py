"""Commands of the noise test: what monitoring costs programs that are tightly coupled."""

from pathlib import Path

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, FiniteRange, emit, rows_options

_COLLECTIVES = ("barrier", "allreduce", "alltoall")
_gate_option = click.option(
    "--gate",
    type=FiniteRange(min=0),
    default=1.5,
    show_default=True,
    metavar="PERCENT",
    help="Leave runs out whose slowest rank waited for a core for more of the time; one limit for all.",
)


@click.group("noise")
def noise() -> None:
    """What monitoring costs: collective operations of MPI timed with and without noise."""


@example("esjobs noise build noise-programs")
@noise.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--compiler", default="mpicc", show_default=True, metavar="NAME", help="The compiler of the MPI."
)
def build(folder: Path, compiler: str) -> None:
    """Compile the detector and the source of noise into FOLDER, with the MPI that is loaded."""
    from esjobs.noise.programs import build as build_programs

    for path in build_programs(folder, compiler):
        click.echo(path)


@example(
    "esjobs noise run noise-programs runs.csv --collective alltoall --bytes 2048 --levels 0,0.3,1 --ranks 28"
)
@noise.command("run")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--collective", type=click.Choice(_COLLECTIVES), default="barrier", show_default=True, help="Which."
)
@click.option(
    "--bytes",
    "length",
    type=click.IntRange(0, 1 << 30),
    default=2048,
    show_default=True,
    help="Of a message.",
)
@click.option(
    "--levels", default="0,0.1,0.3,1", show_default=True, metavar="LIST", help="Of noise, in per cent."
)
@click.option(
    "--repeat", type=click.IntRange(min=1), default=10, show_default=True, help="Runs of each level."
)
@click.option(
    "--seconds", type=FiniteRange(min=0.01), default=60.0, show_default=True, help="Length of a run."
)
@click.option("--ranks", type=click.IntRange(min=1), default=2, show_default=True, help="Processes of a run.")
@click.option(
    "--nodes", default="", metavar="LIST", help="Nodes, with commas; default: what the launcher takes."
)
@click.option("--core", type=int, default=0, show_default=True, help="Where noise sits; -1: anywhere.")
@click.option(
    "--launcher",
    default="mpirun --bind-to core",
    show_default=True,
    help="What starts the processes of a run.",
)
@click.option("--order", type=int, default=1, show_default=True, help="Seed of the order of levels.")
@click.pass_obj
def run_plan(
    obj: Context,
    folder: Path,
    file: Path,
    collective: str,
    length: int,
    levels: str,
    repeat: int,
    seconds: float,
    ranks: int,
    nodes: str,
    core: int,
    launcher: str,
    order: int,
) -> None:
    """Run the programs in FOLDER, levels in a random order, and write a row a run into FILE (CSV).

    The number of operations is found once, without noise. Of each run there is the time of the slowest rank,
    how long a rank waited for a core, and how often one was interrupted.
    """
    from esjobs.cli.terminal import progress_bar
    from esjobs.noise.programs import Plan, run

    try:
        chosen = tuple(float(level) for level in levels.split(","))
    except ValueError:
        raise click.UsageError(f"levels are numbers with commas, such as 0,0.1,1; not '{levels}'") from None
    hosts = tuple(filter(None, nodes.split(",")))
    plan = Plan(collective, length, chosen, repeat, seconds, ranks, launcher, hosts, core, order)
    with progress_bar(quiet=obj.quiet) as progress:
        number = run(plan, folder, file, progress)
    click.echo(f"{number} runs in {file}")


@example("esjobs noise analyse runs.csv")
@noise.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@_gate_option
@click.option(
    "--precision",
    type=FiniteRange(min=0.0001),
    default=0.2,
    show_default=True,
    metavar="PERCENT",
    help="Half width of an interval for which runs_needed is told.",
)
@rows_options
@click.pass_obj
def analyse(
    obj: Context, files: tuple[Path, ...], gate: float, precision: float, form: str, out: str
) -> None:
    """What recorded runs say: statistics per level, and from which level on noise is detected.

    detected: the 99 % intervals of the means without and with noise are disjoint, at this level and all above
    it. above: the laxer criterion, the mean above the interval without noise.
    """
    from esjobs.noise.analysis import analyse as analysed

    told = analysed(files, gate=gate / 100, precision=precision / 100)
    _say(obj, told.notes)
    rows = told.rows if form != "table" else told.rows.select(told.rows.column_names[:11])
    emit(rows, form, out, title="times of the slowest rank by level of noise (%)")


@example("esjobs noise compare off.csv on.csv", "esjobs noise compare off.csv on.csv --collector ldms-1s")
@noise.command()
@click.argument("off", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("on", type=click.Path(path_type=Path, dir_okay=False))
@_gate_option
@click.option(
    "--collector",
    metavar="NAME",
    help="Keep the cost in the store under this name; it is told beside scores.",
)
@rows_options
@click.pass_obj
def compare(
    obj: Context, off: Path, on: Path, gate: float, collector: str | None, form: str, out: str
) -> None:
    """What a collector costs: runs recorded while it was switched OFF against runs while it was ON.

    Without --collector no store is needed. Kept again for the same collector and configuration, a cost is
    replaced; esjobs show noise_costs has what is kept.
    """
    from esjobs.noise.analysis import compare as compared

    if collector is None:
        told = compared(off, on, gate=gate / 100)
    else:
        with obj.session(writes=True) as session:
            told, _ = session.noise.keep(collector, off, on, gate=gate / 100)
    _say(obj, told.notes)
    emit(told.rows, form, out)


def _say(obj: Context, notes: tuple[str, ...]) -> None:
    if not obj.quiet:
        from esjobs.cli.terminal import say

        for note in notes:
            say(f"note: {note}", err=True)
