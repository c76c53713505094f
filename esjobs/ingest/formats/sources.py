"""The formats, as a literal: adding one is a file and a line."""

from esjobs.core.errors import UsageError
from esjobs.ingest.base import Source
from esjobs.ingest.formats.canonical import JobsSource
from esjobs.ingest.formats.corepower import COREPOWER_TABLE
from esjobs.ingest.formats.cric import CRIC_QUEUES
from esjobs.ingest.formats.panda import PandaSource

SOURCES: tuple[Source, ...] = (PandaSource(), JobsSource(), COREPOWER_TABLE, CRIC_QUEUES)
"""Every format that ``esjobs ingest`` reads."""


def source(name: str) -> Source:
    """Look a format up by name, or raise :class:`UsageError` that lists them all.

    >>> source("panda").default_source
    'panda'
    """
    for candidate in SOURCES:
        if candidate.name == name:
            return candidate
    raise UsageError(f"no format '{name}'; there are {', '.join(known.name for known in SOURCES)}")
