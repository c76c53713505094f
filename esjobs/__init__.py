"""esjobs turns the job records of a computing grid into speed factors of queues, sites and CPU models.

import esjobs

with esjobs.open("duckdb:jobs.duckdb") as session:
    session.ingest("panda", ["jobs.csv"])
    session.run(window=("2018-08-01", "2018-09-01"))
    session.flags.verdicts()
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esjobs.core.version import __version__

if TYPE_CHECKING:
    from esjobs.api.opening import open  # noqa: A004
    from esjobs.api.session import Session
    from esjobs.core.errors import (
        BlockedError,
        BooksError,
        ClockError,
        EsjobsError,
        InputError,
        KeywordError,
        MissingExtraError,
        NoJobsError,
        NoResultError,
        NothingToFitError,
        PartialAnswerError,
        PublishedError,
        ReadOnlyError,
        ReopenError,
        SchemaError,
        SettingsError,
        StoreBusyError,
        StoreError,
        TooLargeError,
        UsageError,
        WindowError,
    )
    from esjobs.core.window import Window
    from esjobs.settings import Settings

__all__ = [
    "BlockedError",
    "BooksError",
    "ClockError",
    "EsjobsError",
    "InputError",
    "KeywordError",
    "MissingExtraError",
    "NoJobsError",
    "NoResultError",
    "NothingToFitError",
    "PartialAnswerError",
    "PublishedError",
    "ReadOnlyError",
    "ReopenError",
    "SchemaError",
    "Session",
    "Settings",
    "SettingsError",
    "StoreBusyError",
    "StoreError",
    "TooLargeError",
    "UsageError",
    "Window",
    "WindowError",
    "__version__",
    "open",
]
# Sources of lazily imported names; every other name is an error
_HOMES = {
    "open": "esjobs.entry",
    "Session": "esjobs.api.session",
    "Settings": "esjobs.entry",
    "Window": "esjobs.core.window",
}


def _check_neighbours() -> None:
    # the packages shipped beside this one have generic names: a user's own file may shadow them
    home = Path(__file__).resolve().parent.parent
    for name in ("fitters", "dashboards", "scheduler"):
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if origin is None or origin.parent.parent != home:
            where = origin if origin is not None else "nothing"
            raise ImportError(
                f"esjobs requires its own package '{name}' beside {home / 'esjobs'}, but Python finds "
                f"{where}; rename that file or install esjobs into a separate environment"
            )


def __getattr__(name: str) -> Any:
    """Import a name at its first use: the command line's help must answer immediately."""
    if name not in __all__:
        raise AttributeError(f"module 'esjobs' has no attribute '{name}'")
    # errors are the only public names of one module that are not listed in _HOMES
    return getattr(import_module(_HOMES.get(name, "esjobs.core.errors")), name)


def __dir__() -> list[str]:
    """Return the names that users need, for completion."""
    return sorted(__all__)


_check_neighbours()
