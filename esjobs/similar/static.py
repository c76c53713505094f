"""Program similarity by symbol names: TF-IDF over hashed names, and the cosine.

Term frequencies are binary. The weight of a name that d of n distinct fingerprints have is ln((1 + n) / (1 +
d)) + 1, the smoothed inverse document frequency of G. Salton, C. Buckley, *Term-weighting approaches in
automatic text retrieval*, Information Processing & Management 24 (1988), as in scikit-learn.
"""

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fitters.layout.arrays import Floats

N_HASHES = 2**18
"""Hash values of names; with 10,000 names a collision has probability 4 %."""


@dataclass(frozen=True)
class SharedName:
    """Name in two fingerprints; ``share``: its part of their similarity."""

    name: str
    share: float


class StaticSimilarity:
    """Similarities among ``n`` fingerprints, the symbol names of programs; NaN for empty ones.

    Weights follow from distinct fingerprints, so no result depends on how often a program was run or on
    order. Memory: 12 bytes per name of each distinct fingerprint.

    >>> programs = StaticSimilarity([["main", "dgemm"], ["main", "dgemm", "mpi"], ["main", "sort"], None])
    >>> programs.similarity(0).round(3).tolist()
    [1.0, 0.694, 0.312, nan]
    >>> programs.shared(0, 1, top=1)[0].name
    'dgemm'
    """

    def __init__(self, fingerprints: Sequence[Collection[str] | None]) -> None:
        self._fingerprints = fingerprints
        self._row = np.full(len(fingerprints), -1, dtype=np.int64)
        columns = self._distinct(fingerprints)
        sizes = np.array([len(each) for each in columns], dtype=np.int64)
        self._places = np.concatenate(columns) if columns else np.empty(0, dtype=np.int32)
        frequency = np.bincount(self._places, minlength=N_HASHES)
        self._weights: Floats = np.log((1 + len(columns)) / (1 + frequency)) + 1
        self._norms = np.array([np.sqrt(np.sum(self._weights[each] ** 2)) for each in columns])
        self._values = self._weights[self._places] / np.repeat(self._norms, sizes)
        self._starts = np.concatenate([[0], np.cumsum(sizes)])

    def __len__(self) -> int:
        return len(self._fingerprints)

    def similarity(self, i: int) -> Floats:
        """Return cosines of fingerprint ``i`` with all, (n,), in [0, 1]; NaN if either is missing."""
        result = np.full(len(self), np.nan)
        present = self._row >= 0
        if not present[i]:
            return result
        row = self._row[i]
        own = slice(self._starts[row], self._starts[row + 1])
        dense = np.zeros(N_HASHES)
        dense[self._places[own]] = self._values[own]
        # no row is empty, so that reduceat is the product of the sparse matrix with the vector
        cosines = np.add.reduceat(self._values * dense[self._places], self._starts[:-1])
        cosines = np.clip(cosines, 0.0, 1.0)
        # what is equal is 1, not 1 less rounding
        cosines[row] = 1.0
        result[present] = cosines[self._row[present]]
        return result

    def shared(self, i: int, j: int, top: int | None = 10) -> list[SharedName]:
        """Return names of both fingerprints, largest part of their similarity first; top None: all."""
        one, other = self._fingerprints[i], self._fingerprints[j]
        if not one or not other:
            return []
        names = sorted(set(one) & set(other))
        # each shared name adds the square of its weight to the product of the two vectors
        norms = self._norms[self._row[i]] * self._norms[self._row[j]]
        shares = self._weights[hashed(names)] ** 2 / norms
        order = np.argsort(-shares, kind="stable")[:top]
        return [SharedName(names[index], float(shares[index])) for index in order.tolist()]

    def _distinct(self, fingerprints: Sequence[Collection[str] | None]) -> list[npt.NDArray[np.int32]]:
        """Return sorted hashes of each distinct fingerprint; sets the row of each fingerprint."""
        rows: dict[bytes, int] = {}
        seen: dict[int, int] = {}
        columns: list[npt.NDArray[np.int32]] = []
        for index, names in enumerate(fingerprints):
            if not names:
                continue
            # one object stands for all jobs of a program, most of the time
            row = seen.get(id(names))
            if row is None:
                each = np.unique(hashed(names))
                row = rows.setdefault(each.tobytes(), len(columns))
                if row == len(columns):
                    columns.append(each)
                seen[id(names)] = row
            self._row[index] = row
        return columns


def hashed(names: Collection[str]) -> npt.NDArray[np.int32]:
    """Return CRC-32 hashes of names below ``N_HASHES``; names need not be valid UTF-8."""
    places = (zlib.crc32(name.encode("utf-8", "surrogatepass")) % N_HASHES for name in names)
    return np.fromiter(places, dtype=np.int32, count=len(names))
