"""What jobs are judged by, as the settings say: rules, descriptions of clusters, memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from esjobs.core.identity import content_id
from esjobs.core.sections import Sections
from esjobs.issues.catalogue import USUAL, detector_named
from esjobs.issues.rules.reading import read_rules
from esjobs.issues.rules.rule import Rules
from esjobs.issues.settings import DetectSettings
from esjobs.records.clusters.description import Clusters
from esjobs.records.clusters.reading import read_clusters
from esjobs.records.clusters.settings import ClustersSettings

METHOD = "2"
"""Raised when the same jobs and rules give other rows: days are made again then."""


@dataclass(frozen=True)
class Judging:
    """What jobs are judged by, and how much of their series is in memory at a time."""

    rules: Rules
    clusters: Clusters
    block_values: int

    @property
    def digest(self) -> str:
        """A short name of all that decides what is found, beside the jobs."""
        parts = {"rules": self.rules.digest, "clusters": repr(self.clusters.parts), "method": METHOD}
        packages = {detector_named(name).package for name, _ in self.wanted}
        return content_id(parts | ({"detectors": sorted(packages)} if packages != {""} else {}))

    @property
    def wanted(self) -> frozenset[tuple[str, str]]:
        """The detectors and variants that are measured: the usual ones, and those that rules name."""
        named = {(rule.detector, rule.variant) for rule in self.rules.rules if rule.detector}
        return frozenset(named | set(USUAL))


def in_force(settings: Sections, more_rules: Iterable[Path] = ()) -> Judging:
    """What the settings say (sections ``issues`` and ``clusters``); ``more_rules``: files read after theirs.

    Raises :class:`InputError` for a file that is wrong; nothing is in force then.
    """
    chosen = settings.section(DetectSettings)
    rules = read_rules((*chosen.rules, *more_rules))
    clusters = read_clusters(settings.section(ClustersSettings).files)
    return Judging(rules, clusters, chosen.block_values)
