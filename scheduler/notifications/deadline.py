"""An end to what others may draw out for ever: a server that sends a byte now and then."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class _Attempt(Generic[Answer]):
    """What came of a call in a thread."""

    def __init__(self, work: Callable[[], Answer]) -> None:
        self._work = work
        self.answer: list[Answer] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        """Call it, and keep what came of it."""
        try:
            self.answer.append(self._work())
        except BaseException as error:
            self.error = error


def within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """The answer of a call, or :class:`TimeoutError` after so many seconds.

    The call itself cannot be stopped: its thread is left behind and ends with the process. Timeouts of
    sockets count anew with every byte, so that they alone are no end.
    """
    attempt = _Attempt(work)
    thread = threading.Thread(target=attempt.run, name="delivery", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"no end within {seconds:g} s")
    if attempt.error is not None:
        raise attempt.error
    return attempt.answer[0]
