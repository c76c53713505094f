"""Limit of foreign documents that a question may read."""

import logging
from collections.abc import Sequence

from esjobs.core.errors import ReadLimitError
from esjobs.store.elastic.asking.clauses import Clause, all_of
from esjobs.store.elastic.jobs.job_index import JobIndex, JobSource
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import count_once

WORTH_SAYING = 100_000
"""Number of documents above which reading, about a minute, is logged as a warning."""

_log = logging.getLogger(__name__)


def count_of(cluster: Cluster, part: JobIndex, clauses: Sequence[Clause]) -> int:
    """Return the number of documents that match all clauses."""
    return count_once(cluster, part.index, all_of(clauses))


def require_allowed(jobs: JobSource, n_read: int, reasons: Sequence[str] = ()) -> None:
    """Log the number of documents to read. Raises :class:`ReadLimitError` above the limit."""
    because = f" ({'; '.join(reasons)})" if reasons else ""
    what = f"this question must read {n_read:,} documents of {jobs.index} individually{because}"
    if jobs.most_read is not None and n_read > jobs.most_read:
        raise ReadLimitError(
            f"{what}, more than {jobs.most_read:,}. Shorten the window, or allow it: --yes before the "
            "command, or cluster.read_at_most in the settings"
        )
    # reading is slow: somebody who waits should know what for
    if n_read:
        _log.log(logging.WARNING if n_read > WORTH_SAYING else logging.INFO, "%s", what)
