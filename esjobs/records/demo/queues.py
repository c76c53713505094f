"""The queues of the made-up grid: names, shares, CPU mixtures, declarations."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esjobs.core.errors import UsageError
from esjobs.records.demo.cpus import CPU_MODELS, CpuModel
from esjobs.records.demo.truth import CoreClass, CpuTruth, Origin, QueueTruth

MIN_SITES = 20
MIN_MODELS = 5
MAX_MODELS_PER_SITE = 5
DEFAULT_COREPOWER = 10.0
"""Value that an information system serves for an unmeasured queue, in HS06 per core."""

_TREES = (
    "ALDER", "APPLE", "ASH", "ASPEN", "BALSA", "BAOBAB", "BEECH", "BIRCH", "BOXWOOD", "CEDAR", "CHERRY",
    "CYPRESS", "EBONY", "ELDER", "ELM", "FIR", "HAWTHORN", "HAZEL", "HEMLOCK", "HOLLY", "HORNBEAM", "JUNIPER",
    "KAPOK", "LARCH", "LAUREL", "LIME", "MAHOGANY", "MAPLE", "MYRTLE", "OAK", "OLIVE", "PALM", "PEAR", "PINE",
    "PLUM", "POPLAR", "QUINCE", "REDWOOD", "ROWAN", "SEQUOIA", "SPRUCE", "TAMARIND", "TEAK", "WALNUT",
    "WILLOW", "YEW", "ZELKOVA",
)  # fmt: skip
_SITE_KINDS = ("T1", "HEP", "LCG2", "GRID", "T2")
_SIBLING_SUFFIXES = ("_UCORE", "_MCORE", "_HIMEM", "_SCORE")
_SINGLE_SUFFIXES = ("", "", "", "_UCORE", "_UCORE", "_MCORE", "_SL7")
_CLASSES: dict[str, tuple[CoreClass, ...]] = {"_MCORE": ("multi",), "_SCORE": ("single",)}
# Queues of the sites that have several, for a grid of 60.
_SIBLINGS = (4, 3, 3, 2, 2, 2, 2, 2)


@dataclass(frozen=True)
class Roles:
    """Queues (by index) that play a part; no queue plays two."""

    tiny: frozenset[int]
    island: frozenset[int]
    misdeclared: dict[int, float]
    default: frozenset[int]
    inherited: frozenset[int]
    undeclared: frozenset[int]
    short: frozenset[int]


def plan_models(rng: np.random.Generator, n_models: int) -> tuple[CpuTruth, ...]:
    """The CPU models of a grid; two of three have a published reference value, true to about 2 %."""
    if not MIN_MODELS <= n_models <= len(CPU_MODELS):
        raise UsageError(f"a synthetic grid has {MIN_MODELS} to {len(CPU_MODELS)} CPU models; got {n_models}")
    scatter = np.exp(rng.normal(0.0, 0.02, n_models))
    return tuple(
        CpuTruth(
            name=model.name,
            speed=model.speed,
            raw=model.raw,
            reference=_clear_of_defaults(model.speed * scatter[n]) if _is_published(n, model) else None,
        )
        for n, model in enumerate(CPU_MODELS[:n_models])
    )


def _is_published(number: int, model: CpuModel) -> bool:
    return number % 3 != 2 and not model.name.startswith("QEMU")


def plan_queues(
    rng: np.random.Generator, n_queues: int, models: Sequence[CpuTruth]
) -> tuple[QueueTruth, ...]:
    """The queues of a grid, largest share first inside no particular order of names."""
    if n_queues < MIN_SITES:
        raise UsageError(f"a synthetic grid has at least {MIN_SITES} queues; got {n_queues}")
    sizes = _site_sizes(n_queues)
    names, sites, classes = _names(rng, sizes)
    site_of = np.repeat(np.arange(len(sizes)), sizes)
    shares = _shares(rng, n_queues)
    roles = _roles(rng, shares, site_of, np.asarray(sizes))
    shares = _shrink(shares, roles.tiny)
    mixtures = _mixtures(rng, site_of, len(models))
    speeds = np.asarray([1.0 / sum(part / models[m].speed for m, part in mixture) for mixture in mixtures])
    scatter = np.exp(rng.normal(0.0, 0.04, n_queues).clip(-0.09, 0.09))
    efficiency = rng.uniform(0.72, 0.97, n_queues)
    newer = rng.choice((0.0, 0.5, 1.0), len(sizes), p=(0.4, 0.15, 0.45))
    parents = _parent_values(rng, site_of, speeds, shares)
    queues = []
    for n in range(n_queues):
        origin, declared = _declared(n, roles, float(speeds[n] * scatter[n]), float(parents[n]))
        siblings = sizes[site_of[n]] > 1
        shown = siblings or (origin == "default" and n % 2 == 0)
        queues.append(
            QueueTruth(
                name=names[n],
                site=sites[n],
                speed=float(speeds[n]),
                share=float(shares[n]),
                core_classes=classes[n],
                mixture=tuple((models[m].name, part) for m, part in mixtures[n]),
                declared=declared,
                origin=origin,
                parent_corepower=float(parents[n]) if shown else None,
                factor=roles.misdeclared.get(n, 1.0),
                island=n in roles.island,
                events_factor=0.4 if n in roles.short else 1.0,
                efficiency=float(efficiency[n]),
                newer_pilot=float(newer[site_of[n]]),
            )
        )
    return tuple(queues)


def _site_sizes(n_queues: int) -> list[int]:
    # about a third of all queues have siblings
    sizes: list[int] = []
    for size in itertools.cycle(_SIBLINGS):
        if sum(sizes) + size > n_queues // 3:
            break
        sizes.append(size)
    return sizes + [1] * (n_queues - sum(sizes))


def _names(
    rng: np.random.Generator, sizes: Sequence[int]
) -> tuple[list[str], list[str], list[tuple[CoreClass, ...]]]:
    trees = rng.permutation(len(_TREES))
    names, sites, classes = [], [], []
    for number, size in enumerate(sizes):
        lap, tree = divmod(number, len(_TREES))
        stem = f"{_TREES[trees[tree]]}-{_SITE_KINDS[int(rng.integers(len(_SITE_KINDS)))]}"
        site = f"{stem}-{lap + 1}" if lap else stem
        single = _SINGLE_SUFFIXES[int(rng.integers(len(_SINGLE_SUFFIXES)))]
        for suffix in _SIBLING_SUFFIXES[:size] if size > 1 else (single,):
            names.append(site + suffix)
            sites.append(site)
            classes.append(_CLASSES.get(suffix, ("single", "multi")))
    return names, sites, classes


def _shares(rng: np.random.Generator, n_queues: int) -> NDArray[np.float64]:
    # heavy-tailed: Zipf with exponent 0.9 and a scatter of 30 %
    shares = np.arange(1, n_queues + 1) ** -0.9 * np.exp(rng.normal(0.0, 0.3, n_queues))
    rng.shuffle(shares)
    return np.asarray(shares / shares.sum())


def _shrink(shares: NDArray[np.float64], tiny: frozenset[int]) -> NDArray[np.float64]:
    shares = shares.copy()
    # too small to be judged
    shares[list(tiny)] *= 0.03
    return np.asarray(shares / shares.sum())


def _roles(
    rng: np.random.Generator,
    shares: NDArray[np.float64],
    site_of: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> Roles:
    # misdeclared queues are not among the smallest, so that they can be found
    n_queues = len(shares)
    ranked = np.argsort(-shares)
    alone = sizes[site_of] == 1
    taken: set[int] = set()

    def deal(count: int, candidates: NDArray[np.int64]) -> list[int]:
        free = [int(n) for n in candidates if int(n) not in taken]
        chosen = [free[int(n)] for n in rng.permutation(len(free))[:count]]
        taken.update(chosen)
        return chosen

    middle = ranked[n_queues // 4 : 2 * n_queues // 3]
    tiny = deal(max(1, n_queues // 30), ranked[-max(2, n_queues // 12) :])
    island = deal(min(4, max(2, n_queues // 20)), middle[alone[middle]])
    misdeclared = deal(round(n_queues / 10), ranked[: 3 * n_queues // 4])
    return Roles(
        tiny=frozenset(tiny),
        island=frozenset(island),
        misdeclared={n: 0.7 if turn % 2 else 1.6 for turn, n in enumerate(misdeclared)},
        inherited=frozenset(deal(max(1, round(n_queues / 15)), np.flatnonzero(~alone))),
        default=frozenset(deal(max(1, round(n_queues / 15)), ranked)),
        undeclared=frozenset(deal(max(1, n_queues // 30), ranked)),
        short=frozenset(deal(max(1, round(n_queues / 20)), ranked[: n_queues // 2])),
    )


def _mixtures(
    rng: np.random.Generator, site_of: NDArray[np.int64], n_models: int
) -> list[list[tuple[int, float]]]:
    # siblings run on nearly the same hosts; every model is at one site at least, if there are enough
    n_rc = int(site_of[-1]) + 1
    order = rng.permutation(n_models)
    models_of: list[list[int]] = [[] for _ in range(n_rc)]
    for number in range(max(n_models, n_rc)):
        at = models_of[number % n_rc]
        if len(at) < MAX_MODELS_PER_SITE:
            at.append(int(order[number % n_models]))
    parts: list[NDArray[np.float64]] = []
    for at in models_of:
        wanted = int(rng.choice(MAX_MODELS_PER_SITE, p=(0.15, 0.25, 0.25, 0.2, 0.15))) + 1
        others = [int(m) for m in rng.permutation(n_models) if int(m) not in at]
        at.extend(others[: max(0, wanted - len(at))])
        parts.append(rng.dirichlet(np.full(len(at), 2.0)) * 0.9 + 0.1 / len(at))
    mixtures = []
    for site in site_of:
        part = parts[site] * np.exp(rng.normal(0.0, 0.1, len(parts[site])))
        part /= part.sum()
        mixtures.append([(m, float(p)) for m, p in zip(models_of[site], part, strict=True)])
    return mixtures


def _parent_values(
    rng: np.random.Generator,
    site_of: NDArray[np.int64],
    speeds: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    mean = np.bincount(site_of, speeds * shares) / np.bincount(site_of, shares)
    value = mean * np.exp(rng.normal(0.0, 0.03, len(mean)))
    return np.asarray([_clear_of_defaults(v) for v in value])[site_of]


def _declared(queue: int, roles: Roles, honest: float, parent: float) -> tuple[Origin, float | None]:
    if queue in roles.undeclared:
        return "none", None
    if queue in roles.default:
        return "default", DEFAULT_COREPOWER
    if queue in roles.inherited:
        return "inherited", parent
    value = _clear_of_defaults(honest * roles.misdeclared.get(queue, 1.0))
    while abs(value / parent - 1.0) < 0.015:  # an own value that equals its parent's reads as inherited
        value = _clear_of_defaults(value * 1.02)
    return "own", value


def _clear_of_defaults(value: float) -> float:
    """Round to 0.01 and keep away from 10.0 and 12.0, which read as "nobody measured".

    >>> [_clear_of_defaults(v) for v in (10.01, 11.98, 13.337)]
    [10.2, 12.2, 13.34]
    """
    for default in (10.0, 12.0):
        if abs(value - default) < 0.1:
            return default + 0.2
    return round(float(value), 2)
