"""Why a score is missing or not to be trusted: a number per job and score, texts once."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Codes = npt.NDArray[np.int32]

NONE = 0
"""Nothing is wrong."""


@dataclass
class Reasons:
    """Texts by code; codes of one object mean nothing to another."""

    texts: list[str] = field(default_factory=list)

    def code(self, text: str) -> int:
        """The code of a text, from 1."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1

    def column(self, codes: Codes) -> pa.Array:
        """The texts of a column of codes; null where nothing is wrong."""
        indices = pa.array(codes - 1, pa.int32(), mask=codes == NONE)
        return pa.DictionaryArray.from_arrays(indices, pa.array(self.texts, pa.string())).cast(pa.string())


def first(codes: Codes, where: npt.NDArray[np.bool_], code: int) -> None:
    """Give the jobs a reason that have none yet; in place."""
    codes[where & (codes == NONE)] = code


def codes_of(n_jobs: int) -> Codes:
    """No reason for so many jobs."""
    return np.zeros(n_jobs, np.int32)
