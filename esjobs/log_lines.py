"""How the log reads on standard error."""

import logging
from typing import Any

from esjobs.core.text import visible


class LogLines(logging.Formatter):
    """Lines that a terminal shows and does not obey: one a message, and a traceback line by line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        """One line."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """The lines of a traceback."""
        return "\n".join(map(visible, super().formatException(ei).split("\n")))
