"""Panels about the scores of jobs: how they are spread, who has the worst, what was asked for in vain."""

from dataclasses import replace

from dashboards.spec import Entry, Panel, View, Where
from esjobs.core.query import Count, Moment, Sum, SumProduct, SumWhere

SCORES = ("score_cpu", "score_mem", "score_mpi", "score_io", "score_gpu", "score_gpumem")
"""The scores of a job, 0 best and 100 worst: what its users and projects are ranked by."""
_SECTION = "Scores"
_EMPTY = "No job of the chosen time and filters has this score: esjobs score makes scores, of counters."
_NO_SCORES = "No job of the chosen time and filters is scored: esjobs score makes scores."
_NOT_ASKED = "No job of the chosen time and filters says what it asked for, or none is scored: esjobs score."


def distribution(score: str, title: str, note: str = "") -> Panel:
    """How the node-hours are spread over a score."""
    tenth = f"{score}_from"
    return Panel(
        f"{score.replace('_', '-')}-spread",
        f"{title}: node-hours by value, %",
        "distribution",
        _SECTION,
        View(
            "scores",
            types="every",
            where=(Where(tenth),),
            by=(tenth,),
            metrics=(Sum("node_h", "node_h"), Count()),
        ),
        note,
        fields=(
            Entry(tenth, title, "count", "label"),
            Entry("node_h", "Node-hours", "number", "x"),
        ),
        empty=_NO_SCORES if score == "cpu_efficiency" else _EMPTY,
    )


def ranking(score: str, title: str, by: str, what: str) -> Panel:
    """Names by the weighted mean of a score, of those with most node-hours."""
    return Panel(
        f"{score.replace('_', '-')}-by-{by.replace('_', '-')}",
        f"{title} by {what}, the surely worst first (0 best, 100 worst; dashed: all of them)",
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
                Count(),
            ),
            sort=("-node_h",),
        ),
        "Mean over jobs, weighted by their node-hours; in brackets the part of these of which it is known. "
        "By the lower end of 95 % intervals, which take jobs, and their hours and scores, for independent; "
        "five scored jobs or more. "
        "Scores of several families of CPUs are of several definitions: esjobs rank says which.",
        fields=(
            Entry(by, what.capitalize(), "name", "label"),
            Entry(f"{score}_hours", title, "number", "x", per=f"{score}_known"),
            Entry("node_h", "Node-hours", "number"),
        ),
        most=(20,),
        empty=_EMPTY,
    )


def used(what: str, over: str, under: str, by: str, who: str) -> Panel:
    """What was used of what was asked for, per name."""
    return Panel(
        f"scores-{what}-used-by-{by}",
        f"{what.capitalize()} used of {what} asked for, by {who}, most asked for first (dashed: all of them)",
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
                Count(),
            ),
            sort=(f"-{what}_asked",),
        ),
        "A ratio of sums over the jobs that say both; above 100 %: more than was asked for. 95 % intervals "
        "take jobs for independent; users with five jobs or more.",
        fields=(
            Entry(by, who.capitalize(), "name", "label"),
            Entry(
                f"{what}_used",
                f"{what.capitalize()} used of that asked for",
                "fraction",
                "x",
                per=f"{what}_asked",
            ),
        ),
        most=(15,),
        empty=_NOT_ASKED,
    )


CPU_AGAINST_MEM = Panel(
    "score-cpu-against-mem",
    "score_cpu against score_mem, % (area: node-hours)",
    "tenths",
    _SECTION,
    View(
        "scores",
        types="every",
        where=(Where("score_cpu_from"), Where("score_mem_from")),
        by=("score_cpu_from", "score_mem_from"),
        metrics=(Sum("node_h", "node_h"), Count()),
    ),
    "Below on the right: pipelines that stay empty, and not because of memory.",
    fields=(
        Entry("score_cpu_from", "score_cpu", "count", "x"),
        Entry("score_mem_from", "score_mem", "count", "y"),
        Entry("node_h", "Node-hours", "number"),
    ),
    empty=_EMPTY,
)
SPREAD_CPU = distribution("score_cpu", "score_cpu", "Low values are rare: no pipeline is ever full.")
SPREAD_EFFICIENCY = distribution("cpu_efficiency", "CPU efficiency")
CPU_BY_USER = ranking("score_cpu", "score_cpu", "user", "user")
RANKINGS = tuple(
    tuple(
        replace(
            ranking(name, name, by, by),
            id=f"people-{name.replace('_', '-')}-by-{by}",
            title=f"{name} by {by}, the surely worst first",
            description="",
        )
        for by in ("project", "user")
    )
    for name in SCORES
)
"""By each of the scores, projects and users; what a mean is stands once on their page."""
CPU_BY_PROJECT = ranking("score_cpu", "score_cpu", "project", "project")
TIME_USED = used("time", "wall_s", "requested_wall_s", "user", "user")
MEMORY_USED = used("memory", "used_memory_b", "requested_memory_b", "user", "user")
