"""Every error that esjobs raises on purpose.

    EsjobsError                 one line: what failed, where, what to do
    ├── UsageError              an argument or option makes no sense (exit code 2)
    │   ├── WindowError         the window is malformed, empty or not whole days
    │   └── KeywordError        a keyword that a method does not take (also a TypeError, as Python's own)
    ├── SettingsError           the configuration file or the environment is wrong
    ├── InputError              a file cannot be read or lacks what it must have
    ├── NoJobsError             nothing is stored in the window; names the nearest stored span
    ├── StoreError              the store refused or failed
    │   ├── BlockedError        an index or the cluster is blocked, until somebody lifts the block
    │   ├── StoreBusyError      another process holds the store
    │   ├── ReadOnlyError       a store that was opened for reading was asked to write
    │   ├── PartialAnswerError  a cluster answered for a part of what was asked
    │   ├── PublishedError      aliases of a cluster and the record of what is published differ
    │   └── SchemaError         the store was laid out by another version
    ├── ClockError              the clock of this machine runs ahead of what the store knows, or years behind
    ├── NoResultError           a step needs a result that no earlier step has published
    ├── TooLargeError           what is asked does not fit into the memory that is free
    ├── BooksError              counts that must agree do not; nothing was published
    ├── DashboardsError         Kibana or OpenSearch Dashboards refused or failed
    └── MissingExtraError       an optional dependency is not installed

A message is one line and ends with what the reader can do. Everything else that escapes is a defect.
"""

from esjobs.core.redact import redact
from esjobs.core.text import visible


class EsjobsError(Exception):
    """Root of all errors that are meant for people.

    ``str(error)`` is one line, which a terminal shows and does not obey: names and values that a message
    quotes come from files and may hold anything. Secrets that were used are not in it.
    """

    def __str__(self) -> str:
        return visible(redact(super().__str__()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class UsageError(EsjobsError, ValueError):
    """An argument makes no sense: unknown field, malformed filter, contradicting options."""


class WindowError(UsageError):
    """A window is malformed, empty, or not made of whole days where a step needs them."""


class KeywordError(UsageError, TypeError):
    """A method was given a keyword that it does not take; Python raises TypeError for such a mistake."""


class SettingsError(EsjobsError):
    """The configuration file or an environment variable holds something that is not accepted."""


class InputError(EsjobsError):
    """An input file cannot be read at all; the store is as it was."""


class NoJobsError(EsjobsError):
    """No job is stored in the window; the message names the nearest stored span."""


class StoreError(EsjobsError):
    """The store refused or failed; the message names it and the way out."""


class BlockedError(StoreError):
    """An index or the cluster is blocked for what was asked; it does not pass by itself."""


class StoreBusyError(StoreError):
    """Another process holds the store; the message names that process."""


class ReadOnlyError(StoreError):
    """A store or session that was opened for reading was asked to write; nothing was written."""


class PartialAnswerError(StoreError):
    """A cluster answered for a part of its shards, or ran out of time; asked again it may answer whole."""


class PublishedError(StoreError):
    """An alias and the record of what is published differ; nothing was changed, and nothing is deleted."""


class SchemaError(StoreError):
    """The store was laid out by a version of esjobs that this one cannot read."""


class ClockError(EsjobsError):
    """The clock is ahead of the newest job and of the server's own time, or years behind; nothing was run."""


class NoResultError(EsjobsError):
    """A step or a reader needs a result that no earlier step has published."""


class TooLargeError(EsjobsError):
    """What is asked does not fit into the memory that is free; nothing was begun."""


class BooksError(EsjobsError):
    """Jobs in and jobs accounted for differ; nothing was published."""


class DashboardsError(EsjobsError):
    """A server of dashboards refused, failed, or is none; the message names it and the way out."""


class MissingExtraError(EsjobsError):
    """An optional dependency is not installed; the message names the extra to install."""
