"""Several requests in flight, their answers in order."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def in_parallel(
    function: Callable[[Item], Found], items: Iterable[Item], in_flight: int, name: str
) -> list[Found]:
    """Return the result for each item, in order; after an error no further one starts."""
    with ThreadPoolExecutor(in_flight, name) as pool:
        try:
            return list(pool.map(function, items))
        except BaseException:
            # what is under way ends; what waits does not begin
            pool.shutdown(cancel_futures=True)
            raise
