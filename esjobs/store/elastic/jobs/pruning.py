"""Versions of jobs that can never be visible again.

A version is covered if another one has a newer end time, or better ones of its end time know all its fields.
Undoing any other load then gives the same result.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from esjobs.store.elastic.jobs.orphans import emptied
from esjobs.store.elastic.jobs.versions import MERGED, Version, contributing, identity_of, of_loads
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import Action


def hidden_jobs(at: PointInTime, loads: Set[int]) -> list[str]:
    """Return the identities of jobs with a hidden version of some loads."""
    query = {"bool": {"filter": [{"exists": {"field": "until"}}, {"range": {"load": {"gt": 0}}}]}}
    found: set[str] = set()
    for hits in at.pages(query, ["identity", "load"]):
        found.update(identity_of(hit) for hit in hits if hit["_source"]["load"] in loads)
    return sorted(found)


@dataclass
class Covered:
    """Covered versions: number, loads that replaced them, deleting actions."""

    versions: int = 0
    loads: set[int] = field(default_factory=set)
    actions: list[Action] = field(default_factory=list)

    def add(self, versions: Iterable[Version], loads: Set[int]) -> None:
        """Add versions of some jobs that others of ``loads`` cover."""
        of_jobs: dict[str, list[Version]] = defaultdict(list)
        for version in versions:
            if version.stored and version.load != MERGED and version.load in loads:
                of_jobs[version.identity].append(version)
        for of_job in of_jobs.values():
            self._add(sorted(of_loads(of_job), key=lambda version: version.merit, reverse=True))

    def _add(self, ordered: Sequence[Version]) -> None:
        """Add the covered versions of a job, given best first."""
        # versions of the newest end time that supply a value; all others are covered
        kept = contributing([each for each in ordered if each.end_time == ordered[0].end_time])
        for each in ordered:
            if each not in kept:
                self.versions += 1
                self.loads.update(better.load for better in ordered if better.merit > each.merit)
                self.actions.append(emptied(each))
