"""The site of a queue: as a queue table or the records tell it, else guessed from the queue's name.

Queues of one site share machines and often one declared corepower: leaving out "the site" means leaving out
all of them. Records of Slurm and ClusterCockpit name the cluster, which is the site of its partitions. The
guess takes off the endings that say what a queue offers (cores, memory, length, operating system) and keeps
the rest. It knows no sites: a farm with a name of its own (``INFN-T1-CINECA``) stays apart from its owner
(``INFN-T1``). A value from an imported queue table is always better; mark the guess as one.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["Site", "Sites", "guess_site", "queue_prefixes", "queue_suffixes"]


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
        return Site(_guessed(queue), guessed=True) if named is None else Site(named, guessed=False)

    def at(self, level: str, name: str) -> Site | None:
        """Return the site of a name of a level; None of a CPU model."""
        if level == "queue":
            return self.of(name)
        return Site(name, guessed=name not in self._names) if level == "site" else None

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.named.values())


@lru_cache(maxsize=8192)
def _guessed(queue: str) -> str:
    # a run asks for each queue once per fit
    return guess_site(queue)


def guess_site(
    queue: str, suffixes: Sequence[str] | None = None, prefixes: Sequence[str] | None = None
) -> str:
    """Return the site that a queue's name points to: the name without known endings and beginnings.

    ``suffixes`` and ``prefixes`` replace the lists of ``queue_suffixes.toml``; they carry their separator and
    are compared without case, the longest first. The result is a non-empty part of the name.

    >>> guess_site("IN2P3-CC_CL7_MCORE_HIMEM")
    'IN2P3-CC'
    >>> guess_site("CERN-PROD_T0_SCORE_SHORT")
    'CERN-PROD'
    >>> guess_site("INFN-T1-CINECA-SL7_HIMEM")
    'INFN-T1-CINECA'
    >>> guess_site("my_farm_gold", suffixes=["_gold"])
    'my_farm'
    """
    site = queue.strip()
    if not site:
        return queue
    endings = queue_suffixes() if suffixes is None else _ordered(suffixes)
    beginnings = queue_prefixes() if prefixes is None else _ordered(prefixes)
    shorter = True
    # names end in several of them, in any order: ``_SL7_MCORE_HIMEM``
    while shorter:
        shorter = False
        for ending in endings:
            if _has_end(site, ending):
                site, shorter = site[: -len(ending)].strip(), True
        for beginning in beginnings:
            if _has_start(site, beginning):
                site, shorter = site[len(beginning) :].strip(), True
    return site


@cache
def queue_suffixes() -> tuple[str, ...]:
    """The endings that the package knows, longest first.

    >>> "_MCORE" in queue_suffixes()
    True
    """
    return _ordered(_lists()["suffixes"])


@cache
def queue_prefixes() -> tuple[str, ...]:
    """The beginnings that the package knows, longest first.

    >>> queue_prefixes()
    ('ANALY_',)
    """
    return _ordered(_lists()["prefixes"])


def _lists() -> dict[str, list[str]]:
    return tomllib.loads(
        files("esjobs.records.names").joinpath("queue_suffixes.toml").read_text(encoding="utf-8")
    )


def _ordered(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({part for part in parts if part}, key=lambda part: (-len(part), part)))


def _has_end(site: str, ending: str) -> bool:
    rest = site[: -len(ending)]
    return rest.strip("_- ") != "" and site[-len(ending) :].lower() == ending.lower()


def _has_start(site: str, beginning: str) -> bool:
    rest = site[len(beginning) :]
    return rest.strip("_- ") != "" and site[: len(beginning)].lower() == beginning.lower()
