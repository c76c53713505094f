"""How alike programs are by vectors that Doc2Vec learns from the names of their symbols: gensim, an extra.

Q. Le, T. Mikolov, Distributed Representations of Sentences and Documents, ICML 2014: the distributed bag of
words. D. Shaikhislamov, V. Voevodin, Solving the Problem of Detecting Similar Supercomputer Applications
Using Machine Learning Methods, CCIS 1263, 2020, take Doc2Vec for names of symbols. Names have no order that
says anything, hence the variant without contexts.
"""

import zlib
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from esjobs.core.extras import require

Floats = npt.NDArray[np.float64]

_DIMENSIONS = 64
_PASSES = (20, 300)
_WORDS = 300_000
"""Passes over all names, within limits as many as it takes to learn from so many: 20 over few names leave all
vectors where they began, next to each other."""
_SEED = 1
_LONGEST = 10_000
"""Words of a document that gensim reads; what follows would be left out without a word."""


class LearnedSimilarity:
    """Similarities among ``n`` fingerprints, as :class:`~esjobs.similar.static.StaticSimilarity` has them.

    Vectors are learned anew from the different fingerprints, in an order of their contents, by one thread
    with a fixed seed: the same fingerprints give the same numbers, whatever their order, and one more or less
    gives others. A name that one fingerprint alone has says nothing of another and is left out.

    Raises :class:`MissingExtraError` where gensim is not installed. Cost: 20 passes over the names of all
    different fingerprints, more over few.
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
        """Cosines of fingerprint ``i`` with all, (n,), those below 0 as 0; NaN where either is missing."""
        result = np.full(len(self), np.nan)
        row = self._row[i]
        if row >= 0:
            cosines = np.clip(self._vectors @ self._vectors[row], 0.0, 1.0)
            # what is equal is 1, not 1 less rounding
            cosines[row] = 1.0
            known = self._row >= 0
            result[known] = cosines[self._row[known]]
        return result


def _learned(documents: Sequence[Sequence[str]]) -> Floats:
    """A vector of length 1 for each document; zeros where nothing is known but that it is unlike others."""
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
        hashfxn=lambda word: zlib.crc32(str(word).encode()),
    )
    model.build_vocab(tagged)
    if not len(model.wv):
        return np.zeros((len(documents), 1))
    model.train(tagged, total_examples=model.corpus_count, epochs=model.epochs)
    vectors = np.array([model.dv[number] for number in range(len(documents))], np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = vectors / np.where(lengths > 0, lengths, 1.0)
    return unit
