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
    │   ├── ReopenError         the store can do nothing more until it is opened again
    │   ├── StoreBusyError      another process holds the store
    │   ├── ReadOnlyError       a store that was opened for reading was asked to write
    │   ├── PartialAnswerError  a cluster answered for a part of what was asked
    │   ├── ReadLimitError      more documents would have to be read than the settings allow
    │   ├── PublishedError      aliases of a cluster and the record of what is published differ
    │   └── SchemaError         the store was laid out by another version
    ├── ClockError              the clock of this machine runs ahead of what the store knows, or years behind
    ├── NoResultError           a step needs a result that no earlier step has published
    │   └── NothingToFitError   no job of the window can be fitted, as where records carry no events
    ├── TooLargeError           what is asked does not fit into the memory that is free
    ├── BooksError              counts that must agree do not; nothing was published
    ├── DashboardsError         Kibana or OpenSearch Dashboards refused or failed
    └── MissingExtraError       an optional dependency is not installed

A message is one line and ends with what the reader can do. Everything else that escapes is a defect.
"""

from esjobs.core.redact import redact
from esjobs.core.text import visible


class EsjobsError(Exception):
    """Root of all errors meant for people.

    ``str(error)`` is one line without secrets and without control characters, whatever the quoted names
    contain.
    """

    def __str__(self) -> str:
        # when shown, not when raised: secrets may be learned in between
        return visible(redact(super().__str__()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class UsageError(EsjobsError, ValueError):
    """Argument that makes no sense: unknown field, malformed filter, contradicting options."""


class WindowError(UsageError):
    """Window that is malformed, empty, or not made of whole days where a step requires them."""


class KeywordError(UsageError, TypeError):
    """Keyword that a method does not take; Python raises TypeError for the same mistake."""


class SettingsError(EsjobsError):
    """Configuration file or environment variable with a value that is not accepted."""


class InputError(EsjobsError):
    """Input file that cannot be read; the store is unchanged."""


class NoJobsError(EsjobsError):
    """Window without stored jobs; the message names the nearest stored span."""


class StoreError(EsjobsError):
    """Store that refused or failed; the message names it and the remedy."""


class BlockedError(StoreError):
    """Index or cluster blocked for the operation; the block does not clear by itself."""


class ReopenError(StoreError):
    """Store that can do nothing more until it is opened again; committed data are safe."""


class StoreBusyError(StoreError):
    """Store in use by another process, which the message names."""


class ReadOnlyError(StoreError):
    """Write to a store or session that was opened for reading; nothing was written."""


class PartialAnswerError(StoreError):
    """Answer of a part of the shards only, or a search that timed out; a retry may succeed."""


class ReadLimitError(StoreError):
    """Question that reads more documents of others than allowed; nothing was read."""


class PublishedError(StoreError):
    """Alias that differs from the record of what is published; nothing is changed or deleted."""


class SchemaError(StoreError):
    """Store laid out by a version of esjobs that this one cannot read."""


class ClockError(EsjobsError):
    """Clock ahead of the newest job and of the server's time, or years behind; nothing was run."""


class NoResultError(EsjobsError):
    """Result that a step or reader requires and no earlier step has published."""


class NothingToFitError(NoResultError):
    """Window whose jobs were all dropped, so that no speed factor can be fitted; a night goes on."""


class TooLargeError(EsjobsError):
    """Request that does not fit into free memory; nothing was started."""


class BooksError(EsjobsError):
    """Imbalance between jobs in and jobs accounted for; nothing was published."""


class DashboardsError(EsjobsError):
    """Dashboards server that refused or failed; the message names it and the remedy."""


class MissingExtraError(EsjobsError):
    """Optional dependency that is not installed; the message names the extra."""
