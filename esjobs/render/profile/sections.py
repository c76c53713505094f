"""A profile as sections of words and numbers, which a terminal and a page show alike."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from esjobs.core.freshness import Freshness
from esjobs.core.numbers import many, number, percent, signed_percent
from esjobs.core.words import HALF_WIDTH_90, status_shown
from esjobs.render.profile.days import days_within
from esjobs.render.profile.profile import Profile, Row
from esjobs.render.rows import cell_text
from esjobs.schema.today import EFFICIENCY, FAILED

DAY_BY_DAY = "Day by day"
_LAST_DAYS = 14  # Days of the table; the figures have more


@dataclass(frozen=True)
class Section:
    """A heading, what is to be known of it, sentences, and a table; any of them may be empty.

    ``prose``: columns of the table that may be wrapped.
    """

    title: str
    about: str = ""
    sentences: Sequence[str] = ()
    table: pa.Table | None = None
    prose: Sequence[str] = ()


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table, without columns that are empty."""
    table = pa.Table.from_pylist(list(rows))
    return table.select(
        [name for name in table.column_names if table.column(name).null_count < table.num_rows]
    )


def listed(
    title: str, rows: Sequence[Row], about: str = "", sentences: Sequence[str] = (), prose: Sequence[str] = ()
) -> Section | None:
    """Return a section with a table; None without rows."""
    return Section(title, about, sentences, table_of(rows), prose) if rows else None


