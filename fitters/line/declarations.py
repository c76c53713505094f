"""Mixture of honest and wrong declarations: where the line lies, and how probably each declaration is off.

ln(k / c) of an entry is the line m, plus what its declaration is off by, plus its error. Honest declarations
scatter about the line by tau; wrong ones may lie anywhere: free masses (atoms) on a grid. Position, scatter
and masses come from the entries themselves (empirical Bayes; Efron, J. Am. Stat. Assoc. 99 (2004) 96). What
tells the honest ones from others is one assumption: most declare honestly.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from fitters.layout.arrays import Codes, Floats

# Prior counts of the Dirichlet: of the honest part, and of each atom. The first says "most declare honestly"
HONEST_COUNT = 16.0
ATOM_COUNT = 0.05
ATOM_STEP = 0.05  # Distance of the atoms, and the width of each
# What the data must show, for a probability to be trusted: mass of the honest group, of any other group, and
# the error of the line
LEAST_HONEST = 0.60
MOST_OTHER = 0.30
MOST_LINE_ERROR = 0.05
LEAST_TAU = 0.02
Doubt = Literal["", "two groups", "few honest", "wide line"]
_HONEST_REACH = 0.18  # Distance from the line within which an atom belongs to the honest group
_GROUP_WIDTH = 0.25  # In ln(k / c), of atoms that count as one group
_FAR = 0.2  # Distance from every entry beyond which an atom is of no use
_COARSE_TAUS = np.array([0.035, 0.07, 0.14])
_FINE_TAUS = np.array([0.02, 0.035, 0.05, 0.07, 0.10, 0.14])
_COARSE_ROUNDS, _FINE_ROUNDS = 12, 8
_SECOND_MODE = 8.0  # Objective below the best within which another place of the line is looked at too
_APART = 0.1  # Distance at which it is another place
_KERNEL = 0.06  # Scatter of the entries that place the fine nodes
_FINE_STEPS = np.linspace(-3.2, 3.2, 13)  # Places of the fine nodes, in errors of the line
_LEAST_NODE = 0.01  # Weight of a node relative to the best below which it is left out
_HUBER = 1.345  # Cut of Huber's weights for 95 % efficiency (Huber, Ann. Math. Stat. 35 (1964) 73)


@dataclass(frozen=True, slots=True)
class OtherGroup:
    """Declarations beside the line that agree with each other.

    ``ratio``: their k / c over that of the line; ``share``: their mass; ``cut``: ln(k / c) half-way.
    """

    ratio: float
    share: float
    cut: float

    def holds(self, y: float) -> bool:
        """True if an entry is nearer to this group than to the line."""
        return (y > self.cut) == (self.ratio > 1)


@dataclass(frozen=True, slots=True, eq=False)
class DeclarationMixture:
    """Mixture fitted to the entries of a line; a node is a position of the line and a scatter about it.

    ``m``, ``tau``, ``weight``, ``honest``: by node, shape (J,); the weights add up to 1. ``atoms``: places,
    shape (G,); ``mass``: of each atom under each node, (G, J). ``ln_density``: of each entry, (n, J).
    """

    y: Floats
    variance: Floats
    m: Floats
    tau: Floats
    weight: Floats
    honest: Floats
    atoms: Floats
    mass: Floats
    ln_density: Floats

    def line(self) -> tuple[float, float]:
        """Return the position of the line and its error."""
        mean, error = _moments(self.weight[None, :], self.m)
        return float(mean[0]), float(error[0])

    def lines_without(self, group: Codes, n_groups: int) -> tuple[Floats, Floats]:
        """Return position and error of the line without the entries of each group, shape (n_groups,).

        By the weights that the nodes have without them (case deletion by importance weights; Peruggia, J. Am.
        Stat. Assoc. 92 (1997) 199).
        """
        of_group = np.zeros((n_groups, self.m.size))
        np.add.at(of_group, group, self.ln_density)
        # the likelihood is a product over entries: without a group it is divided by the factors of the group
        ln_weight = np.log(self.weight) - of_group
        weight = np.exp(ln_weight - ln_weight.max(axis=1, keepdims=True))
        return _moments(weight / weight.sum(axis=1, keepdims=True), self.m)

    def p_off(self, y: Floats, variance: Floats, limit: float) -> Floats:
        """Return the probability that each declaration is off by more than the limit.

        ``y``, ``variance``: of any names; the entries are their prior.
        """
        low, high = np.log(1.0 - limit) if limit < 1 else -np.inf, np.log(1.0 + limit)
        p = np.zeros(y.size)
        ln_atoms = _ln_density(y[:, None] - self.atoms, (variance + ATOM_STEP**2)[:, None])
        drawn, spread = _posterior(y[:, None], variance[:, None], self.atoms, ATOM_STEP)
        for node, weight in enumerate(self.weight):
            m, tau = self.m[node], self.tau[node]
            ln_honest = _ln_density(y - m, variance + tau**2)
            # Far from every entry all densities may be 0: only their ratios matter.
            largest = np.maximum(ln_atoms.max(axis=1), ln_honest)
            honest = self.honest[node] * np.exp(ln_honest - largest)
            others = self.mass[:, node] * np.exp(ln_atoms - largest[:, None])
            own, own_spread = _posterior(y, variance, m, tau)
            outside = honest * _outside(own - m, own_spread, low, high)
            outside += (others * _outside(drawn - m, spread, low, high)).sum(axis=1)
            p += weight * outside / (honest + others.sum(axis=1))
        return np.clip(p, 0.0, 1.0)

    def doubt(self) -> Doubt:
        """Return why the line does not tell who is wrong; empty if it does."""
        if self.other_group().share > MOST_OTHER:
            return "two groups"
        if self.honest_share() < LEAST_HONEST:
            return "few honest"
        return "" if self.line()[1] < MOST_LINE_ERROR else "wide line"

    def honest_share(self) -> float:
        """Return the mass of the honest group: its normal and the atoms beside the line."""
        near = np.abs(self.atoms[:, None] - self.m) <= _HONEST_REACH
        return float(self.weight @ (self.honest + (self.mass * near).sum(axis=0)))

    def other_group(self) -> OtherGroup:
        """Return the largest group beside the honest one; its share may be next to nothing."""
        far = np.abs(self.atoms[:, None] - self.m) > _HONEST_REACH
        distance = self.atoms - self.atoms[:, None]
        together = (distance > -0.5 * ATOM_STEP) & (distance < _GROUP_WIDTH - 0.5 * ATOM_STEP)
        of_place = together @ (self.mass * far)
        share = float(self.weight @ of_place.max(axis=0))
        node = int(self.weight.argmax())
        mass = self.mass[:, node] * far[:, node] * together[int(of_place[:, node].argmax())]
        line = float(self.m[node])
        centre = float(mass @ self.atoms / mass.sum()) if mass.any() else line
        return OtherGroup(float(np.exp(centre - line)), share, 0.5 * (centre + line))

    def memberships(self) -> Floats:
        """Return the probability of each entry to be of the honest part."""
        density = _density(self.y[:, None] - self.m, self.variance[:, None] + self.tau**2)
        return np.asarray((self.honest * density / np.exp(self.ln_density)) @ self.weight)


def fit_declarations(y: Floats, variance: Floats) -> DeclarationMixture:
    """Fit the mixture to one or more entries.

    Expectation maximisation of the masses, for many places and scatters of the line at once: first on the
    quantiles of the entries, then finely about the best, and about another place that is nearly as good. The
    weights of the nodes are the posterior with the masses at their best. O(n) per round and node.
    """
    atoms = _atom_places(y)
    of_atoms = _density(y[:, None] - atoms, (variance + ATOM_STEP**2)[:, None])
    places = np.quantile(y, np.linspace(0.1, 0.9, 17))
    m, tau = (each.ravel() for each in np.meshgrid(places, _COARSE_TAUS, indexing="ij"))
    share = np.full((atoms.size, m.size), 0.3 / atoms.size)
    coarse = _maximise(y, variance, of_atoms, m, tau, np.full(m.size, 0.7), share, _COARSE_ROUNDS)
    nodes = [
        _fine_nodes(y, variance, float(m[index]), coarse[0][index], coarse[1][:, index])
        for index in _modes(m, coarse[2])
    ]
    m, tau, ln_prior, honest, mass = (np.concatenate(part, axis=-1) for part in zip(*nodes, strict=True))
    honest, mass, objective = _maximise(y, variance, of_atoms, m, tau, honest, mass, _FINE_ROUNDS)
    # Nodes lie at unequal distances: each stands for its stretch of the line
    ln_weight = objective + ln_prior
    weight = np.exp(ln_weight - ln_weight.max())
    kept = weight >= _LEAST_NODE
    m, tau, honest, mass, weight = m[kept], tau[kept], honest[kept], mass[:, kept], weight[kept]
    density = of_atoms @ mass + honest * _density(y[:, None] - m, variance[:, None] + tau**2)
    return DeclarationMixture(
        y, variance, m, tau, weight / weight.sum(), honest, atoms, mass, np.log(density)
    )


def robust_tau(y: Floats, variance: Floats, membership: Floats) -> float:
    """Return the scatter about the line beyond the errors, of the entries that are honest.

    The estimator of Paule & Mandel (J. Res. NBS 87 (1982) 377) with Huber's cut of large residuals: sum r
    min(z^2, b^2) = E[min(Z^2, b^2)] (sum r - 1). ``membership``: r, the weight of each entry.
    """
    cut = _HUBER
    expected = 2 * special.ndtr(cut) - 1 - 2 * cut * np.exp(-0.5 * cut**2) / np.sqrt(2 * np.pi)
    expected += 2 * cut**2 * special.ndtr(-cut)
    target = float(expected * (membership.sum() - 1.0))

    def excess(tau: float) -> float:
        scale = np.sqrt(variance + tau**2)
        z = (y - _huber_mean(y, scale, membership)) / scale
        return float(membership @ np.minimum(z * z, cut * cut)) - target

    low, high = LEAST_TAU, max(float(np.ptp(y)), 2 * LEAST_TAU)
    if excess(low) <= 0:
        return low
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return 0.5 * (low + high)


def _huber_mean(y: Floats, scale: Floats, membership: Floats) -> float:
    weight = membership / scale**2
    mean = float(weight @ y / weight.sum())
    for _ in range(20):
        size = np.abs(y - mean) / scale
        huber = weight * np.minimum(1.0, _HUBER / np.maximum(size, 1e-12))
        mean = float(huber @ y / huber.sum())
    return mean


def _atom_places(y: Floats) -> Floats:
    # A grid over all entries, without its empty stretches: one wild entry must not cost thousands of atoms.
    first = y.min() - 2 * ATOM_STEP
    reach = int(np.rint(_FAR / ATOM_STEP))
    nearest = np.unique(np.rint((y - first) / ATOM_STEP).astype(np.int64))
    steps = np.unique(nearest[:, None] + np.arange(-reach, reach + 1))
    last = int(np.ceil((y.max() - first) / ATOM_STEP)) + 2
    return np.asarray(first + ATOM_STEP * steps[(steps >= 0) & (steps <= last)])


def _density(distance: Floats, variance: Floats) -> Floats:
    return np.exp(_ln_density(distance, variance))


def _ln_density(distance: Floats, variance: Floats) -> Floats:
    return -0.5 * (distance**2 / variance + np.log(2 * np.pi * variance))


def _maximise(
    y: Floats,
    variance: Floats,
    of_atoms: Floats,
    m: Floats,
    tau: Floats,
    honest: Floats,
    mass: Floats,
    rounds: int,
) -> tuple[Floats, Floats, Floats]:
    """Return the masses of the honest part and the atoms under each node, and the objective."""
    own = _density(y[:, None] - m, variance[:, None] + tau**2)
    total = y.size + HONEST_COUNT + ATOM_COUNT * mass.shape[0]
    for _ in range(rounds):
        inverse = 1.0 / (of_atoms @ mass + honest * own)
        mass = (mass * (of_atoms.T @ inverse) + ATOM_COUNT) / total
        honest = (honest * (own * inverse).sum(axis=0) + HONEST_COUNT) / total
    objective = np.log(of_atoms @ mass + honest * own).sum(axis=0)
    objective += HONEST_COUNT * np.log(honest) + ATOM_COUNT * np.log(mass).sum(axis=0)
    return honest, mass, objective


def _modes(m: Floats, objective: Floats) -> list[int]:
    # The best node, and the best of another place if it is nearly as good.
    best = int(objective.argmax())
    others = np.where(np.abs(m - m[best]) > _APART, objective, -np.inf)
    second = int(others.argmax())
    return [best, second] if others[second] > objective[best] - _SECOND_MODE else [best]


def _fine_nodes(
    y: Floats, variance: Floats, place: float, honest: Floats, mass: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return positions, scatters, ln(spacing) and the masses to start from, about one place of the line."""
    full = variance + _KERNEL**2
    near = np.exp(-0.5 * (y - place) ** 2 / full) / full
    place = float(near @ y / near.sum())
    error = float(1.0 / np.sqrt(near.sum()))
    m, tau = (each.ravel() for each in np.meshgrid(place + error * _FINE_STEPS, _FINE_TAUS, indexing="ij"))
    return (
        m,
        tau,
        np.full(m.size, np.log(error)),
        np.full(m.size, honest),
        np.repeat(mass[:, None], m.size, axis=1),
    )


def _posterior(y: Floats, variance: Floats, centre: Floats | float, scatter: float) -> tuple[Floats, Floats]:
    # Of a value that scatters about a centre and was measured as y.
    total = variance + scatter**2
    mean: Floats = centre + (y - centre) * (scatter**2 / total)
    spread: Floats = np.sqrt(variance * scatter**2 / total)
    return mean, spread


def _outside(mean: Floats, spread: Floats, low: float, high: float) -> Floats:
    spread = np.maximum(spread, 1e-9)  # Of exact values the probability is 0 or 1, not NaN
    return special.ndtr((low - mean) / spread) + special.ndtr((mean - high) / spread)


def _moments(weight: Floats, m: Floats) -> tuple[Floats, Floats]:
    mean = weight @ m
    return mean, np.sqrt(np.maximum(weight @ (m * m) - mean**2, 0.0))
