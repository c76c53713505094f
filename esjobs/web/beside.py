"""Pages in a process beside the nights: whatever readers do to it, the nights go on."""

import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from threading import Thread

from esjobs.core.errors import EsjobsError
from esjobs.flags.answering.settings import WebSettings
from esjobs.settings import Settings

_log = logging.getLogger(__name__)
_END_S = 10


class WebBeside:
    """A process that serves pages; :meth:`tend` starts it again where it has ended."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: BaseProcess | None = None

    def tend(self) -> None:
        """Start the process if there is none. Raises :class:`EsjobsError` where the last one ended."""
        before = self._process
        if before is not None and before.is_alive():
            return
        # not forked: threads of the store do not survive a fork
        self._process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(self._settings,), name="web", daemon=True
        )
        self._process.start()
        if before is not None:
            raise EsjobsError(
                f"pages over HTTP ended with code {before.exitcode} and were started again; see the log"
            )

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.join(_END_S)
            if self._process.is_alive():
                self._process.kill()


@contextmanager
def web_beside(settings: Settings) -> Iterator[WebBeside | None]:
    """Yield the process of the settings, None without ``web.listen``; it ends with the context."""
    if not settings.section(WebSettings).listen:
        yield None
        return
    beside = WebBeside(settings)
    try:
        yield beside
    finally:
        beside.end()


def _end_with_parent() -> None:
    """End this process with the service: a killed one ends no other, and the port stays in use."""
    service = multiprocessing.parent_process()
    if service is not None:
        service.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _serve(settings: Settings) -> None:
    from esjobs.web.server import serve

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s web: %(message)s")
    Thread(target=_end_with_parent, daemon=True).start()
    chosen = settings.section(WebSettings)
    try:
        serve(settings, chosen.listen, chosen.hosts, public=chosen.public, ready=_log.info)
    except EsjobsError as error:
        _log.error("%s", error)
        raise SystemExit(1) from None
