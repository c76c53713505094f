"""Panels about scores of jobs: distributions, worst names, use of requests."""

from dataclasses import replace

from dashboards.spec import Entry, Panel, View, Where
from esjobs.core.query import Moment, Sum, SumProduct, SumWhere

SCORES = ("score_cpu", "score_mem", "score_mpi", "score_io", "score_gpu", "score_gpumem")
"""Scores of a job, 0 best and 100 worst."""
_SECTION = "Scores"
_EMPTY = "No jobs with this score in this selection; esjobs score needs hardware counters."
_NO_SCORES = "No scored jobs in this selection; run: esjobs score."
# ordinary jobs of large days share rows
_N_JOBS = Sum("n_jobs", "n_jobs")
_NO_REQUESTS = "No jobs here record a request."


def distribution(score: str, title: str, note: str = "") -> Panel:
    """Panel of node-hours by score."""
    tenth = f"{score}_from"
    return Panel(
        f"{score.replace('_', '-')}-spread",
        f"Distribution of {title}",
        "distribution",
        _SECTION,
        View(
            "scores",
            types="every",
            where=(Where(tenth),),
            by=(tenth,),
            metrics=(Sum("node_h", "node_h"), _N_JOBS),
        ),
        f"Node-hours by value, %. {note}".strip(),
        fields=(
            Entry(tenth, title, "count", "label"),
            Entry("node_h", "Node-hours", "number", "x"),
        ),
        empty=_NO_SCORES if score == "cpu_efficiency" else _EMPTY,
    )


def ranking(score: str, title: str, by: str, what: str) -> Panel:
    """Panel of names by weighted mean of a score, of those with most node-hours."""
    return Panel(
        f"{score.replace('_', '-')}-by-{by.replace('_', '-')}",
        f"Worst {title.removeprefix('score_').upper()} scores by {what}",
        "weighted",
        _SECTION,
        View(
            "scores",
            types="every",
            where=(Where(by),),
            by=(by,),
            metrics=(
                # panels of a page share their sums, so each has a name of its own
                SumProduct(score, "node_h", f"{score}_hours"),
                SumWhere("node_h", (score,), f"{score}_known"),
                SumProduct(f"{score}_sq", "node_h", f"{score}_hours_sq"),
                Moment(("node_h", "node_h"), f"{score}_known_sq", (score,)),
                Moment((), f"{score}_hours_jobs", (score,)),
                Sum("node_h", "node_h"),
                _N_JOBS,
            ),
            sort=("-node_h",),
        ),
        "0 best, 100 worst. Mean over jobs, weighted by node-hours; in brackets the fraction of them with a "
        "score. Sorted by the lower limit of 95 % intervals, for independent jobs; five scored jobs "
        "or more. Dashed: all. Definitions differ between CPU families (esjobs rank).",
        fields=(
            Entry(by, what.capitalize(), "name", "label"),
            Entry(f"{score}_hours", title, "number", "x", per=f"{score}_known"),
            Entry("node_h", "Node-hours", "number"),
        ),
        most=(20,),
        empty=_EMPTY,
    )


def used(what: str, over: str, under: str, by: str, who: str) -> Panel:
    """Panel of the used fraction of a request, per name."""
    return Panel(
        f"scores-{what}-used-by-{by}",
        f"Used against requested {what}",
        "shares",
        _SECTION,
        View(
            "scores",
            types="every",
            where=(Where(by), Where(over), Where(under)),
            by=(by,),
            metrics=(
                Sum(over, f"{what}_used"),
                Sum(under, f"{what}_asked"),
                Moment((over, over), f"{what}_used_sq"),
                Moment((over, under), f"{what}_used_x_{what}_asked"),
                Moment((under, under), f"{what}_asked_sq"),
                _N_JOBS,
            ),
            sort=(f"-{what}_asked",),
        ),
        "By user, largest request first. Ratio of sums over jobs that record both; above 100 %: more than "
        "requested. 95 % intervals, for independent jobs; users with five jobs or more. Dashed: all.",
        fields=(
            Entry(by, who.capitalize(), "name", "label"),
            Entry(
                f"{what}_used",
                f"Used {what} over requested {what}",
                "fraction",
                "x",
                per=f"{what}_asked",
            ),
        ),
        most=(15,),
        empty=_NO_REQUESTS,
    )


CPU_AGAINST_MEM = Panel(
    "score-cpu-against-mem",
    "CPU or memory bound?",
    "tenths",
    _SECTION,
    View(
        "scores",
        types="every",
        where=(Where("score_cpu_from"), Where("score_mem_from")),
        by=("score_cpu_from", "score_mem_from"),
        metrics=(Sum("node_h", "node_h"), _N_JOBS),
    ),
    "score_cpu against score_mem, %; area: node-hours. Lower right: idle pipelines, memory is free.",
    fields=(
        Entry("score_cpu_from", "score_cpu", "count", "x"),
        Entry("score_mem_from", "score_mem", "count", "y"),
        Entry("node_h", "Node-hours", "number"),
    ),
    empty=_EMPTY,
)
SPREAD_CPU = distribution("score_cpu", "score_cpu", "Low values are rare: pipelines are never full.")
SPREAD_EFFICIENCY = distribution("cpu_efficiency", "CPU efficiency")
CPU_BY_USER = ranking("score_cpu", "score_cpu", "user", "user")
RANKINGS = tuple(
    tuple(
        replace(
            ranking(name, name, by, by),
            id=f"people-{name.replace('_', '-')}-by-{by}",
            title=f"Worst {name.removeprefix('score_').upper()} scores by {by}",
            description="",
        )
        for by in ("project", "user")
    )
    for name in SCORES
)
"""Each score by projects and users; their page explains the mean once."""
CPU_BY_PROJECT = ranking("score_cpu", "score_cpu", "project", "project")
TIME_USED = used("time", "wall_s", "requested_wall_s", "user", "user")
MEMORY_USED = used("memory", "used_memory_b", "requested_memory_b", "user", "user")
