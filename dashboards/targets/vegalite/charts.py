"""From a panel to its chart: the one list of which kind is drawn how."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from dashboards.spec import JOBS, OWN, UNFILTERED, JobsIndex, Join, Kind, Panel, has_levels
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
from esjobs.core.words import ALL_TYPES

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
    prefix: str = PREFIX,
    jobs: JobsIndex = OWN,
) -> Spec:
    """The same chart asking for its rows itself, in a dashboard of Kibana or OpenSearch Dashboards.

    A panel about every type draws each with the line of its own; which types, a reader chooses there.

    Of a panel that is about every level it draws queues. ``jobs``: the index of a panel on jobs.
    """
    if panel.view.table == JOBS.name:
        return _of_jobs(panel, paint, prefix, jobs)
    view = panel.view
    if has_levels(view.table):
        view = replace(view, level=view.level or "queue")

    if panel.kind == "caption":
        counted = count_of(view, processing_type, method, prefix=prefix, name=ROWS)
        return caption(panel, counted, {}, paint)

    source = partial(hits, processing_type=processing_type, method=method, prefix=prefix)
    # what is said of a whole run, no choice of names may hide
    of_run = panel.kind in ("as-of", "light") or (panel.kind == "statement" and view.types == "main")

    def joined(join: Join) -> Source:
        if join.name == "line" and view.types == "every":
            return lines_of_types(join.view, join.columns, method, prefix)
        context = not of_run and join.name != UNFILTERED
        return source(join.view, (join.on, *join.columns), context=context)

    few = panel.most[0] if panel.most and panel.kind in _FEW else MOST_ROWS
    rows = source(view, columns_of(panel), most=few, name=ROWS, context=not of_run)
    joins = {join.name: joined(join) for join in panel.joins}
    return _shortened(panel, CHARTS[panel.kind](panel, rows, joins, paint))


def _shortened(panel: Panel, made: Spec) -> Spec:
    """A chart of the first names, with a line that says how many there are."""
    if not panel.most or panel.kind not in ("dots-with-errors", "trend"):
        return made
    if panel.kind == "dots-with-errors":
        made["transform"] += first_rows(panel.most[0])
    if panel.view.by or not panel.view.over:
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
