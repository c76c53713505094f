"""Delivered work in a session: ``s.delivered``."""

from collections.abc import Sequence

from esjobs.core.arguments import WindowLike, listed, split, window_of
from esjobs.records.answer import Answer
from esjobs.records.context import Facade


class Delivered(Facade):
    """Delivered work: ``s.delivered.work(["site", "month"])``."""

    def work(
        self,
        by: str | Sequence[str] = "site",
        *,
        window: WindowLike = None,
        where: str | Sequence[str] = (),
        vo: str | None = None,
        one_scale: bool = False,
    ) -> Answer:
        """Work delivered in a window (None: all jobs), in HS23-hours or HS06-hours, most core-hours first.

        ``by``: site, queue, country, user, project, processing_type, cluster, source, month, federation; one
        or more. ``where``: conditions as in :meth:`Session.query`. ``vo``: VO of the jobs, whose pledges are
        shown by federation. See :func:`esjobs.delivered.work.delivered`.
        """
        from esjobs.delivered.work import delivered

        store, clock = self._context.store, self._context.clock
        span = window_of(window, clock)
        return delivered(store, split(by), span, listed(where), vo=vo, one_scale=one_scale, clock=clock)

    def accounted(
        self,
        by: str | Sequence[str] = "site",
        *,
        window: WindowLike = None,
        vo: str | None = None,
        one_scale: bool = False,
    ) -> Answer:
        """Work by the stored accounting of sites: :func:`esjobs.delivered.accounted.accounted`.

        ``by``: site, vo, user, infrastructure, month, federation; one or more.
        """
        from esjobs.delivered.accounted import accounted

        span = window_of(window, self._context.clock)
        return accounted(self._context.store, split(by), span, vo=vo, one_scale=one_scale)

    def energy(
        self,
        by: str | Sequence[str] = "site",
        *,
        window: WindowLike = None,
        where: str | Sequence[str] = (),
        factors: str = "life_cycle",
    ) -> Answer:
        """Energy and carbon of jobs in a window (None: all), most energy first.

        ``by``: as for :meth:`work`, and cpu_model; not federation. ``factors``: life_cycle or direct. See
        :func:`esjobs.delivered.energy.energy`.
        """
        from esjobs.delivered.energy import energy

        span = window_of(window, self._context.clock)
        return energy(self._context.store, split(by), span, listed(where), kind=factors)

    def against_accounting(
        self, *, window: WindowLike = None, where: str | Sequence[str] = (), vo: str | None = None
    ) -> Answer:
        """Jobs against the stored accounting of their sites by month, with a reason for each difference.

        ``vo``: messages of this VO. See :func:`esjobs.delivered.accounting.compare`.
        """
        from esjobs.delivered.accounting import compare

        span = window_of(window, self._context.clock)
        return compare(self._context.store, span, listed(where), vo=vo)

    def apel(
        self, *, window: WindowLike = None, where: str | Sequence[str] = (), vo: str | None = None
    ) -> tuple[str, tuple[str, ...]]:
        """Sums of the jobs of whole months as APEL's text, for a site to compare with its own; and notes."""
        from esjobs.delivered.accounting import apel_text

        span = window_of(window, self._context.clock)
        return apel_text(self._context.store, span, listed(where), vo=vo)

    def auditor(self, *, window: WindowLike = None, where: str | Sequence[str] = ()) -> Answer:
        """Use by user in the columns of AUDITOR's report: :func:`esjobs.delivered.auditor.utilisation`."""
        from esjobs.delivered.auditor import utilisation

        return utilisation(self._context.store, window_of(window, self._context.clock), listed(where))
