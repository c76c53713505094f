"""Forms of the log on standard error: lines for people, or JSON for collectors; no secrets in them."""

import json
import logging
import sys
import threading
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from esjobs.core.redact import redact
from esjobs.core.text import visible


class LogLines(logging.Formatter):
    """Lines that a terminal shows and does not obey: one a message, and a traceback line by line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        """One line."""
        return visible(redact(super().formatMessage(record)))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """The lines of a traceback."""
        return "\n".join(map(visible, redact(super().formatException(ei)).split("\n")))


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": visible(redact(record.getMessage())),
        }
        if record.exc_info:
            entry["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(entry)


def redact_tracebacks() -> None:
    """Hide secrets in the tracebacks that end the process or a thread of it."""

    def show(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        sys.stderr.write(redact("".join(traceback.format_exception(kind, error, trace))))

    sys.excepthook = show
    threading.excepthook = lambda ended: show(ended.exc_type, ended.exc_value, ended.exc_traceback)
