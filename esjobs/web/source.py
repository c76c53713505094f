"""States of the store that the web shows, one after the other."""

import hashlib
import logging
import shutil
import threading
import time
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from esjobs.api.factory import embedded_file
from esjobs.api.session import Session
from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import EsjobsError, StoreBusyError, StoreError, UsageError
from esjobs.entry import open as open_session
from esjobs.publish.latest import latest_run
from esjobs.publish.stored import StoredRun
from esjobs.schema.catalogue import TABLES
from esjobs.schema.speed import SPEED
from esjobs.settings import Settings
from esjobs.store.duck.snapshot import State, copies_folder, copy_store, hide_people, remove_copy, state_of
from esjobs.store.duck.store import DuckStore

Made = TypeVar("Made")

_log = logging.getLogger(__name__)

_MEMORY = "300MB"
# seconds between two looks at the file, and for which a cluster's answers stay
_LOOK_S, _CLUSTER_S = 1.0, 60.0
# seconds between looks at the file while nobody asks, so that the first reader of a day sees its night
_ALONE_S = 30.0
# A copy may take this share of the time
_SHARE_OF_COPYING = 0.1
# Wait for a writer: at the start, later
_FIRST_WAIT_S, _WAIT_S = 5.0, 0.05


class Shown:
    """The store in one state. ``version``: its name, part of every cached answer."""

    def __init__(
        self, session: Session, version: str, run: StoredRun | None, copy: Path | None = None
    ) -> None:
        self.session = session
        self.version = version
        self.run = run
        self._copy = copy
        self._guard = threading.Lock()
        self._making = threading.Lock()
        self._made: dict[str, Any] = {}
        self._users = 0
        self._outdated = False

    def take(self) -> None:
        """Keep the session open until :meth:`release`."""
        with self._guard:
            self._users += 1

    def release(self) -> None:
        """End a use of the session."""
        with self._guard:
            self._users -= 1
        self._end()

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Return what several answers share, made at the first call."""
        with self._making:
            if name not in self._made:
                self._made[name] = make()
            made: Made = self._made[name]
            return made

    def retire(self) -> None:
        """Close the session after its last use."""
        self._outdated = True
        self._end()

    def _end(self) -> None:
        with self._guard:
            if not self._outdated or self._users or self._copy is None:
                return
            copy, self._copy = self._copy, None
        self.session.close()
        remove_copy(copy)


class Source:
    """The states of a store, one after the other.

    An embedded store is copied whenever it changed and nobody writes, also while nobody reads; until the copy
    is ready the one before is shown. ``warm``: called with the next state before it is shown.
    ``hides_people``: names of people are removed from the copy. A cluster is queried directly, and answers
    are renewed every minute.

    Raises :class:`UsageError` for a store that cannot be shown, :class:`StoreError` if there is none.
    """

    def __init__(
        self, settings: Settings, *, hides_people: bool = False, clock: Clock = system_clock
    ) -> None:
        self.clock = clock
        self.warm: Callable[[Shown], None] = lambda _shown: None
        self._settings = settings
        self._hides_people = hides_people
        self._file = embedded_file(settings)
        self._guard, self._switch = threading.Lock(), threading.Lock()
        self._shown: Shown | None = None
        self._state: State = ()
        self._day: date | None = None
        self._looked = self._next = 0.0
        self._folder: Path | None = None
        self._closed = threading.Event()
        if self._file is None and (hides_people or settings.store.startswith("duckdb")):
            needed = "--public requires a file" if hides_people else "esjobs web requires a file or a cluster"
            raise UsageError(f"{needed}; use --store duckdb:PATH")
        if self._file is not None and not self._file.exists():
            raise StoreError(f"no store at {self._file}; create it with esjobs ingest or esjobs demo")

    def taken(self) -> Shown:
        """Return the state to show, to be released after use."""
        shown = self.current()
        with self._switch:
            # a newer state may have replaced and closed this one in between
            shown = self._shown or shown
            shown.take()
        return shown

    def current(self) -> Shown:
        """Return the state to show. Raises :class:`StoreBusyError` while the first one cannot be read."""
        now, shown = time.monotonic(), self._shown
        if shown is None:
            return self._first()
        if now - self._looked >= _LOOK_S:
            self._looked = now
            if self._is_old(now) and self._guard.acquire(blocking=False):
                threading.Thread(target=self._renew_behind, daemon=True).start()
        return shown

    def _first(self) -> Shown:
        with self._guard:
            shown = self._shown
            if shown is not None:
                return shown
            shown = self._renew(_FIRST_WAIT_S)
        if self._file is not None:
            threading.Thread(target=self._look_alone, daemon=True).start()
        return shown

    def _look_alone(self) -> None:
        while not self._closed.wait(_ALONE_S):
            self.current()

    def close(self) -> None:
        """Close the store and remove copies."""
        self._closed.set()
        if self._shown is not None:
            self._shown.session.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _is_old(self, now: float) -> bool:
        if now < self._next:
            return False
        # pages tell ages in days
        is_of_today = self._day == self.clock().date()
        return self._file is None or not is_of_today or state_of(self._file) != self._state

    def _renew_behind(self) -> None:
        """Show the next state; a lock of the caller is released at the end."""
        try:
            self._renew(_WAIT_S)
        except StoreBusyError:
            self._next = time.monotonic() + _LOOK_S
        except EsjobsError as error:
            _log.warning("the state before is still shown: %s", error)
            self._next = time.monotonic() + _CLUSTER_S
        finally:
            self._guard.release()

    def _renew(self, wait_s: float) -> Shown:
        began, day = time.monotonic(), self.clock().date()
        state: State = ()
        if self._file is None:
            shown = self._of_cluster()
        else:
            shown, state = self._of_file(self._file, wait_s)
        try:
            self.warm(shown)
        except BaseException:
            shown.retire()
            raise
        with self._switch:
            before, self._shown = self._shown, shown
        self._state, self._day = state, day
        ended = time.monotonic()
        self._looked = ended
        pause = _CLUSTER_S if self._file is None else (ended - began) / _SHARE_OF_COPYING
        self._next = ended + pause
        if before is not None and before.session is not shown.session:
            before.retire()
        return shown

    def _of_file(self, file: Path, wait_s: float) -> tuple[Shown, State]:
        if self._folder is None:
            self._folder = copies_folder(file)
        copy, state = copy_store(file, self._folder, wait_s)
        try:
            if self._hides_people:
                hide_people(copy, TABLES)
            store = DuckStore(
                copy, tables=TABLES, memory_limit=_MEMORY, threads=2, read_only=True, keeps_file=True
            )
            session = open_session(store, settings=self._settings, read_only=True, clock=self.clock)
            return self._named(session, repr(state), copy), state
        except BaseException:
            remove_copy(copy)
            raise

    def _of_cluster(self) -> Shown:
        session = self._shown.session if self._shown is not None else self._opened()
        return self._named(session, str(int(time.monotonic() // _CLUSTER_S)))

    def _opened(self) -> Session:
        return open_session(settings=self._settings, create=False, read_only=True, clock=self.clock)

    def _named(self, session: Session, state: str, copy: Path | None = None) -> Shown:
        run = latest_run(session.store, SPEED)
        text = f"{state}\0{run and run.run}\0{self.clock().date()}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return Shown(session, f"{run.run if run else 'none'}.{digest}", run, copy)

    def now(self) -> datetime:
        """Return the time of the clock."""
        return self.clock()
