"""How alike the programs of jobs are to those of the knowledge base, where their executables were scanned."""

from collections.abc import Container, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from esjobs.core.errors import NoResultError
from esjobs.records.jobs.resolution import select
from esjobs.similar.programs import Programs, similarity_of
from esjobs.store.base import JobStore

Floats = npt.NDArray[np.float64]
Key = tuple[str, str]

NONE_KNOWN = "no executable of a job of the knowledge base was scanned: esjobs symbols scan"


class Alike:
    """Static similarities to the jobs of a knowledge base, in its order; NaN where nothing is known.

    By the symbols of executables alone: jobs of one name run different programs, and one program under
    several names. A program is looked up once, however many jobs ran it.
    """

    def __init__(
        self, programs: Programs, places: Mapping[Key, int], keys: Sequence[Key], method: str
    ) -> None:
        self._similarity = similarity_of(programs.fingerprints, method)
        self._places = places
        self._keys = keys
        self._known = np.array([places.get(key, -1) for key in keys], np.int64)
        self._found: dict[int, Floats] = {}
        self._nothing = np.full(len(keys), np.nan)

    def of(self, number: int) -> Floats:
        """Those of a job of the knowledge base, (n,); its own is 1 where its program is known."""
        return self.to(self._keys[number])

    def to(self, key: Key) -> Floats:
        """Those of any job that was looked up."""
        place = self._places.get(key, -1)
        if place < 0:
            return self._nothing
        if place not in self._found:
            among = self._similarity.similarity(place)
            self._found[place] = np.where(self._known >= 0, among[self._known], np.nan)
        return self._found[place]


def alike(store: JobStore, keys: Sequence[Key], others: Container[Key], method: str = "tf-idf") -> Alike:
    """Static similarities of jobs to those of a knowledge base.

    ``keys``: of the knowledge base, in its order. ``others``: what may be asked about beside them.
    ``method``: as the settings name it. Raises :class:`NoResultError` where no program of the knowledge base
    is known. Cost: the executables once, two names of all jobs once.
    """
    programs = Programs(store)
    mine = set(keys)
    places: dict[Key, int] = {}
    looked_up: dict[tuple[str | None, str | None], int] = {}
    for batch in select(store, ["source", "job_id", "executable", "application"], None):
        for row in batch.to_pylist():
            key = (row["source"], row["job_id"])
            if key not in mine and key not in others:
                continue
            named = (row["executable"], row["application"])
            if named not in looked_up:
                place = programs.place(*named)
                known = isinstance(place, int) and programs.fingerprints[place]
                looked_up[named] = place if known and isinstance(place, int) else -1
            if looked_up[named] >= 0:
                places[key] = looked_up[named]
    if not any(key in places for key in keys):
        raise NoResultError(NONE_KNOWN)
    return Alike(programs, places, keys, method)
