"""Nights that are killed with signal 9, at a random moment of a step that is named, and begun again."""

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from esjobs import Settings
from esjobs import open as open_session
from esjobs.records.night import NightAccount, NightStep, NightWork
from scheduler.nights import Nights
from tests.forked import FORKED
from tests.scheduler.stage import NIGHT_STEPS

_LONGEST_S = 300.0


def _announced(step: NightStep, to: Connection) -> NightStep:
    """The same step, which says that it begins."""

    def function(work: NightWork) -> NightAccount:
        to.send(step.name if work.window is None else f"{step.name} {work.window.days}d")
        return step.function(work)

    return replace(step, function=function)


def _night(settings: dict[str, Any], now: datetime, to: Connection) -> None:
    steps = [_announced(step, to) for step in NIGHT_STEPS]
    with open_session(settings=Settings.model_validate(settings), clock=lambda: now) as session:
        to.send("open")
        rows = Nights(session._context, steps=steps).tend()
        to.send([(row["night"], row["state"], row["reason"]) for row in rows])


class Victim:
    """A process that runs what is due."""

    def __init__(self, settings: Settings, now: datetime) -> None:
        self._ear, mouth = FORKED.Pipe(duplex=False)
        plain = settings.model_dump(mode="json", exclude={"rules"})
        self._process: BaseProcess = FORKED.Process(target=_night, args=(plain, now, mouth))
        self._process.start()
        mouth.close()
        self._began: dict[str, float] = {}

    def survive(self) -> dict[str, float]:
        """Let it end; when each step began, seconds after the store was open, and ``done``."""
        while isinstance(told := self._hear(), str):
            self._began[told] = time.monotonic()
        assert told is not None, "the process ended without a word"
        assert {state for _, state, _ in told} <= {"done", "missing"}, told
        self._began["done"] = time.monotonic()
        self._process.join(_LONGEST_S)
        opened = self._began.pop("open")
        return {name: moment - opened for name, moment in self._began.items()}

    def kill_in(self, step: str, after_s: float) -> bool:
        """Kill it so long after a step began; whether it was still alive then."""
        while isinstance(told := self._hear(), str):
            if told == step:
                self._process.join(after_s)
                break
        alive = self._process.is_alive()
        self._process.kill()
        self._process.join(_LONGEST_S)
        self._ear.close()
        return alive and self._process.exitcode == -9

    def _hear(self) -> Any:
        try:
            assert self._ear.poll(_LONGEST_S), "the process says nothing"
            return self._ear.recv()
        except EOFError:
            return None


def in_turn(began: dict[str, float], kills: int) -> list[str]:
    """So many steps; every one has its share."""
    names = [name for name in began if name != "done"]
    return [names[number % len(names)] for number in range(kills)]


def moments(began: dict[str, float], steps: Sequence[str], seed: int) -> list[tuple[str, float]]:
    """A random moment of each step, in seconds after it began."""
    chance = random.Random(seed)
    names = [name for name in began if name != "done"]
    ends = dict(zip(names, [*(began[name] for name in names[1:]), began["done"]], strict=True))
    return [(name, chance.uniform(0, ends[name] - began[name])) for name in steps]
