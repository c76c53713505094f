"""Small answers that are still true: what was read of a file that nobody can have changed since."""

from collections.abc import Sequence

import pyarrow as pa

_ANSWER_B = 64 * 1024
_ALL_B = 4 * 1024 * 1024
_KEY_CHARACTERS = 4096


class Recent:
    """Answers by statement and parameters, each of at most 64 kB; of more than 4 MB the oldest go."""

    def __init__(self) -> None:
        self._answers: dict[str, list[pa.RecordBatch]] = {}
        self._bytes = 0

    @staticmethod
    def key(sql: str, params: Sequence[object]) -> str:
        """What tells questions apart: 1 and True are equal, but not the same question."""
        return f"{sql}\0{params!r}"

    def get(self, key: str) -> list[pa.RecordBatch] | None:
        """The answer; None when it is not known."""
        return self._answers.get(key)

    def fits(self, answer: Sequence[pa.RecordBatch]) -> bool:
        """Whether an answer is small enough to be kept."""
        return _size(answer) <= _ANSWER_B

    def keep(self, key: str, answer: list[pa.RecordBatch]) -> None:
        """Keep an answer that fits; not where the question itself is a long one."""
        if len(key) > _KEY_CHARACTERS or key in self._answers:
            return
        self._answers[key] = answer
        self._bytes += _kept(answer)
        while self._bytes > _ALL_B:
            self._bytes -= _kept(self._answers.pop(next(iter(self._answers))))

    def forget(self) -> None:
        """The file may have been written: nothing is known any more."""
        self._answers.clear()
        self._bytes = 0


def _size(answer: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.get_total_buffer_size() for batch in answer)


def _kept(answer: Sequence[pa.RecordBatch]) -> int:
    """With its key and what Python's objects take, so that empty answers cannot become endlessly many."""
    return _size(answer) + _KEY_CHARACTERS
