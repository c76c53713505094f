"""Stored runs of a session: ``s.runs``."""

from esjobs.core.arguments import WindowLike, count_of_runs, window_of
from esjobs.core.errors import UsageError
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.publish.retention import Keep
from esjobs.publish.stored import StoredRun
from esjobs.records.context import Facade
from esjobs.records.jobs.retention import prune_all
from esjobs.records.shown import run_of
from esjobs.schema.catalogue import table
from esjobs.settings import RetentionSettings
from esjobs.store.checks import writes


class Runs(Facade):
    """Runs whose results are stored, and how long they are kept."""

    def shown(
        self, what: str = "flags", *, run: str | None = None, window: WindowLike = None
    ) -> StoredRun | None:
        """Return the run whose rows of a table are shown; None for a table that belongs to no run.

        Raises :class:`NoResultError` when no run has the results.
        """
        context = self._context
        return run_of(context.store, table(what), run, window_of(window, context.clock))

    def window(self) -> Window:
        """Return the whole days that the stored jobs span. Raises :class:`NoJobsError` without jobs."""
        return self._context.days(None)

    @writes
    def prune(
        self,
        keep: int | None = None,
        *,
        newest: int | None = None,
        daily: int | None = None,
        weekly: int | None = None,
        monthly: int | None = None,
        bucket_months: int | None = None,
        dry_run: bool = False,
    ) -> RunReport:
        """Remove results of old runs, buckets of old months and replaced versions of jobs.

        Jobs and entered data stay.

        ``keep``: number of runs of each kind that stay. ``newest``, ``daily``, ``weekly``, ``monthly``: per
        kind, window length and restriction, the newest runs and one of each of the last days, weeks and
        months; the latest always stays. ``bucket_months``: newest months of which rows per day stay. The
        settings (``retention``) decide where nothing is named. ``dry_run``: notes say what would go, and why.
        """
        rule = {"newest": newest, "daily": daily, "weekly": weekly, "monthly": monthly}
        for name, number in {"keep": keep, **rule}.items():
            count_of_runs(name, number)
        count_of_runs("bucket_months", bucket_months, "months")
        # 0 is a choice: only what is None falls back to the settings
        named = {name: number for name, number in rule.items() if number is not None}
        if keep is not None and named:
            raise UsageError(f"prune accepts either a number of runs or a rule ({', '.join(named)})")
        store, settings = self._context.store, self._context.settings.section(RetentionSettings)
        usual = {name: getattr(settings, f"keep_{name}") for name in rule}
        months = settings.keep_bucket_months if bucket_months is None else bucket_months
        return prune_all(
            store,
            keep if keep is not None else Keep(**(named or usual)),
            months,
            settings.undo_days,
            self._context.clock(),
            dry_run=dry_run,
        )
