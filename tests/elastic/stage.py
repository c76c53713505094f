"""A store in a cluster and the same store embedded, which nothing ever disturbs, side by side."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.settings import ClusterSettings
from tests.conftest import NOW, memory_session
from tests.steps.grids import grid_jobs, write_jobs
from tests.steps.visible import RESULTS, Contents, at, contents, same

SPEED = np.arange(9.3, 15.0)
DECLARED = SPEED.copy()
DECLARED[3] *= 1.4


@contextmanager
def opened(url: str, prefix: str, **cluster: object) -> Iterator[Session]:
    """A session on a cluster, reached at an address."""
    given = {"prefix": prefix, "retries": 2, **cluster}
    settings = Settings(store=url, cluster=ClusterSettings.model_validate(given))
    with esjobs.open(settings=settings, clock=lambda: NOW) as session:
        yield session


class Stage:
    """Jobs come in versions: some of each are new, these first, most replace earlier ones, some are refused.

    ``embedded`` holds what the cluster should show. A scene that ends well leaves both alike for the next.
    """

    def __init__(self, prefix: str, folder: Path) -> None:
        self.prefix = prefix
        self.embedded = memory_session()
        self.spoilt = False
        self._folder = folder
        self._version = 0

    def next_file(self) -> Path:
        """The next version of the jobs."""
        self._version += 1
        rng = np.random.default_rng(self._version)
        speed = SPEED * rng.uniform(0.8, 1.2, len(SPEED))
        one, many = (
            grid_jobs(rng, speed, DECLARED, tasks=tasks, jobs=24, days=2, prefix=prefix)
            for tasks, prefix in ((1, f"new{self._version}-"), (4, ""))
        )
        frame = pd.concat([one, many], ignore_index=True)
        frame.loc[4::50, "cores"] = -1
        return write_jobs(frame, self._folder / f"version{self._version}.parquet")

    def begin(self, url: str) -> None:
        """A first run is published in both."""
        file = self.next_file()
        with opened(url, self.prefix) as session:
            for each in (session, self.embedded):
                act(each, "ingest", file)
                act(each, "run", file)

    def expected(self) -> Contents:
        """What is to be seen."""
        return visible(self.embedded)


def act(session: Session, step: str, file: Path) -> None:
    """One step of the daily job."""
    if step == "ingest":
        session.ingest("jobs", file)
    else:
        session.run()


def visible(session: Session) -> Contents:
    """What is to be seen, with the account of each load, without marks, which are a store's own."""
    found = contents(session)
    found["day_books"] = found["day_books"].drop(columns="fingerprint")
    loads = session.tables.loads().to_pandas()[
        ["load_id", "state", "rows_in", "stored", "updated", "rejected"]
    ]
    found["accounts"] = loads.sort_values("load_id", ignore_index=True)
    return found


def differing(left: Contents, right: Contents) -> list[str]:
    """The names of tables that are not the same."""
    return [name for name in left if not same(left[name], right[name])]


def assert_after(session: Session, after: Contents, *, reported: bool) -> None:
    """Everything is as after the undisturbed steps.

    ``reported``: whether the step has just reported what it did to each day. A run that is repeated finds
    days that the failed one has aggregated, and says so; a load reports elsewhere.
    """
    expected = {name: after[name] for name in after if reported or name != "runs"}
    found = differing(expected, visible(session))
    assert not found, found


def assert_before(found: Contents, before: Contents, after: Contents) -> None:
    """Jobs and results are as before; buckets, which are published with their books, may be as after."""
    at(found, before, after, ("buckets", "day_books"))
    kept = {name: before[name] for name in ("jobs", "rejects", *RESULTS, "steps")}
    assert differing(kept, found) == []
