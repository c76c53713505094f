"""Similarity of the programs of jobs to those of the knowledge base, from scanned executables."""

from collections.abc import Container, Mapping, Sequence

import numpy as np

from esjobs.core.errors import NoResultError
from esjobs.records.jobs.resolution import select
from esjobs.similar.programs import Programs, similarity_of
from esjobs.store.base import JobStore
from fitters.layout.arrays import Floats

Key = tuple[str, str]

NO_PROGRAMS = "no executable of a job of the knowledge base was scanned: esjobs symbols scan"


class ProgramSimilarity:
    """Program similarities to the jobs of a knowledge base, in its order; NaN if unknown.

    Only symbols count: jobs of one name run different programs, and one program has several names.
    """

    def __init__(
        self, programs: Programs, indices: Mapping[Key, int], keys: Sequence[Key], method: str
    ) -> None:
        self._similarity = similarity_of(programs.fingerprints, method)
        self._programs = indices
        self._keys = keys
        self._rows = np.array([indices.get(key, -1) for key in keys], np.int64)
        self._found: dict[int, Floats] = {}
        self._nothing = np.full(len(keys), np.nan)

    def of(self, number: int) -> Floats:
        """Return the similarities of a job of the knowledge base, (n,)."""
        return self.to(self._keys[number])

    def to(self, key: Key) -> Floats:
        """Return the similarities of any job that was looked up."""
        index = self._programs.get(key, -1)
        if index < 0:
            return self._nothing
        if index not in self._found:
            among = self._similarity.similarity(index)
            # jobs without a program have row -1, which is the last one: masked
            self._found[index] = np.where(self._rows >= 0, among[self._rows], np.nan)
        return self._found[index]


def _with_symbols(programs: Programs, executable: str | None, application: str | None) -> int:
    index = programs.executable_of(executable, application)
    return index if isinstance(index, int) and programs.fingerprints[index] else -1


def program_similarity(
    store: JobStore, keys: Sequence[Key], others: Container[Key], method: str = "tf-idf"
) -> ProgramSimilarity:
    """Return program similarities of jobs to those of a knowledge base.

    ``keys``: the knowledge base; ``others``: further jobs to look up. Raises :class:`NoResultError` if no
    program of the knowledge base is known. Cost: executables once, two names of all jobs once.
    """
    programs = Programs(store)
    mine = set(keys)
    indices: dict[Key, int] = {}
    by_name: dict[tuple[str | None, str | None], int] = {}
    for batch in select(store, ["source", "job_id", "executable", "application"], None):
        for row in batch.to_pylist():
            key = (row["source"], row["job_id"])
            if key not in mine and key not in others:
                continue
            named = (row["executable"], row["application"])
            if named not in by_name:
                by_name[named] = _with_symbols(programs, *named)
            if by_name[named] >= 0:
                indices[key] = by_name[named]
    if mine.isdisjoint(indices):
        raise NoResultError(NO_PROGRAMS)
    return ProgramSimilarity(programs, indices, keys, method)
