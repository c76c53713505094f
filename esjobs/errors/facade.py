"""Facade of lost work and nodes: ``s.errors``."""

from collections.abc import Sequence

from esjobs.core.arguments import WindowLike, listed, window_of
from esjobs.core.conditions import written
from esjobs.errors.settings import ErrorsSettings
from esjobs.records.answer import Answer
from esjobs.records.context import Facade


class Errors(Facade):
    """Lost work by reason: ``s.errors.lost("error", window="7d")``."""

    def lost(
        self,
        by: str = "error_category",
        *,
        site: str | Sequence[str] = (),
        window: WindowLike = None,
        where: str | Sequence[str] = (),
        new: bool = False,
    ) -> Answer:
        """Work lost in a window (None: all jobs) by ``error_category`` or ``error``, most core-hours first.

        ``new``: only errors that the 28 days before lack. See :func:`esjobs.errors.lost.lost`.
        """
        from esjobs.errors.lost import lost

        context = self._context
        conditions = (*listed(where), *_equal("site", site))
        return lost(context.store, by, window_of(window, context.clock), conditions, new=new)

    def nodes(
        self,
        *,
        site: str | Sequence[str] = (),
        queue: str | Sequence[str] = (),
        window: WindowLike = None,
        where: str | Sequence[str] = (),
        every: bool = False,
        slow: bool = False,
    ) -> Answer:
        """Nodes on which jobs fail more often than on the other nodes of their site, most costly first.

        ``slow``: nodes on which jobs take longer than on others with the same CPU model, instead.
        ``every``: all nodes. See :func:`esjobs.errors.nodes.failing_nodes`,
        :func:`esjobs.errors.slow_nodes.slow_nodes`.
        """
        from esjobs.errors.nodes import failing_nodes
        from esjobs.errors.slow_nodes import slow_nodes

        context = self._context
        conditions = (*listed(where), *_equal("site", site), *_equal("queue", queue))
        servers = context.settings.section(ErrorsSettings).server_hosts
        span = window_of(window, context.clock)
        judge = slow_nodes if slow else failing_nodes
        return judge(context.store, span, conditions, servers=servers, every=every)


def _equal(field: str, names: str | Sequence[str]) -> tuple[str, ...]:
    chosen = listed(names)
    return (written(field, "=", chosen),) if chosen else ()
