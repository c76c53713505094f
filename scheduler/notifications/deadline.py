"""Deadline of a delivery: a server may send a byte now and then for ever."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Answer = TypeVar("Answer")


def within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """Return the result of a call, or raise :class:`TimeoutError` after ``seconds``.

    The call itself cannot be stopped: its thread ends with the process. Socket timeouts restart with every
    byte, so they are no deadline.
    """
    attempt: Future[Answer] = Future()

    def run() -> None:
        try:
            attempt.set_result(work())
        except BaseException as error:
            attempt.set_exception(error)

    # not an executor: that would wait for the thread at exit
    threading.Thread(target=run, name="delivery", daemon=True).start()
    return attempt.result(seconds)
