"""Cost estimate of questions to jobs in a cluster."""

import logging
from collections.abc import Sequence

from esjobs.core.query import Query
from esjobs.store.elastic.asking.aggregation import is_groupable, what_forbids_groups
from esjobs.store.elastic.asking.limits import count_of, require_allowed
from esjobs.store.elastic.asking.reading import used_fields
from esjobs.store.elastic.jobs.job_index import JobSource
from esjobs.store.elastic.transport.cluster import Cluster

_log = logging.getLogger(__name__)


def foresee(cluster: Cluster, jobs: JobSource, queries: Sequence[Query]) -> None:
    """Log the documents to be grouped and read. Raises :class:`ReadLimitError` above the read limit.

    One count per part of a question.
    """
    n_grouped = n_read = 0
    why: dict[str, None] = {}
    for query in queries:
        for part in jobs.parts(query.window, used_fields(query)):
            count = count_of(cluster, part, part.inside(query.window))
            if is_groupable(part, query):
                n_grouped += count
            elif count:
                n_read += count
                why |= dict.fromkeys(what_forbids_groups(part, query))
    _log.info("%s: the cluster groups %s documents", jobs.index, f"{n_grouped:,}")
    require_allowed(jobs, n_read, list(why))
