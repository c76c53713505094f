"""How the log reads on standard error: lines for people, or JSON for what collects logs."""

import json
import logging
from datetime import UTC, datetime
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


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": visible(record.getMessage()),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told)
