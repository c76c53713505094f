"""What is computed with special functions is what scipy.stats says, and that package stays unread."""

import subprocess
import sys

import numpy as np
from scipy import stats

from fitters.line.correlation import correlate
from tests.fitters.toys import Floats


def columns() -> list[tuple[Floats, Floats]]:
    """Loose, close, exact and opposed ones, with ties and without, 3 to 400 points, many decades."""
    rng = np.random.default_rng(21)
    pairs = []
    for n in (3, 4, 5, 9, 10, 57, 400):
        x = rng.uniform(5, 25, n)
        pairs += [
            (x, rng.uniform(5, 25, n)),
            (x, x * np.exp(0.05 * rng.normal(size=n))),
            (x, 1e-3 * x),
            (x, 30.0 - x),
            (np.append(np.round(x[1:] / 4), 99.0), np.append(np.round(rng.uniform(1, 5, n - 1)), 7.0)),
            (np.exp(20 * rng.normal(size=n)), np.exp(20 * rng.normal(size=n))),
        ]
    return pairs


def test_correlations_are_those_of_scipy() -> None:
    for x, y in columns():
        own, pearson, spearman = correlate(x, y), stats.pearsonr(x, y), stats.spearmanr(x, y)
        theirs, ours = [pearson.statistic, spearman.statistic], [own.pearson, own.spearman]
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


def test_who_fits_does_not_wait_for_scipy_stats() -> None:
    lines = "import sys, esjobs.speed.chain, fitters; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
