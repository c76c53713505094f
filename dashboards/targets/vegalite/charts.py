"""From a panel to its chart: the one list of which kind is drawn how."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from dashboards.spec import JOBS, OWN, UNFILTERED, JobsIndex, Kind, Panel, View, has_levels
from dashboards.targets.vegalite.bands import days, nights
from dashboards.targets.vegalite.ends import ends
from dashboards.targets.vegalite.index import MOST_ROWS, PREFIX, count_of, hits, lines_of_types
from dashboards.targets.vegalite.job_charts import amounts, beside, busy, coverage, of_jobs, worst
from dashboards.targets.vegalite.jobs import job_groups
from dashboards.targets.vegalite.marks import PLAIN, Paint, Spec, columns_of
from dashboards.targets.vegalite.names import against_line, dots, siblings
from dashboards.targets.vegalite.rates import rates, shares, weighted
from dashboards.targets.vegalite.scatters import against_scores, ranked, scatter
from dashboards.targets.vegalite.sources import ROWS, Source, dataset
from dashboards.targets.vegalite.sums import cut, first_rows, sizes, trend, waste
from dashboards.targets.vegalite.tasks import matrix, pulls, task_curves
from dashboards.targets.vegalite.weights import distribution, tenths
from dashboards.targets.vegalite.words import as_of, caption, light, statement
from esjobs.core.words import ALL_TYPES, Level

Drawn = Callable[[Panel, Source, dict[str, Source], Paint], Spec]

# Kinds of panel that are charts
CHARTS: Mapping[Kind, Drawn] = {
    "scatter-line": against_line,
    "dots-with-errors": dots,
    "siblings": siblings,
    "scatter": scatter,
    "task-curves": task_curves,
    "matrix": matrix,
    "pulls": pulls,
    "shares": shares,
    "waste": waste,
    "weighted": weighted,
    "distribution": distribution,
    "tenths": tenths,
    "trend": trend,
    "sizes": sizes,
    "statement": statement,
    "light": light,
    "as-of": as_of,
    "against-scores": against_scores,
    "caption": caption,
    "ranked": ranked,
    "amounts": amounts,
    "ends": ends,
    "rates": rates,
    "busy": busy,
    "coverage": coverage,
    "beside": beside,
    "days": days,
    "nights": nights,
    "worst": worst,
    "of-jobs": of_jobs,
}


def from_rows(panel: Panel, paint: Paint = PLAIN) -> Spec:
    """The chart of a panel whose rows a page supplies: datasets ``rows`` and one by the name of each join."""
    joins = {join.name: dataset(join.name) for join in panel.joins}
    return CHARTS[panel.kind](panel, dataset(ROWS), joins, paint)


def from_index(
    panel: Panel,
    paint: Paint = PLAIN,
    *,
    processing_type: str = ALL_TYPES,
    method: str | None = None,
    level: Level = "queue",
    prefix: str = PREFIX,
    history: bool = False,
    jobs: JobsIndex = OWN,
) -> Spec:
    """The same chart asking for its rows itself, in a dashboard of Kibana or OpenSearch Dashboards.

    A panel about every type draws each with the line of its own; which types, a reader chooses there.

    ``level``: that which is drawn of a panel that is about every level. ``history``: of every run rather than
    of the latest. ``jobs``: the index of a panel on jobs.
    """
    if panel.view.table == JOBS.name:
        return _of_jobs(panel, paint, prefix, jobs)
    view = panel.view
    if has_levels(view.table):
        view = replace(view, level=view.level or level)

    if panel.kind == "caption":
        counted = count_of(view, processing_type, method, prefix=prefix, name=ROWS)
        return caption(panel, counted, {}, paint)

    few = panel.most[0] if panel.most and panel.kind in _FEW else MOST_ROWS

    def source(
        view: View, columns: Iterable[str], most: int = MOST_ROWS, name: str = "", *, context: bool = True
    ) -> Source:
        return hits(
            view,
            list(columns),
            processing_type,
            method,
            prefix=prefix,
            history=history,
            most=most,
            name=name,
            context=context,
        )

    # what is said of a whole run, no choice of names may hide
    of_run = panel.kind in ("as-of", "light") or (panel.kind == "statement" and view.types == "main")
    joins = {
        join.name: lines_of_types(join.view, join.columns, method, prefix)
        if join.name == "line" and view.types == "every"
        else source(join.view, (join.on, *join.columns), context=not of_run and join.name != UNFILTERED)
        for join in panel.joins
    }
    rows = source(view, columns_of(panel), few, ROWS, context=not of_run)
    made = CHARTS[panel.kind](panel, rows, joins, paint)
    if panel.kind == "dots-with-errors" and panel.most:
        made["transform"] += first_rows(panel.most[0])
    if panel.kind in ("dots-with-errors", "trend") and panel.most and (view.by or not view.over):
        made["layer"].append(cut(panel))
    return made


def _of_jobs(panel: Panel, paint: Paint, prefix: str, jobs: JobsIndex) -> Spec:
    """A chart of jobs; what it joins is the same without the filters of the dashboard."""
    source = job_groups(panel.view, jobs, prefix, name=ROWS)
    joins = {join.name: job_groups(join.view, jobs, prefix, context=False) for join in panel.joins}
    return CHARTS[panel.kind](panel, source, joins, paint)


# Kinds of chart for which ``Panel.most`` is a number of names
_FEW: tuple[Kind, ...] = (
    *("trend", "shares", "waste", "statement", "light", "as-of"),
    *("worst", "of-jobs"),
)
