"""Attacks on a demo until the time is over or something breaks that is no error of esjobs."""

import random
import resource
import shutil
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import esjobs
from esjobs.cli.demo import demonstrate
from esjobs.core.errors import EsjobsError
from esjobs.entry import load
from esjobs.web.app import Web
from esjobs.web.source import Source
from tests.fuzz.targets import TARGETS, Attacked
from tests.web.client import Client

MOST_SECONDS = 30
MOST_BYTES = 6_000_000_000
"""Addresses that the process may take: a case that asks for more fails."""


class BrokenError(Exception):
    """A case that broke; ``seed`` and ``number`` repeat it."""


@contextmanager
def prepared(demo: Path | None = None) -> Iterator[Attacked]:
    """A demo, open for reading, its web, and an empty folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if demo is None:
            demonstrate(folder, jobs=30_000, seed=3)
        else:
            shutil.copy(demo, folder / "demo.duckdb")
        store = f"duckdb:{folder / 'demo.duckdb'}"
        source = Source(load(None, store), hides_people=False)
        application = Web(source, public=False).application({"localhost"})
        with esjobs.open(store, read_only=True) as session, Client(application) as web:
            yield Attacked(session, web, folder)
        source.close()


def attack(attacked: Attacked, target: str, seed: int, number: int) -> str:
    """Run one case; the class of the error it raised, or ``fine``. Raises :class:`BrokenError`."""
    rng = random.Random(f"{target} {seed} {number}")
    signal.alarm(MOST_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TARGETS[target](rng, attacked)
    except EsjobsError as error:
        if "\n" in str(error):
            raise BrokenError(f"{target}, seed {seed}, case {number}: more than one line") from error
        return type(error).__name__
    except Exception as error:
        raise BrokenError(f"{target}, seed {seed}, case {number}: {type(error).__name__}") from error
    finally:
        signal.alarm(0)
    return "fine"


def attack_for(attacked: Attacked, targets: Sequence[str], seed: int, seconds: float) -> Counter[str]:
    """Run cases of all targets in turn until the time is over; how often each ended in which way."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, too_long)
    ends: Counter[str] = Counter()
    until = time.monotonic() + seconds
    number = 0
    while time.monotonic() < until:
        for target in targets:
            ends[f"{target}: {attack(attacked, target, seed, number)}"] += 1
        number += 1
    return ends


def too_long(*_: object) -> None:
    """Handler of the alarm: end the case."""
    raise TimeoutError(f"more than {MOST_SECONDS} s")
