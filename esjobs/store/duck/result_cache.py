"""Cache of small answers, valid while the file cannot change."""

from collections.abc import Sequence

import pyarrow as pa

# bytes of one answer, of all answers, and characters of a question that is worth keeping
_ANSWER_B = 64 * 1024
_ALL_B = 4 * 1024 * 1024
_KEY_CHARACTERS = 4096


class ResultCache:
    """Answers by statement and parameters, each of at most 64 kB; above 4 MB the oldest go."""

    def __init__(self) -> None:
        self._answers: dict[str, list[pa.RecordBatch]] = {}
        self._bytes = 0

    @staticmethod
    def key(sql: str, params: Sequence[object]) -> str:
        """Return the cache key; 1 and True differ in it."""
        # repr, because equal values of different types may have different answers
        return f"{sql}\0{params!r}"

    def get(self, key: str) -> list[pa.RecordBatch] | None:
        """Return the cached answer or None."""
        return self._answers.get(key)

    def fits(self, answer: Sequence[pa.RecordBatch]) -> bool:
        """True if an answer is small enough to cache."""
        return _size(answer) <= _ANSWER_B

    def keep(self, key: str, answer: list[pa.RecordBatch]) -> None:
        """Cache an answer, unless the question is long."""
        if len(key) > _KEY_CHARACTERS or key in self._answers:
            return
        self._answers[key] = answer
        self._bytes += _kept(answer)
        while self._bytes > _ALL_B:
            # a dict keeps the order of insertion: the first is the oldest
            self._bytes -= _kept(self._answers.pop(next(iter(self._answers))))

    def forget(self) -> None:
        """Clear the cache."""
        self._answers.clear()
        self._bytes = 0


def _size(answer: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.get_total_buffer_size() for batch in answer)


def _kept(answer: Sequence[pa.RecordBatch]) -> int:
    """Return the size with allowance for key and objects."""
    return _size(answer) + _KEY_CHARACTERS
