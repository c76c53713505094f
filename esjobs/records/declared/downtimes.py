"""Declared outages of the services that run jobs: hours in which a site was not available."""

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path

from esjobs.core.attached import OfStore
from esjobs.core.errors import SettingsError
from esjobs.core.window import Window
from esjobs.publish.publication import newest, read_table
from esjobs.schema.delivered import DOWNTIMES, OUTAGE
from esjobs.store.base import JobStore

_HALF = 0.5  # Of a day, beyond which it counts as an outage


@dataclass(frozen=True)
class Outages:
    """Declared outages by lower-case site: intervals without overlap, in order."""

    of: Mapping[str, tuple[tuple[datetime, datetime], ...]] = field(default_factory=dict)

    def available(self, site: str, window: Window) -> float:
        """Return the share of a window in which a site had no declared outage."""
        lost = timedelta(0)
        # intervals do not overlap, see merged(): none is subtracted twice
        for start, end in self.of.get(site.lower(), ()):
            lost += max(min(end, window.end) - max(start, window.start), timedelta(0))
        return 1 - lost / (window.end - window.start)

    def covers(self, site: str, day: date) -> bool:
        """True if outages cover at least half of a day."""
        return self.available(site, Window.of_days(day, day)) <= _HALF


def merged(intervals: Iterable[tuple[datetime, datetime]]) -> tuple[tuple[datetime, datetime], ...]:
    """Return intervals as disjoint ones, so that none is added up twice."""
    found: list[tuple[datetime, datetime]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return tuple(found)


def outages(store: JobStore) -> Outages | None:
    """Return the declared outages of compute services; None if no downtimes were imported. One read.

    A downtime that a later file of the same name lacks, although it was not over, is withdrawn: it ends with
    that import.
    """
    rows = read_table(store, DOWNTIMES).to_pylist()
    if not rows:
        return None
    # without a service all of the site is meant
    compute = {"", *SERVICES.of(store)}
    # the newest import of each file
    last = {row["source"]: row["imported_at"] for row in sorted(rows, key=lambda row: row["imported_at"])}
    found: dict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    for row in newest(DOWNTIMES, rows):
        at = last[row["source"]]
        until = row["until"] if row["imported_at"] == at else min(row["until"], at)
        stops = row["severity"] == OUTAGE and (row["service"] or "").lower() in compute
        if stops and row["begin"] < until:
            found[row["site"].lower()].append((row["begin"], until))
    return Outages({site: merged(each) for site, each in found.items()})


@cache
def shipped() -> frozenset[str]:
    """Return the services of the package."""
    return load_services(Path(__file__).with_name("services.toml"))


def load_services(path: Path) -> frozenset[str]:
    """Return the services of a file in lower case; :class:`SettingsError` for an unusable one."""
    try:
        listed = tomllib.loads(path.expanduser().read_text(encoding="utf-8")).get("compute")
    except (OSError, ValueError) as error:
        raise SettingsError(f"cannot read {path}: {error}; correct [delivered] services") from error
    if not isinstance(listed, list) or not listed or not all(isinstance(each, str) for each in listed):
        raise SettingsError(f'{path}: compute must be a list of services, such as ["ARC-CE"]')
    return frozenset(each.lower() for each in listed)


SERVICES = OfStore(shipped)
"""Services whose outage stops the jobs of a site."""
