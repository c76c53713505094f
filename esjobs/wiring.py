"""Builds the parts from the settings; the only place that knows which class stands behind which address."""

from pathlib import Path

from esjobs.core.errors import StoreError, UsageError
from esjobs.settings import Settings
from esjobs.store.base import JobStore


def open_store(settings: Settings, *, create: bool = True) -> JobStore:
    """Open the store that ``settings.store`` names; made with its folder when absent, unless not ``create``.

    Raises :class:`UsageError` for an address of unknown kind, :class:`StoreError` when it cannot be opened.
    """
    kind, _, rest = settings.store.partition(":")
    if kind != "duckdb" or not rest:
        raise UsageError(
            f"'{settings.store}' is no store; expected duckdb:PATH or duckdb::memory: (--store, ESJOBS_STORE)"
        )
    from esjobs.store.duck import DuckStore

    if rest == ":memory:":
        return DuckStore(None, memory_limit=settings.memory)
    path = Path(rest).expanduser()
    if not create and not path.exists():
        raise StoreError(
            f"no store at {path}; the first ingest makes it, or name another one with --store duckdb:PATH"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the folder {path.parent} for the store: {error.strerror}; "
            "name another place with --store duckdb:PATH"
        ) from error
    return DuckStore(path, memory_limit=settings.memory)
