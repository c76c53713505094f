"""Opening of sessions: ``esjobs.open``."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from esjobs.api.factory import open_store, require_address
from esjobs.api.session import Session
from esjobs.core.capability import Capability
from esjobs.core.clock import Clock, system_clock
from esjobs.core.text import kind_of
from esjobs.delivered.settings import DeliveredSettings
from esjobs.errors.settings import ErrorsSettings
from esjobs.records.declared.downtimes import SERVICES, load_services
from esjobs.records.errors.categories import ERROR_TABLES, load_table
from esjobs.records.jobs.aggregate import Progress
from esjobs.settings import Settings, load, with_sections
from esjobs.store.base import JobStore, require_store


def open(  # noqa: A001  used as esjobs.open(...)
    store: str | JobStore | None = None,
    *,
    config: str | Path | None = None,
    settings: Settings | None = None,
    create: bool = True,
    late: bool = False,
    read_only: bool = False,
    progress: Progress | None = None,
    clock: Clock = system_clock,
    capabilities: tuple[Capability, ...] = (),
) -> Session:
    """Open a store and return a session; use it as a context manager or close it.

    ``store``: ``duckdb:PATH``, ``duckdb::memory:``, the address of a cluster (None: of the settings), or an
    object that implements :class:`esjobs.store.base.JobStore` with the tables of
    ``esjobs.schema.catalogue.TABLES``; the session closes it. ``create``: create a missing store. ``late``:
    open it at first use, so that an unreadable input file neither creates nor locks it. ``progress``: called
    with the work, the amount done and the total. ``capabilities``: those with sections in the settings; all
    in ``esjobs.open``. Raises :class:`EsjobsError`; :class:`UsageError` for an object that is not a store.
    """
    if settings is None:
        named = store if isinstance(store, str) else None
        kind = with_sections(capabilities)
        settings = load(Path(config) if config is not None else None, named, kind=kind)
    elif isinstance(store, str):
        # settings are frozen, and may be those of another session
        settings = settings.model_copy(update={"store": store})
    session = partial(Session, settings=settings, read_only=read_only, progress=progress, clock=clock)
    if store is not None and not isinstance(store, str):
        return session(_classifying(settings, partial(require_store, store)), called=kind_of(store))
    opener = partial(
        _classifying, settings, partial(open_store, settings, create=create, read_only=read_only)
    )
    if not late:
        return session(opener())
    # a wrong address is an error now, not at the first question
    require_address(settings)
    return session(None, opener=opener)


def _classifying(settings: Settings, opener: Callable[[], JobStore]) -> JobStore:
    table, services = None, None
    with suppress(LookupError):
        if path := settings.section(ErrorsSettings).table:
            table = load_table(path)
    with suppress(LookupError):
        if path := settings.section(DeliveredSettings).services:
            services = load_services(path)
    # a wrong table must not leave a store open
    store = opener()
    if table is not None:
        ERROR_TABLES.use(store, table)
    if services is not None:
        SERVICES.use(store, services)
    return store
