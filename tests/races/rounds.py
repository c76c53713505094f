"""Rounds of commands at once on one store, and whether anything was lost.

After each round nothing may be half visible. Then what was refused or killed is done again, the run is made
once more, and everything must be as in a store in which the same was done one after the other.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from esjobs.api.session import Session
from esjobs.core.errors import BooksError, EsjobsError, NoResultError
from esjobs.core.window import Window
from esjobs.records.jobs.aggregate import require_buckets
from tests.conftest import memory_session
from tests.races.commands import COMMANDS, ENTERING, WINDOW, Ended, Place, Working
from tests.races.gate import Gate
from tests.servers.proxy import Action, Forward, Proxy, Reply, Request
from tests.steps.grids import grid_jobs, site_names, write_jobs
from tests.steps.visible import RESULTS, contents, same

SPEED_OF_QUEUES = np.arange(9.3, 15.0)
JOBS_OF_A_TASK = 24
MODES = ("mixed", "stands still", "killed")
"""``mixed``: requests pass in the order of a seed; ``stands still``: at one of its requests a process waits
until the others have ended; ``killed``: at one of its requests, or at some moment, it dies (signal 9)."""

_ONE_RUN = ("factors", "lines", "flags")
"""A table of each step: what is published together must be seen together."""
_MOST_REQUESTS = 60
_STANDS_S = 8.0
_LONGEST_S = 1.5
"""A command on an embedded store takes less; processes begin and die within."""


@dataclass
class Round:
    """What was done at once, how each process ended, and what was wrong then (nothing)."""

    commands: tuple[str, ...]
    mode: str
    seed: int
    ended: list[Ended] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """In words: how many were done, told to wait, or killed."""
        words = {0: "done", 1: "told", -9: "killed"}
        counts = Counter(words.get(one.code, "broken") for one in self.ended)
        return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))


class Installation:
    """A store on which rounds are played, and an embedded one that holds what it should hold."""

    def __init__(self, place: Place, folder: Path, seed: int = 0) -> None:
        self.place = place
        self.mirror = memory_session()
        self._folder = folder
        self._made = 0
        self._random = np.random.default_rng(seed)
        self._loads: list[str] = []
        first = self._jobs(tasks=3)
        with place.open() as session:
            session.store.set_up()
            for each in (session, self.mirror):
                each.ingest("jobs", first)
                each.run(WINDOW)

    def play(self, commands: Sequence[str], mode: str, seed: int, *, compare: bool = True) -> Round:
        """One round; what was not done is done afterwards.

        ``compare``: also make the run again and look at everything, of this round and of those before.
        """
        chance = random.Random(seed)
        if "undo" in commands and not self._loads:
            self._load()
        alike = chance.random() < 0.3
        arguments = self._arguments(commands, alike=alike)
        played = Round(tuple(commands), mode, seed)
        played.ended = self._at_once(commands, arguments, mode, chance)
        played.faults += [one.fault for one in played.ended if one.fault is not None]
        played.faults += self._half_visible()
        if not played.faults:
            self._settle(played.ended, arguments)
        if compare and not played.faults:
            played.faults += self._differing()
        return played

    def close(self) -> None:
        """Close the mirror."""
        self.mirror.close()

    def _arguments(self, commands: Sequence[str], *, alike: bool) -> list[str]:
        """A file for each that reads one, or the same for all; the load that is taken back."""
        arguments: list[str] = []
        for place, command in enumerate(commands):
            if alike and command in commands[:place]:
                arguments.append(arguments[commands.index(command)])
            elif command == "ingest":
                arguments.append(str(self._jobs(tasks=1)))
            elif command == "corepower":
                arguments.append(str(self._declared()))
            else:
                arguments.append(self._loads[-1] if command == "undo" else "")
        return arguments

    def _jobs(self, tasks: int) -> Path:
        """New jobs of new tasks."""
        self._made += 1
        frame = grid_jobs(
            self._random,
            SPEED_OF_QUEUES,
            SPEED_OF_QUEUES,
            tasks=tasks,
            jobs=JOBS_OF_A_TASK,
            prefix=f"f{self._made}-",
        )
        return write_jobs(frame, self._folder / f"jobs{self._made}.parquet")

    def _declared(self) -> Path:
        self._made += 1
        valid = pd.Timestamp("2018-01-01") + pd.Timedelta(hours=self._made)
        values = SPEED_OF_QUEUES * self._random.uniform(0.8, 1.2, len(SPEED_OF_QUEUES))
        frame = pd.DataFrame({"name": site_names(len(values)), "corepower": values})
        path = self._folder / f"declared{self._made}.csv"
        frame.assign(valid_from=valid.isoformat()).to_csv(path, index=False)
        return path

    def _load(self) -> None:
        """One load more, in both."""
        file = self._jobs(tasks=1)
        with self.place.open() as session:
            for each in (session, self.mirror):
                load = each.ingest("jobs", file).run
        self._loads.append(load)

    def _at_once(
        self, commands: Sequence[str], arguments: Sequence[str], mode: str, chance: random.Random
    ) -> list[Ended]:
        with self._ways(len(commands)) as (places, proxies):
            working: list[Working] = []
            chosen = chance.randrange(len(commands))
            if proxies:
                self._drive(proxies, working, mode, chosen, chance)
            for number, (place, command, argument) in enumerate(
                zip(places, commands, arguments, strict=True)
            ):
                told = self._folder / f"told{number}.json"
                told.unlink(missing_ok=True)
                if not proxies:
                    time.sleep(chance.choice((0.0, chance.uniform(0, _LONGEST_S))))
                working.append(Working(place, command, argument, told))
            if mode == "killed" and not proxies:
                working[chosen].process.join(chance.uniform(0, _LONGEST_S))
                working[chosen].kill()
            return [each.ended() for each in working]

    @contextmanager
    def _ways(self, count: int) -> Iterator[tuple[list[Place], list[Proxy]]]:
        """A way to the store for each process; to a cluster through a proxy of its own."""
        if self.place.store.startswith("duckdb:"):
            yield [self.place] * count, []
            return
        proxies = [Proxy(self.place.store) for _ in range(count)]
        for proxy in proxies:
            proxy.__enter__()
        try:
            yield [Place(proxy.url, self.place.prefix) for proxy in proxies], proxies
        finally:
            for proxy in proxies:
                proxy.close()

    @staticmethod
    def _drive(
        proxies: Sequence[Proxy],
        working: Sequence[Working],
        mode: str,
        chosen: int,
        chance: random.Random,
    ) -> None:
        """Let the requests pass as the mode says."""
        gate = Gate(chance.randrange(10**9))
        at = int(min(chance.expovariate(1 / 15), _MOST_REQUESTS))
        after = chance.random() < 0.5

        def gated(side: int) -> Action:
            def act(request: Request, forward: Forward) -> Reply:
                with gate.one(side):
                    return forward(request)

            return act

        def dies(request: Request, forward: Forward) -> Reply | None:
            reply = forward(request) if after else None
            working[chosen].kill()
            return reply

        def stands(request: Request, forward: Forward) -> Reply:
            deadline = time.monotonic() + _STANDS_S
            others = [each for number, each in enumerate(working) if number != chosen]
            while any(each.process.is_alive() for each in others) and time.monotonic() < deadline:
                time.sleep(0.02)
            return forward(request)

        if mode != "mixed":
            proxies[chosen].on(lambda _: True, dies if mode == "killed" else stands, skip=at)
        for side, proxy in enumerate(proxies):
            proxy.on(lambda _: True, gated(side), times=None)

    def _half_visible(self) -> list[str]:
        """What readers see of a part only."""
        with self.place.open() as session:
            faults = []
            try:
                require_buckets(session.store, Window.parse(WINDOW))
            except BooksError as error:
                faults.append(str(error))
            tasks = session.jobs().to_pandas().groupby("task_id").size()
            whole = len(SPEED_OF_QUEUES) * JOBS_OF_A_TASK
            faults += [f"{n} of {whole} jobs of {name}" for name, n in tasks.items() if n != whole]
            try:
                shown = {name: session.tables.read(name).rows.column("run").to_pylist() for name in _ONE_RUN}
            except NoResultError as error:
                return [*faults, f"no run is shown: {error}"]
            if len({frozenset(runs) for runs in shown.values()}) != 1 or len(set(shown["flags"])) != 1:
                faults.append("the latest run is not of one piece")
            if len(shown["factors"]) != len(shown["flags"]):
                faults.append(f"{len(shown['factors'])} factors have {len(shown['flags'])} flags")
        return faults

    def _settle(self, ended: Sequence[Ended], arguments: Sequence[str]) -> None:
        """Do again what was not done, and all of it in the store that nothing disturbs."""
        again = [
            (one.command, argument)
            for one, argument in zip(ended, arguments, strict=True)
            if one.command in ENTERING and one.code != 0
        ]
        if again:
            with self.place.open() as session:
                for command, argument in again:
                    _again(session, command, argument)
        done = dict.fromkeys(zip((one.command for one in ended), arguments, strict=True))
        # what is taken back is a load of before
        for command, argument in sorted(done, key=lambda item: item[0] != "undo"):
            if command == "undo":
                self._loads.remove(argument)
                self.mirror.undo(argument)
            elif command == "ingest":
                self._loads.append(self.mirror.ingest("jobs", argument).run)
            elif command == "corepower":
                self.mirror.declared.import_values(argument, benchmark="HS06")

    def _differing(self) -> list[str]:
        """What is not as in the store that nothing disturbed, once the run is made again."""
        with self.place.open() as session:
            session.run(WINDOW)
            self.mirror.run(WINDOW)
            stored, expected = (_compared(each) for each in (session, self.mirror))
        return [f"{name} differ" for name in expected if not same(stored[name], expected[name])]


def _again(session: Session, command: str, argument: str) -> None:
    try:
        COMMANDS[command](session, argument)
    except EsjobsError:
        if command != "undo":  # another has done it
            raise


def _compared(session: Session) -> dict[str, pd.DataFrame]:
    """What both stores must hold, however it came there."""
    everything = contents(session)
    kept = {name: everything[name] for name in ("jobs", "buckets", *RESULTS)}
    kept["day_books"] = everything["day_books"].drop(columns="fingerprint")
    declared = session.tables.corepower().to_pandas().drop(columns=["imported_at", "source"])
    kept["corepower"] = declared.sort_values(["valid_from", "name"], ignore_index=True)
    return kept
