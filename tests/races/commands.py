"""What processes do to a store at once: each command as a process of its own, and what came of it."""

import json
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import EsjobsError
from esjobs.settings import ClusterSettings
from tests.forked import FORKED

WINDOW = "2018-08-10/2018-08-12"
"""The two days of the jobs of :func:`tests.steps.grids.grid_jobs`."""

COMMANDS: Mapping[str, Callable[[Session, str], object]] = {
    "ingest": lambda session, file: session.ingest("jobs", file),
    "undo": lambda session, load: session.undo(load),
    "corepower": lambda session, file: session.declared.import_values(file, benchmark="HS06"),
    "aggregate": lambda session, _: session.speed.aggregate(WINDOW),
    "run": lambda session, _: session.run(WINDOW),
    "rebuild": lambda session, _: session.run(WINDOW, rebuild=True),
    "fit": lambda session, _: session.speed.fit(WINDOW),
    "flag": lambda session, _: session.speed.flag(WINDOW),
    "prune": lambda session, _: session.runs.prune(1),
    "setup": lambda session, _: session.store.set_up(),
}
"""By what people type (``rebuild``: ``run --rebuild``), the call; its argument is a file or a load."""

ENTERING = frozenset({"ingest", "undo", "corepower"})
"""Those that change what everything else follows from."""


@dataclass(frozen=True)
class Place:
    """Where a store is: an address with the prefix of its indices, or ``duckdb:FILE``."""

    store: str
    prefix: str = "esjobs"

    def open(self) -> Session:
        """A session on it."""
        cluster = ClusterSettings(prefix=self.prefix, retries=2)
        return esjobs.open(settings=Settings(store=self.store, cluster=cluster))


@dataclass(frozen=True)
class Ended:
    """How a process ended: ``code`` 0, 1 with the line that people read, -9; anything else is a fault."""

    command: str
    code: int
    line: str = ""
    kind: str = ""

    @property
    def fault(self) -> str | None:
        """What is wrong with such an end; None: nothing."""
        if self.code in (0, -9):
            return None
        if self.code == 1 and self.line and "\n" not in self.line:
            return None
        return f"{self.command} ended with {self.code}: {self.line}"


class Working:
    """A process that works on a store."""

    def __init__(self, place: Place, command: str, argument: str, told: Path) -> None:
        self.command = command
        self._told = told
        self.process: BaseProcess = FORKED.Process(target=_work, args=(place, command, argument, told))
        self.process.start()

    def kill(self) -> None:
        """``kill -9``."""
        self.process.kill()

    def ended(self, timeout_s: float = 150.0) -> Ended:
        """Wait for the end."""
        self.process.join(timeout_s)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            return Ended(self.command, 124, f"did not end in {timeout_s:.0f} s")
        told = json.loads(self._told.read_text()) if self._told.exists() else {}
        return Ended(self.command, self.process.exitcode, told.get("line", ""), told.get("kind", ""))


def _work(place: Place, command: str, argument: str, told: Path) -> None:
    try:
        with place.open() as session:
            COMMANDS[command](session, argument)
    except EsjobsError as error:
        told.write_text(json.dumps({"line": str(error), "kind": type(error).__name__}))
        raise SystemExit(1) from None
    except BaseException:
        told.write_text(json.dumps({"line": traceback.format_exc(), "kind": "traceback"}))
        raise SystemExit(2) from None
