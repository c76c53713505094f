"""Reasons for missing or untrusted scores: integer codes per job, each text stored once."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.arrays import Mask

Codes = npt.NDArray[np.int32]

NONE = 0


@dataclass
class Reasons:
    """Texts by code; codes are only valid for the object that issued them."""

    texts: list[str] = field(default_factory=list)

    def code(self, text: str) -> int:
        """Return the code of a text, from 1."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1

    def column(self, codes: Codes) -> pa.Array:
        """Return the texts of codes, null for :data:`NONE`."""
        indices = pa.array(codes - 1, pa.int32(), mask=codes == NONE)
        return pa.DictionaryArray.from_arrays(indices, pa.array(self.texts, pa.string())).cast(pa.string())


def first(codes: Codes, where: Mask, code: int) -> None:
    """Set a reason on jobs that have none yet, in place."""
    codes[where & (codes == NONE)] = code


def codes_of(n_jobs: int) -> Codes:
    """Return codes of reasons for jobs, none of which has one yet."""
    return np.zeros(n_jobs, np.int32)
