"""What jobs are judged by, as the settings say: rules, descriptions of clusters, memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esjobs.core.identity import content_id
from esjobs.issues.catalogue import USUAL
from esjobs.issues.rules.reading import read_rules
from esjobs.issues.rules.rule import Rules
from esjobs.records.clusters.description import Clusters
from esjobs.records.clusters.reading import read_clusters

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
        return content_id(parts)

    @property
    def wanted(self) -> frozenset[tuple[str, str]]:
        """The detectors and variants that are measured: the usual ones, and those that rules name."""
        named = {(rule.detector, rule.variant) for rule in self.rules.rules if rule.detector}
        return frozenset(named | set(USUAL))


def in_force(settings: Any, more_rules: Iterable[Path] = ()) -> Judging:
    """What the settings say (sections ``detect`` and ``clusters``); ``more_rules``: files read after theirs.

    Raises :class:`InputError` for a file that is wrong; nothing is in force then.
    """
    rules = read_rules((*settings.detect.rules, *more_rules))
    return Judging(rules, read_clusters(settings.clusters.files), settings.detect.block_values)
