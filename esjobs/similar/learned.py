"""Program similarity from vectors that Doc2Vec learns from symbol names (gensim, optional).

Q. Le, T. Mikolov, Distributed Representations of Sentences and Documents, ICML 2014 (distributed bag of
words); D. Shaikhislamov, V. Voevodin, Solving the Problem of Detecting Similar Supercomputer Applications
Using Machine Learning Methods, CCIS 1263, 2020. Symbol names have no meaningful order, hence no contexts.
"""

import zlib
from collections.abc import Collection, Sequence

import numpy as np

from esjobs.core.extras import require
from fitters.layout.arrays import Floats

_DIMENSIONS = 64
_PASSES = (20, 300)
# Passes over all names, within limits as many as it takes to learn from so many: 20 over few names leave all
# vectors where they began, next to each other
_WORDS = 300_000
_SEED = 1
_LONGEST = 10_000  # Words of a document that gensim reads; it drops what follows without a warning


class LearnedSimilarity:
    """Similarities among ``n`` fingerprints, as :class:`~esjobs.similar.static.StaticSimilarity`.

    Deterministic: sorted distinct fingerprints, one thread, fixed seed. Names of a single fingerprint are
    ignored.

    Raises :class:`MissingExtraError` without gensim. Cost: 20 or more passes over all names.
    """

    def __init__(self, fingerprints: Sequence[Collection[str] | None]) -> None:
        contents = [tuple(sorted(set(names))) if names else None for names in fingerprints]
        distinct = sorted({names for names in contents if names is not None})
        rows = {names: row for row, names in enumerate(distinct)}
        self._row = np.array([-1 if names is None else rows[names] for names in contents], np.int64)
        self._vectors = _learned(distinct)

    def __len__(self) -> int:
        return len(self._row)

    def similarity(self, i: int) -> Floats:
        """Return cosines of fingerprint ``i`` with all, (n,), at least 0; NaN if either is missing."""
        result = np.full(len(self), np.nan)
        row = self._row[i]
        if row >= 0:
            cosines = np.clip(self._vectors @ self._vectors[row], 0.0, 1.0)
            # what is equal is 1, not 1 less rounding
            cosines[row] = 1.0
            present = self._row >= 0
            result[present] = cosines[self._row[present]]
        return result


def _learned(documents: Sequence[Sequence[str]]) -> Floats:
    """Return a unit vector per document; zeros if it only has names of its own."""
    doc2vec = require("gensim.models.doc2vec", extra="programs", needed_by='similar.programs = "doc2vec"')
    # what is no text in UTF-8 cannot be hashed by gensim either
    words = [[name.encode("utf-8", "surrogatepass").hex() for name in names] for names in documents]
    tagged = [
        doc2vec.TaggedDocument(names[begin : begin + _LONGEST], [number])
        for number, names in enumerate(words)
        for begin in range(0, len(names), _LONGEST)
    ]
    n_words = sum(map(len, words))
    passes = min(max(_PASSES[0], _WORDS // max(n_words, 1)), _PASSES[1])
    model = doc2vec.Doc2Vec(
        vector_size=_DIMENSIONS,
        dm=0,
        min_count=2,
        epochs=passes,
        seed=_SEED,
        workers=1,
        # Python's own hash differs between processes, and so would the vectors
        hashfxn=lambda word: zlib.crc32(str(word).encode()),
    )
    model.build_vocab(tagged)
    if not len(model.wv):
        return np.zeros((len(documents), 1))
    model.train(tagged, total_examples=model.corpus_count, epochs=model.epochs)
    vectors = np.array([model.dv[number] for number in range(len(documents))], np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)
