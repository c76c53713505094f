"""Rules, cluster descriptions and memory limit from the settings."""

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
from esjobs.records.clusters.reading import clusters_of

METHOD = "3"
"""Version of the method; a change makes stored days stale."""


@dataclass(frozen=True)
class Judging:
    """Rules and cluster descriptions in force; ``block_values``: values of series in memory."""

    rules: Rules
    clusters: Clusters
    block_values: int

    @property
    def digest(self) -> str:
        """Digest of everything that decides on issues, besides the jobs."""
        parts = {"rules": self.rules.digest, "clusters": repr(self.clusters.parts), "method": METHOD}
        # another version of a foreign package may measure something else
        packages = {detector_named(name).package for name, _ in self.wanted}
        return content_id(parts | ({"detectors": sorted(packages)} if packages != {""} else {}))

    @property
    def wanted(self) -> frozenset[tuple[str, str]]:
        """Detectors and variants to measure: the defaults and those that rules name."""
        named = {(rule.detector, rule.variant) for rule in self.rules.rules if rule.detector}
        return frozenset(named | set(USUAL))


def in_force(settings: Sections, more_rules: Iterable[Path] = ()) -> Judging:
    """Read rules and cluster descriptions; ``more_rules``: files read after those of the settings.

    Raises :class:`InputError` for an invalid file.
    """
    chosen = settings.section(DetectSettings)
    rules = read_rules((*chosen.rules, *more_rules))
    return Judging(rules, clusters_of(settings), chosen.block_values)
