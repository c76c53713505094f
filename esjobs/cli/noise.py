"""Commands of the noise test: overhead of monitoring in tightly coupled programs."""

from pathlib import Path

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, FiniteRange, emit, rows_options, say_notes

_COLLECTIVES = ("barrier", "allreduce", "alltoall")
_gate_option = click.option(
    "--gate",
    type=FiniteRange(min=0),
    default=1.5,
    show_default=True,
    metavar="PERCENT",
    help="Exclude runs whose slowest rank waited for a core for more of the time.",
)


@click.group("noise")
def noise() -> None:
    """Measure the overhead of monitoring with MPI collectives and injected noise."""


@example("esjobs noise build noise-programs")
@noise.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--compiler", default="mpicc", show_default=True, metavar="NAME", help="MPI compiler.")
def build(folder: Path, compiler: str) -> None:
    """Compile the detector and the noise generator into FOLDER."""
    from esjobs.noise.programs import build as build_programs

    for path in build_programs(folder, compiler):
        click.echo(path)


@example(
    "esjobs noise run noise-programs runs.csv --collective alltoall \\\n"
    "      --bytes 2048 --levels 0,0.3,1 --ranks 28"
)
@noise.command("run")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--collective",
    type=click.Choice(_COLLECTIVES),
    default="barrier",
    show_default=True,
    help="Collective operation.",
)
@click.option(
    "--bytes",
    "length",
    type=click.IntRange(0, 1 << 30),
    default=2048,
    show_default=True,
    help="Size of a message.",
)
@click.option(
    "--levels", default="0,0.1,0.3,1", show_default=True, metavar="LIST", help="Noise levels in per cent."
)
@click.option(
    "--repeat", type=click.IntRange(min=1), default=10, show_default=True, help="Runs of each level."
)
@click.option(
    "--seconds", type=FiniteRange(min=0.01), default=60.0, show_default=True, help="Length of a run."
)
@click.option("--ranks", type=click.IntRange(min=1), default=2, show_default=True, help="Processes of a run.")
@click.option(
    "--nodes", default="", metavar="LIST", help="Nodes, with commas; default: chosen by the launcher."
)
@click.option("--core", type=int, default=0, show_default=True, help="Core of the noise; -1: any.")
@click.option(
    "--launcher",
    default="mpirun --bind-to core",
    show_default=True,
    help="Command that starts the processes of a run.",
)
@click.option("--order", type=int, default=1, show_default=True, help="Seed of the random order.")
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
    """Run the test, noise levels in random order.

    FOLDER has the compiled programs; FILE (CSV) gets one row per run: time of the slowest rank, time that a
    rank waited for a core, interrupts. The number of operations is chosen once, without noise.
    """
    from esjobs.cli.terminal import progress_bar
    from esjobs.noise.programs import Plan, run

    try:
        chosen = tuple(float(level) for level in levels.split(","))
    except ValueError:
        raise click.UsageError(
            f"levels must be numbers separated by commas, such as 0,0.1,1; got '{levels}'"
        ) from None
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
    help="Half width of the interval for runs_needed.",
)
@rows_options
@click.pass_obj
def analyse(
    obj: Context, files: tuple[Path, ...], gate: float, precision: float, form: str, out: str
) -> None:
    """Analyse recorded runs: statistics and detection threshold.

    detected: the 99 % intervals of the means with and without noise are disjoint, at this level and all
    higher ones. above: the mean is above the interval without noise.
    """
    from esjobs.noise.analysis import analyse as analysed

    result = analysed(files, gate=gate / 100, precision=precision / 100)
    say_notes(obj, result.notes)
    rows = result.rows if form != "table" else result.rows.select(result.rows.column_names[:11])
    emit(rows, form, out, title="times of the slowest rank by level of noise (%)")


@example("esjobs noise compare off.csv on.csv", "esjobs noise compare off.csv on.csv --collector ldms-1s")
@noise.command()
@click.argument("off", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("on", type=click.Path(path_type=Path, dir_okay=False))
@_gate_option
@click.option(
    "--collector", metavar="NAME", help="Store the overhead under this name; esjobs show scores prints it."
)
@rows_options
@click.pass_obj
def compare(
    obj: Context, off: Path, on: Path, gate: float, collector: str | None, form: str, out: str
) -> None:
    """Overhead of a collector: runs with it off against on.

    OFF, ON: files of recorded runs. No store is needed without --collector. A second entry of a collector and
    configuration replaces the first (list: esjobs show noise_costs).
    """
    from esjobs.noise.analysis import compare as compared

    if collector is None:
        result = compared(off, on, gate=gate / 100)
    else:
        with obj.session(writes=True) as session:
            result, _ = session.noise.keep(collector, off, on, gate=gate / 100)
    say_notes(obj, result.notes)
    emit(result.rows, form, out)
