"""The site of a queue: as a queue table or the records tell it, else guessed from the queue's name.

Queues of one site share machines and often one declared corepower: leaving out "the site" means leaving out
all of them. Records of Slurm and ClusterCockpit name the cluster, which is the site of its partitions. The
guess takes off the endings that say what a queue offers (cores, memory, length, operating system) and keeps
the rest. It knows no sites: a farm with a name of its own (``INFN-T1-CINECA``) stays apart from its owner
(``INFN-T1``). A value from an imported queue table is always better; mark the guess as one.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import NamedTuple


class Site(NamedTuple):
    """The site of a queue, and whether it was guessed from the queue's name."""

    name: str
    guessed: bool


@dataclass(frozen=True)
class Sites:
    """Sites of queues. ``named``: queue -> site, as tables and records name it; others are guessed.

    ``several``: queue -> the clusters of its jobs, where these are more than one: they name no site.

    >>> Sites().of("IN2P3-CC_HIMEM"), Sites({"IN2P3-CC_HIMEM": "FR-CCIN2P3"}).of("IN2P3-CC_HIMEM").name
    (Site(name='IN2P3-CC', guessed=True), 'FR-CCIN2P3')
    """

    named: Mapping[str, str] = field(default_factory=dict)
    several: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, queue: str) -> Site:
        """Return the site of a queue."""
        named = self.named.get(queue)
        return Site(guess_site(queue), guessed=True) if named is None else Site(named, guessed=False)

    def at(self, level: str, name: str) -> Site | None:
        """Return the site of a name of a level; None of a CPU model."""
        if level == "queue":
            return self.of(name)
        return Site(name, guessed=name not in self._names) if level == "site" else None

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.named.values())


@lru_cache(maxsize=8192)
def guess_site(queue: str) -> str:
    """Return the site that a queue's name points to: the name without known endings and beginnings.

    These are compared without case. The result is a non-empty part of the name.

    >>> guess_site("IN2P3-CC_CL7_MCORE_HIMEM")
    'IN2P3-CC'
    >>> guess_site("CERN-PROD_T0_SCORE_SHORT")
    'CERN-PROD'
    >>> guess_site("INFN-T1-CINECA-SL7_HIMEM")
    'INFN-T1-CINECA'
    """
    site = queue.strip()
    endings, beginnings = queue_parts()
    before = ""
    # names end in several of them, in any order: ``_SL7_MCORE_HIMEM``
    while site != before:
        before = site
        for ending in endings:
            rest = site[: -len(ending)]
            if rest.strip("_- ") and site[-len(ending) :].lower() == ending.lower():
                site = rest.strip()
        for beginning in beginnings:
            rest = site[len(beginning) :]
            if rest.strip("_- ") and site[: len(beginning)].lower() == beginning.lower():
                site = rest.strip()
    return site or queue


@cache
def queue_parts() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the endings and the beginnings of queue names that the package knows, longest first.

    >>> "_MCORE" in queue_parts()[0], queue_parts()[1]
    (True, ('ANALY_',))
    """
    text = files("esjobs.records.names").joinpath("queue_suffixes.toml").read_text(encoding="utf-8")
    lists: dict[str, list[str]] = tomllib.loads(text)
    endings, beginnings = (
        tuple(sorted(lists[kind], key=lambda part: (-len(part), part))) for kind in ("suffixes", "prefixes")
    )
    return endings, beginnings
