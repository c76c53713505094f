"""Share of a window in which the sites of a federation had no declared outage."""

from collections.abc import Mapping
from dataclasses import dataclass

from esjobs.core.window import Window
from esjobs.delivered.pledges import Pledges
from esjobs.records.declared.downtimes import Outages, outages
from esjobs.records.jobs.query import query_jobs
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class Availability:
    """Outages of sites; ``size``: by lower-case site, core-hours per day without an outage."""

    outages: Outages
    size: Mapping[str, float]

    def share(self, pledges: Pledges, federation: str, site: str | None, window: Window) -> float | None:
        """Return the available share of a site, or of all sites of a federation; None if no site is known.

        Sites are weighted by their imported fractions if each has one, else by size, if known.
        """
        if site is not None:
            return self.outages.available(site, window)
        sites = [name for name, of in pledges.federations.items() if of == federation]
        fractions = [pledges.fractions.get((federation, name), 0.0) for name in sites]
        # fractions and core-hours have no common unit: all of one kind
        weights = fractions if all(fractions) else self._sizes(sites)
        shares = (self.outages.available(name, window) for name in sites)
        total = sum(weight * share for weight, share in zip(weights, shares, strict=True))
        return total / sum(weights) if sites else None

    def _sizes(self, sites: list[str]) -> list[float]:
        found = [self.size.get(name, 0.0) for name in sites]
        return found if any(found) else [1.0] * len(sites)


def read_availability(store: JobStore, stored: Window | None) -> Availability | None:
    """Return the availability of sites; None without imported downtimes or jobs. One read, one query.

    A site that was out has few hours for that very reason, so its size is taken from its available days.
    """
    declared = outages(store)
    if declared is None or stored is None:
        return None
    size: dict[str, float] = {}
    for row in query_jobs(store, ("site",), ("core_h",), window=stored).to_pylist():
        share = 0.0 if row["site"] is None else declared.available(row["site"], stored)
        if share > 0:
            # declarations and records spell sites in different cases
            size[row["site"].lower()] = (row["core_h"] or 0.0) / share
    return Availability(declared, size)