def renamed(rows: Iterable[Row], columns: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return some columns of rows under their headings; ``columns``: name, heading."""
    named = list(columns)
    return [{heading: row[name] for name, heading in named} for row in rows]


def heading(profile: Profile) -> str:
    """Return the title of the page."""
    meant = profile.named
    if meant.level == "cpu_model":
        return f"CPU model {meant.title}"
    if meant.of_site:
        count = len(meant.names)
        return f"site {meant.title}, {count} queue{'s' * (count != 1)}"
    return f"queue {meant.title}" + (f" of the site {meant.site}" if meant.site else "")


def source(profile: Profile, now: datetime | None = None) -> str:
    """Return the origin of the numbers and, at a time, their age."""
    if profile.run is None:
        where = f"jobs of {profile.window}" if profile.window else "no jobs"
        return (
            f"{where}; {'no speed factors yet: esjobs run' if profile.has_events else 'no events recorded'}"
        )
    age = Freshness(profile.run.reach, now)
    return f"{profile.run.title}, method {profile.method}; {age.sentence}" + (
        "; too old to send" if age.stale else ""
    )


def sections(profile: Profile) -> list[Section]:
    """Everything there is to say, in the order in which people ask."""
    made = [
        _verdicts(profile),
        _days(profile),
        _types(profile),
        _causes(profile),
        _mixes(profile),
        _machines(profile),
        _references(profile),
        _probes(profile),
        _standings(profile),
        _tasks(profile),
        _history(profile),
        _changes(profile),
    ]
    return [section for section in made if section is not None]


def _verdicts(profile: Profile) -> Section | None:
    if profile.run is None:
        return None
    if not profile.flags:
        return Section(
            "Verdict", sentences=["Its jobs are not in the fit of this run; reasons: esjobs show day_books."]
        )
    sentences = list(_sentences(profile))
    # factors of different components stand in one column, so the row says which scale is its own
    apart = any(row["component"] for row in profile.flags)
    together = [{**row, "name": "all together"} for row in profile.combined]
    rows = [
        {
            **_named(profile, row),
            "verdict": status_shown(row["verdict"], row["confirmed"]),
            "deviation (90 %)": _interval(row["deviation"], row["deviation_err"]),
            "declared": row["corepower"],
            "measured": _estimate(row),
            "should declare": row["proposed_corepower"],
            "benchmark": row["benchmark"] or row["estimate_benchmark"],
            "origin": row["origin"],
            "speed factor": row["k"],
            "error": row["k_err"],
            "grade": row["grade"],
            "rank (90 %)": _rank(row),
            **({"component": row["component"]} if apart else {}),
            "jobs": row["n_jobs"],
            "tasks": row["n_tasks"],
        }
        for row in (*profile.flags, *together)
    ]
    about = (
        "All processing types together. The deviation compares the speed factor with the declared value, on "
        "the scale of all other sites."
    )
    return Section("Verdict", about, sentences, table_of(rows))


def _rank(row: Row) -> str | None:
    low, high = row["rank_low"], row["rank_high"]
    if low is None:
        return None
    return f"{low}" if low == high else f"{low} to {high}"


def _sentences(profile: Profile) -> Iterator[str]:
    yield from (f"All together: {row['sentence']}" for row in profile.combined if row["sentence"])
    for row in profile.flags:
        start = f"{row['name']}: " if len(profile.flags) > 1 else ""
        yield from (f"{start}{text}" for text in _of_flag(profile, row))
    for link in profile.links:
        if link["link"]:
            yield f"Component {link['component']}: {link['link']}"


def _of_flag(profile: Profile, row: Row) -> Iterator[str]:
    yield row["sentence"] or ""
    if row["name"] in profile.needs:
        yield f"Needed for a verdict: {profile.needs[row['name']]}."
    yield from _checked(row)
    yield from (_flag(state) for state in profile.states if state["name"] == row["name"])


def _checked(row: Row) -> Iterator[str]:
    """Yield what a deviation rests on, its checks with their numbers, and what would refute it."""
    if row["checks"]:
        yield f"Rests on {many(row['n_jobs'], 'job')} of {many(row['n_tasks'], 'task')}."
        yield f"Checked (deviation under each): {row['checks']}."
    if row["refuted_by"]:
        yield f"What would refute this: {row['refuted_by']}."


def _flag(state: Row) -> str:
    """Return the flag state of a name, in words."""
    nights = f"{state['nights']:,} night{'s' * (state['nights'] != 1)}"
    if state["state"] == "resolved":
        return f"Its flag was resolved on {state['until']}, after {nights} with a deviation."
    text = f"Its flag is {state['state']} since {state['since']}, {nights} with a deviation."
    if state["state"] == "acknowledged":
        note = f": {state['note']}" if state["note"] else ""
        return f"{text} {state['acknowledged_by']}, until {state['acknowledged_until']}{note}"
    return text


def _days(profile: Profile) -> Section | None:
    by_day: dict[date, dict[str, Row]] = {}
    for row in profile.days:
        by_day.setdefault(row["day"], {})[row["metric"]] = row
    if not by_day:
        return None
    incident = days_within(profile.incidents, max(by_day))
    last = list(by_day)[-_LAST_DAYS:]
    rows = [
        {"day": day, **_of_day(metrics, in_incident=day in incident)}
        for day, metrics in by_day.items()
        if day in incident or day in last
    ]
    about = (
        "Expected: by the site's own past, two standard deviations, before the day was known. Core-hours "
        f"lost beyond the expected, negative: gained. The last {_LAST_DAYS} days, and those of incidents."
    )
    # free texts are absent where names of people are hidden
    sentences = [row["sentence"] or f"Incident since {row['since']}." for row in profile.incidents]
    sentences = sentences or ["No incident in these days."]
    return Section(DAY_BY_DAY, about, sentences, table_of(rows))


def _of_day(metrics: Mapping[str, Row], *, in_incident: bool) -> dict[str, Any]:
    return {
        "CPU efficiency": _measured(metrics, EFFICIENCY),
        "expected efficiency": _expected(metrics, EFFICIENCY),
        "failed": _measured(metrics, FAILED),
        "expected failed": _expected(metrics, FAILED),
        "core-hours lost": round(sum(row["cost_core_h"] or 0.0 for row in metrics.values())),
        "incident": "yes" if in_incident else None,
        "mark": next((row["mark"] for row in metrics.values() if row["mark"]), None),
    }


def _measured(metrics: Mapping[str, Row], name: str) -> str | None:
    return percent(metrics[name]["observed"]) if name in metrics else None


def _expected(metrics: Mapping[str, Row], name: str) -> str | None:
    if name not in metrics or metrics[name]["low"] is None:
        return None
    low, high = (percent(metrics[name][column]) for column in ("low", "high"))
    return f"{low.removesuffix(' %')} to {high}"


def _types(profile: Profile) -> Section | None:
    rows = [
        {
            **_named(profile, row),
            "processing type": row["processing_type"],
            "verdict": status_shown(row["verdict"], row["confirmed"]),
            "deviation (90 %)": _interval(row["deviation"], row["deviation_err"]),
            "speed factor": row["k"],
            "error": row["k_err"],
            "jobs": row["n_jobs"],
            "tasks": row["n_tasks"],
        }
        for row in profile.types
    ]
    return listed("By processing type", rows)


def _causes(profile: Profile) -> Section | None:
    sentences = [row["reason"] for row in profile.reasons if row["largest"] and row["reason"]]
    rows = [
        {
            **_named(profile, row),
            "part": row["part"],
            "effect (90 %)": _effect(row["effect"], row["effect_err"]),
            "share": _share(row["share"]),
            "explanation": row["sentence"],
        }
        for row in profile.reasons
        if row["effect"]
    ]
    about = "Parts of the deviation: (1 + part) multiply to (1 + deviation); shares are of its logarithm."
    return listed("Why", rows, about, sentences, ("explanation",))


def _mixes(profile: Profile) -> Section | None:
    if not profile.mixes:
        return None
    if profile.named.level == "cpu_model":
        return _queues_of_cpu(profile)
    rows = [
        {
            **_named(profile, {"name": row["queue"]}),
            "CPU model": row["cpu_model"] or "not recorded",
            "share of core hours": _share(row["share"]),
            "core hours": (row["core_s"] or 0.0) / 3600,
            "jobs": row["n_jobs"],
            "speed factor of the model": row["k"],
            "error": row["k_err"],
        }
        for row in profile.mixes
    ]
    about = (
        "Shares of the queue's core hours. Factors of CPU models over all queues, on the scale of queues: "
        "the factor of a queue with this model only."
    )
    return Section("CPU models", about, list(_predicted_by_mix(profile)), table_of(rows))


def _predicted_by_mix(profile: Profile) -> Iterator[str]:
    factors = [row for row in profile.factors if row["processing_type"] == "all" and row["k"]]
    for row in factors:
        if row["mix_k"]:
            yield (
                f"{row['name']}: its CPU models predict a factor of {number(row['mix_k'])} ± "
                f"{HALF_WIDTH_90 * (row['mix_k_err'] or 0.0):.2g} (90 %); measured is {number(row['k'])} "
                f"({signed_percent(row['k'] / row['mix_k'] - 1)}). {_share(row['mix_share'] or 0.0)} of its "
                "CPU time is on models with a factor."
            )
    for row in factors:
        if row["component"]:
            yield (
                f"{row['name']}: its speed factor and those of CPU models have no common scale, because it "
                "shares no task with the largest component."
            )


def _queues_of_cpu(profile: Profile) -> Section:
    # 1: without core-hours each share is 0
    total = sum(row["core_s"] or 0.0 for row in profile.mixes) or 1.0
    rows = [
        {
            "queue": row["queue"],
            "share of core hours": _share((row["core_s"] or 0.0) / total),
            "core hours": (row["core_s"] or 0.0) / 3600,
            "jobs": row["n_jobs"],
        }
        for row in profile.mixes
    ]
    return Section("Where it runs", "Core hours are wall-clock time x cores.", table=table_of(rows))


def _machines(profile: Profile) -> Section | None:
    of_cpu = profile.named.level == "cpu_model"
    rows = [
        {
            **({"queue": row["queue"]} if of_cpu else _named(profile, {"name": row["queue"]})),
            **({} if of_cpu else {"CPU model": row["cpu_model"]}),
            "relative to other queues (90 %)": _interval(row["relative"], row["relative_err"]),
            "other queues with it": row["n_queues"],
            "jobs": row["n_jobs"],
            "tasks": row["n_tasks"],
        }
        for row in profile.machines
    ]
    about = "Speed of each CPU model at a queue, relative to the mean of all queues with this model."
    return listed("The same CPU models elsewhere", rows, about)


def _references(profile: Profile) -> Section | None:
    columns = (
        *(("benchmark", "benchmark"), ("value_per_core", "per core"), ("value_per_core_low", "lowest")),
        *(("value_per_core_high", "highest"), ("ambiguous", "ambiguous"), ("smt", "SMT")),
        *(("measured_by", "measured by"), ("source", "source")),
    )
    return listed("Published scores", renamed(profile.references, columns))


def _probes(profile: Profile) -> Section | None:
    if not profile.probes:
        return None
    start = "{queue}: {sentence}" if len(profile.named.names) > 1 else "{sentence}"
    sentences = [start.format(**row) for row in profile.probes]
    about = "Benchmarks in job slots, the 90 days to the end of the window, with 90 % intervals."
    return Section("Probes", about, sentences)


def _standings(profile: Profile) -> Section | None:
    rows = [
        {
            "metric": each.metric,
            "value": _with_unit(each.value, each.unit),
            "others: lower quartile": _with_unit(each.low, each.unit),
            "median": _with_unit(each.median, each.unit),
            "upper quartile": _with_unit(each.high, each.unit),
            "worse than this": None if each.value is None else f"{each.worse:,} of {each.among:,}",
            "meaning": each.meaning,
        }
        for each in profile.percentiles
    ]
    kind = {"cpu_model": "CPU models"}.get(
        profile.named.level, "sites" if profile.named.of_site else "queues"
    )
    about = f"All jobs of the window, compared with other {kind} with 100 jobs or more."
    return listed("Comparison with others", rows, about, prose=("meaning",))


def _with_unit(value: float | None, unit: str) -> str | None:
    # the compared metrics without a unit are shares
    if value is None:
        return None
    return f"{cell_text(value)} {unit}" if unit else percent(value)


def _tasks(profile: Profile) -> Section | None:
    rows = [
        {
            "task": row["task_id"],
            "cores": row["core_class"],
            "processing type": row["processing_type"],
            "jobs here": row["n_jobs"],
            "queues with it": row["n_queues"],
            "faster here by": None if row["deviation"] is None else signed_percent(row["deviation"]),
            "decision": row["decision"],
        }
        for row in profile.tasks
    ]
    about = (
        "Tasks with most jobs. Faster here: compared with the speed that the fit expects, if the run stored "
        "it."
    )
    return listed("Tasks behind the verdict", rows, about)


def _history(profile: Profile) -> Section | None:
    # one window has no course
    if len({row["window_end"] for row in profile.history}) < 2:
        return None
    rows = [
        {
            "window": f"{row['window_start']:%Y-%m-%d}/{row['window_end']:%Y-%m-%d}",
            **_named(profile, row),
            "verdict": status_shown(row["verdict"], row["confirmed"]),
            "deviation (90 %)": _interval(row["deviation"], row["deviation_err"]),
            # another component is another scale: no course over windows
            "speed factor": None if row["component"] else row["k"],
            "error": None if row["component"] else row["k_err"],
            "declared": row["corepower"],
            "measured": _estimate(row),
        }
        for row in profile.history
    ]
    return listed("Over time", rows, "Windows of one length, oldest first.")


def _changes(profile: Profile) -> Section | None:
    sentences = [f"{row['name']}: {row['sentence']}" for row in profile.drifts]
    return Section("Changes", sentences=sentences) if sentences else None


def _named(profile: Profile, row: Row) -> dict[str, str]:
    """The cell that says whose row it is, where there are several."""
    if len(profile.named.names) == 1:
        return {}
    return {"queue" if profile.named.level == "queue" else "CPU model": row["name"]}


def _interval(value: float | None, error: float | None) -> str | None:
    """A relative number in percent with the half-width of its 90 % interval."""
    if value is None or error is None:
        return None
    return signed_percent(value, HALF_WIDTH_90 * error)


def _effect(effect: float, error: float | None) -> str:
    """A part of a deviation, which is given in the logarithm, as a relative number."""
    relative = math.expm1(effect)
    # the error of exp(x) is exp(x) times that of x
    return _interval(relative, error and error * (1 + relative)) or signed_percent(relative)


def _share(value: float | None) -> str | None:
    """A part of something in percent."""
    return None if value is None else percent(value)


def _estimate(row: Row) -> str | None:
    if row["estimate"] is None:
        return None
    return f"{number(row['estimate'])} ({number(row['estimate_low'])} to {number(row['estimate_high'])})"
