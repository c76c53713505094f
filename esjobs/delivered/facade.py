"""Delivered work in a session: ``s.delivered``."""

from collections.abc import Sequence

from esjobs.core.arguments import WindowLike, window_of
from esjobs.records.answer import Answer
from esjobs.records.context import Facade


class Delivered(Facade):
    """Delivered work: ``s.delivered.work(["site", "month"])``."""

    def work(
        self, by: str | Sequence[str] = "site", *, window: WindowLike = None, where: str | Sequence[str] = ()
    ) -> Answer:
        """Work delivered in a window (None: all jobs), in HS23-hours or HS06-hours, most core-hours first.

        ``by``: site, queue, country, user, project, processing_type, cluster, source, month; one or more.
        ``where``: conditions as in :meth:`Session.query`. See :func:`esjobs.delivered.work.delivered`.
        """
        from esjobs.delivered.work import delivered

        names = (by,) if isinstance(by, str) else tuple(by)
        conditions = (where,) if isinstance(where, str) else tuple(where)
        return delivered(self._context.store, names, window_of(window, self._context.clock), conditions)
