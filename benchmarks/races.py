"""Commands at once on one store, by real processes, over and over: is anything lost?

    python -m benchmarks.races --engine elasticsearch8 --rounds 200 --out benchmarks/results/races.md

Each round plays two commands (every tenth: four) at once; see :mod:`tests.races.rounds` for how requests are
put in order, and for what is compared afterwards. Round n of every engine has seed n. The table of an engine
takes the place of an earlier one in the same file; other engines stay.
"""

import argparse
import contextlib
import itertools
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.machine import describe
from tests.races.commands import COMMANDS, Place
from tests.races.rounds import MODES, Installation, Round
from tests.servers.products import PRODUCTS
from tests.servers.server import Server

PAIRS = list(itertools.combinations_with_replacement(COMMANDS, 2))

LEG = 4
"""Rounds until everything is compared."""


def chosen(seed: int) -> tuple[tuple[str, ...], str]:
    """The commands and the mode of a round: every pair in turn, in every mode in turn."""
    mode = MODES[seed % len(MODES)]
    if seed % 10 == 9:
        return tuple(random.Random(seed).choices(list(COMMANDS), k=4)), mode  # noqa: S311
    first, second = PAIRS[(7 * seed) % len(PAIRS)]
    return ((first, second) if seed % 2 else (second, first)), mode


@contextlib.contextmanager
def place(engine: str, folder: Path) -> Iterator[tuple[Place, str]]:
    """A place on an engine, and what its title is."""
    if engine == "duckdb":
        yield Place(f"duckdb:{folder / 'jobs.duckdb'}"), f"DuckDB {version('duckdb')}"
        return
    product = PRODUCTS[engine]
    # not those of tests, which start fast and compute slowly
    with Server(product, java_options=()) as server:
        yield Place(server.url), f"{product.title} ({product.version})"


def play(engine: str, seeds: Sequence[int]) -> Iterator[tuple[str, list[Round]]]:
    """The rounds of some seeds on one store, a new one after a round with faults; all so far, each time."""
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory() as name, place(engine, Path(name)) as (where, title):
        installation: Installation | None = None
        for number, seed in enumerate(seeds):
            if installation is None:
                folder = Path(name) / f"from{number}"
                folder.mkdir()
                fresh = where if engine != "duckdb" else Place(f"duckdb:{folder / 'jobs.duckdb'}")
                installation = Installation(Place(fresh.store, f"races{number}"), folder, seed)
            commands, mode = chosen(seed)
            last = number + 1 == len(seeds)
            played = installation.play(commands, mode, seed, compare=last or seed % LEG == LEG - 1)
            rounds.append(played)
            print(seed, mode, ", ".join(commands), "->", played.outcome, played.faults or "", flush=True)
            for one in played.ended:
                if one.line:
                    print("     ", one.command, one.kind, one.line, flush=True)
            yield title, rounds
            if played.faults:
                installation.close()
                installation = None
        if installation is not None:
            installation.close()


def table(title: str, rounds: Sequence[Round]) -> str:
    """What became of the rounds of an engine, by mode and by pair."""
    lines = [
        f"## {title}",
        "",
        f"{len(rounds)} rounds, {sum(bool(one.faults) for one in rounds)} with faults.",
        "",
    ]
    lines += [
        "| mode | rounds | processes | done | told who works | killed | faults |",
        "|---|---|---|---|---|---|---|",
    ]
    for mode in MODES:
        mine = [one for one in rounds if one.mode == mode]
        codes = Counter(each.code for one in mine for each in one.ended)
        faults = sum(bool(one.faults) for one in mine)
        lines.append(_row(mode, len(mine), sum(codes.values()), codes[0], codes[1], codes[-9], faults))
    lines += ["", _row("command", "processes", "done", "told", "killed"), _row(*["---"] * 5)]
    by_command: dict[str, Counter[int]] = defaultdict(Counter)
    for one in rounds:
        for each in one.ended:
            by_command[each.command][each.code] += 1
    for command in COMMANDS:
        codes = by_command[command]
        lines.append(_row(f"`{command}`", sum(codes.values()), codes[0], codes[1], codes[-9]))
    kinds = Counter(each.kind for one in rounds for each in one.ended if each.line)
    said = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    return "\n".join([*lines, "", f"What was told, in one line each: {said or 'nothing'}.", ""])


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


HEADER = """# Commands at once

Written by `python -m benchmarks.races`: real processes work on one store at the same time. After each round
nothing may be half visible, and what was refused or killed is done again. After every fourth round the run is
made once more, and jobs, buckets, books, declared values and results must be those of a store in which the
same was done one after the other. `mixed`: requests to a cluster pass one by one in the order of a seed (on a
file: processes begin at moments of a seed); `stands still`: at one of its requests a process waits until the
others have ended; `killed`: at one of its requests, before or after the cluster carried it out, or at some
moment, a process dies (signal 9). Told: in one line who works, or that another was first.

"""


def main() -> None:
    """Play, print, and write the table and the rounds behind it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["duckdb", *PRODUCTS], default="duckdb")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first round")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/races.md"))
    given = parser.parse_args()
    faulty = False
    for title, rounds in play(given.engine, range(given.first, given.first + given.rounds)):
        # after each of them: an interrupted run of hours keeps its table
        write(given.out, given.engine, table(title, rounds))
        faulty = any(one.faults for one in rounds)
    sys.exit(faulty)


def write(out: Path, engine: str, text: str) -> None:
    """Put the table of an engine beside those of others."""
    numbers = out.with_suffix(".json")
    known = json.loads(numbers.read_text()) if numbers.exists() else {}
    known[engine] = {"machine": describe(), "table": text}
    numbers.write_text(json.dumps(known, indent=1) + "\n")
    out.write_text(HEADER + "\n".join(each["table"] for each in known.values()))


if __name__ == "__main__":
    main()
