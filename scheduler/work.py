"""What a step of a night is given, and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from esjobs.core.clock import Clock
from esjobs.core.window import Window
from esjobs.store.base import JobStore

if TYPE_CHECKING:
    from esjobs.settings import Settings


@dataclass(frozen=True)
class NightWork:
    """A night as its steps see it.

    ``night``: the day that is aggregated. ``windows``: those that are fitted this night, shortest first;
    empty before ``aggregate``, and where the day has no jobs. ``headline``: the one of them whose verdicts
    people and memory follow. ``window``: in a step that is done per window, the one that it is about.
    ``fitted_from``: of the windows of this attempt, the digest of what each is fitted from; worked out once,
    so that what follows from a fit is told by what that fit has read, whatever is imported meanwhile.
    """

    store: JobStore
    settings: "Settings"
    night: date
    clock: Clock
    session: Any
    windows: tuple[Window, ...] = ()
    headline: Window | None = None
    window: Window | None = None
    fitted_from: dict[Window, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class NightAccount:
    """What a step did; ``notes``: what a reader of the ledger should know; ``counts``: for its columns."""

    rows_in: int = 0
    rows_out: int = 0
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


def _always(work: NightWork) -> str | None:
    del work
    return None


def _there(work: NightWork) -> bool:
    del work
    return True


@dataclass(frozen=True)
class NightStep:
    """A step of every night. It is idempotent: run twice for a night it leaves byte-equal rows.

    ``function`` does it. ``inputs``: a digest of what it is made from; as long as that is the one that the
    ledger has, the step is not done again. None: it is done in every attempt, which suits what is cheap, and
    what has to look at the world (mail that waits). ``stands``: whether what it made is still in the store.
    ``per_window``: once for each window, the headline first. ``idle``: also in a night whose day has no jobs.
    ``after_failure``: also when the night has failed, so that somebody is told. ``first``: before a trigger
    looks for late records, because it may bring some.
    """

    name: str
    function: Callable[[NightWork], NightAccount]
    inputs: Callable[[NightWork], str | None] = _always
    stands: Callable[[NightWork], bool] = _there
    per_window: bool = False
    idle: bool = False
    after_failure: bool = False
    first: bool = False
