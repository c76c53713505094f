"""Names of sites, queues and CPU models: case-insensitive, with suggestions."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from esjobs.core.errors import NoJobsError
from esjobs.core.query import Count, In
from esjobs.core.window import Window
from esjobs.core.words import Level
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.records.jobs.resolution import aggregate
from esjobs.records.names import spelling
from esjobs.schema.speed import FACTORS
from esjobs.store.base import JobStore

_KEYS = {"queue": ("site", "queue"), "cpu_model": ("cpu_model",)}


@dataclass(frozen=True)
class Named:
    """Resolved name. ``names``: the queues of a site, one queue, or one CPU model.

    ``site``: the site of the queues; None of a CPU model. ``of_site``: the site was named,
    with all its queues, not one of them.
    """

    level: Level
    title: str
    names: tuple[str, ...]
    site: str | None = None
    of_site: bool = False


def named(store: JobStore, level: Level, name: str, run: StoredRun | None, window: Window | None) -> Named:
    """The queues or the CPU model that ``name`` means, as it stands in a run or, without one, in the jobs.

    A site comes before a queue of its name. Raises :class:`NoJobsError` when nothing is stored,
    :class:`UsageError` with close names for one that is nowhere. Cost: two columns of a run, or one query.
    """
    pairs = _of_run(store, level, run) if run is not None else set()
    if level == "queue":
        names = {queue for _, queue in pairs} | {site for site, _ in pairs if site}
        if not _contains(name, names):
            # a queue that no fit has seen still has jobs
            pairs = pairs | _of_jobs(store, level, window)
        return _site(name, pairs)
    models = {model for _, model in pairs}
    if not _contains(name, models):
        models |= {model for _, model in _of_jobs(store, level, window)}
    _require(models)
    model = spelling.by_words("no job names a CPU model", name, models, "esjobs query --by cpu_model")
    return Named(level, model, (model,))


def _site(name: str, pairs: Collection[tuple[str | None, str]]) -> Named:
    queues = {queue: site for site, queue in pairs}
    _require(queues)
    sites = {site for site in queues.values() if site}
    stored_name = spelling.as_stored(
        "unknown queue or site", [name], sites | set(queues), "esjobs query --by site,queue"
    )[0]
    if stored_name in sites:
        return Named(
            "queue",
            stored_name,
            tuple(sorted(q for q, site in queues.items() if site == stored_name)),
            stored_name,
            True,
        )
    return Named("queue", stored_name, (stored_name,), queues[stored_name])


def _require(names: Iterable[str]) -> None:
    if not list(names):
        raise NoJobsError("no jobs stored; load some: esjobs ingest")


def _contains(name: str, names: Iterable[str]) -> bool:
    return name.casefold() in {each.casefold() for each in names}


def _of_run(store: JobStore, level: Level, run: StoredRun) -> set[tuple[str | None, str]]:
    rows = read_table(store, FACTORS, [In("run", (run.run,)), In("level", (level,))], ["site", "name"])
    return {(row["site"], row["name"]) for row in rows.to_pylist()}


def _of_jobs(store: JobStore, level: Level, window: Window | None) -> set[tuple[str | None, str]]:
    keys = _KEYS[level]
    rows = aggregate(store, keys, (Count("n_jobs"),), window, books=False).table.to_pylist()
    found = {(row.get("site"), row[keys[-1]]) for row in rows}
    return {(site, name) for site, name in found if name is not None}
