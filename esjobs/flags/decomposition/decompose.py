"""Step: decompose the deviations of the queues of a run, and publish the parts."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from esjobs.core.clock import Clock
from esjobs.core.query import Days, In, Present, Query, Sum
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, HALF_WIDTH_90, JUDGED
from esjobs.flags.decomposition.machines import LEAST_KNOWN, Machines, read_machines
from esjobs.flags.decomposition.parts import SURE, Facts, in_one_sentence, largest, shares, take_apart
from esjobs.flags.decomposition.shares import rest_rows, share_rows, shares_of
from esjobs.flags.decomposition.smt import SmtStates, against_others, in_declaration, inferred, read_states
from esjobs.publish.finding import run_of_everything
from esjobs.publish.publication import Outcome, read_table, rows_table
from esjobs.publish.publisher import Publisher
from esjobs.publish.question import Question
from esjobs.publish.stored import StoredRun, of_headline
from esjobs.records.names.cpu_models import RESOLVER
from esjobs.records.references.values import ReferenceScore, reference_scores
from esjobs.records.tasks.solved import KnownOfTasks
from esjobs.schema.declared import COREPOWER
from esjobs.schema.decomposition import (
    CPU_SPEED_BY_QUEUE,
    DECOMPOSED,
    DECOMPOSITION,
    QUEUE_RESTS,
    VARIANCE_SHARES,
)
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.speed import FACTORS, FLAGS, SPEED
from esjobs.store.base import JobStore

DECLARED_DAYS = 7  # Days from a declaration on over which the CPU models of then are counted
_FLAG_COLUMNS = (
    *("name", "corepower", "benchmark", "origin", "deviation", "deviation_err", "deviation_err_line"),
    *("verdict", "k", "k_err", "estimate", "estimate_low", "estimate_high"),
)


def decompose(store: JobStore, clock: Clock, settings: object, window: Window | None = None) -> RunReport:
    """Decompose the deviations of a run's queues and publish the parts.

    ``window``: of an unrestricted run; None: the latest. Raises :class:`NoResultError` without such a run.
    Cost: one query to the buckets of the window; one to its jobs if reference tables cover SMT.
    """
    run = run_of_everything(store, SPEED, "flag", window)
    question = Question.ask(DECOMPOSED, run.window, settings, versions=RESOLVER)
    outcome = decompose_run(store, question, run)
    return Publisher(store, clock).publish(question, [outcome])[-1]


def decompose_run(store: JobStore, question: Question, run: StoredRun) -> Outcome:
    """Return the outcome that :func:`decompose` publishes."""
    began = time.perf_counter()
    where = of_headline(run, "queue")
    flags = sorted(read_table(store, FLAGS, where, _FLAG_COLUMNS).to_pylist(), key=lambda row: row["name"])
    deviating = [row for row in flags if _deviation(row) is not None]
    machines = read_machines(store, run.window, KnownOfTasks.of_run(store, run)) if flags else None
    reader = _FactReader(store, run, machines, deviating)
    rows = [row for flag in deviating for row in _rows(reader.of(flag), flag)]
    report = RunReport(
        "decompose",
        question.run,
        len(flags),
        len(rows),
        time.perf_counter() - began,
        rows_are="flags of queues",
        rows_become="parts of deviations",
        counts={
            "queues decomposed": len(deviating),
            "queues whose CPU mix cannot be separated": sum(
                reader.of(flag).own is None for flag in deviating
            ),
        },
        window=str(question.window),
    )
    made: dict[Table, list[dict[str, Any]]] = {DECOMPOSITION: rows}
    if machines is not None:
        shares = shares_of(machines)
        made[CPU_SPEED_BY_QUEUE] = list(_machine_rows(machines, reader.shared))
        made[VARIANCE_SHARES] = list(share_rows(shares))
        made[QUEUE_RESTS] = list(rest_rows(machines, shares, reader.shared))
    tables = {
        table: rows_table(table, [{**row, "speed_run": run.run} for row in made.get(table, ())])
        for table in DECOMPOSED.tables
    }
    return Outcome(report, tables, last_data=None)


def _machine_rows(machines: Machines, shared: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    for pair in machines.pairs:
        error = math.hypot(pair.error, shared.get(pair.queue, 0.0))
        yield {
            "cpu_model": pair.model,
            "processing_type": ALL_TYPES,
            "queue": pair.queue,
            "relative": math.expm1(pair.relative),
            "relative_err": math.exp(pair.relative) * error,
            "sigmas": pair.relative / error if error else None,
            "n_queues": pair.n_queues,
            "n_jobs": pair.n_jobs,
            "n_tasks": pair.n_tasks,
            "cpu_share": machines.mix.get(pair.queue, {}).get(pair.model),
            "label": f"{pair.queue} · {pair.model}",
        }


def _deviation(flag: Mapping[str, Any]) -> tuple[float, float, float] | None:
    # Deviation, error of its logarithm, and its part from the line; of a default from its estimate.
    if flag["verdict"] in JUDGED and flag["deviation"] is not None:
        scale = 1.0 + flag["deviation"]
        return (flag["deviation"], flag["deviation_err"] / scale, (flag["deviation_err_line"] or 0.0) / scale)
    if flag["origin"] == "default" and flag["estimate"] and flag["corepower"]:
        # a default has no deviation of its own: its error follows from the interval of the estimate
        width = math.log(flag["estimate_high"] / flag["estimate_low"]) / (2 * HALF_WIDTH_90)
        own = (flag["k_err"] or 0.0) / flag["k"]
        line = math.sqrt(max(width**2 - own**2, 0.0))
        return flag["estimate"] / flag["corepower"] - 1.0, width, line
    return None


class _FactReader:
    """Collects the facts about queues; each table is read once."""

    def __init__(
        self,
        store: JobStore,
        run: StoredRun,
        machines: Machines | None,
        deviating: Sequence[Mapping[str, Any]],
    ) -> None:
        window = run.window
        self._store = store
        self._window = window
        self._machines = machines
        benchmarks = {(row["benchmark"] or "HS06").lower() for row in deviating}
        self._scores: dict[tuple[str, str], ReferenceScore] = {}
        self._states: SmtStates | None = None
        self._facts: dict[str, Facts] = {}
        if machines is not None:
            self._scores = reference_scores(store, benchmarks)
            if any(score.smt_gain is not None for score in self._scores.values()):
                self._states = read_states(store, window)
        self.shared = _shared_errors(store, run)
        self._declared = _declared_on(store, window)
        first = store.span().first
        self._first = date.max if first is None else first.date()

    def of(self, flag: Mapping[str, Any]) -> Facts:
        """Return the facts about the queue of a flag."""
        if flag["name"] not in self._facts:
            self._facts[flag["name"]] = self._gather(flag)
        return self._facts[flag["name"]]

    def _gather(self, flag: Mapping[str, Any]) -> Facts:
        deviation, error, line_error = _deviation(flag) or (0.0, 0.0, 0.0)
        name, machines = flag["name"], self._machines
        basic: dict[str, Any] = {
            "name": name,
            "deviation": deviation,
            "error": error,
            "line_error": line_error,
            "corepower": flag["corepower"],
            "benchmark": flag["benchmark"] or "HS06",
            "origin": flag["origin"],
            "declared_on": self._declared.get(name),
        }
        if machines is None or name not in machines.mix:
            return Facts(**basic, why_unknown="its job records name no CPU models")
        own = machines.own(name)
        if own is None:
            return Facts(**basic, why_unknown="its CPU models run at no other queue")
        models = machines.runs(name)
        return Facts(
            **basic,
            own=(own[0], math.hypot(own[1], self.shared.get(name, 0.0))),
            mix_error=machines.mix_error(name),
            models=models,
            share=machines.mix[name][models[0][0]] if models else 0.0,
            **self._of_states(flag, machines, basic["benchmark"].lower()),
            then=self._then(name, machines),
        )

    def _of_states(self, flag: Mapping[str, Any], machines: Machines, benchmark: str) -> dict[str, Any]:
        states, name, corepower = self._states, flag["name"], flag["corepower"]
        if states is None:
            return {}
        scores = {model: score for (of, model), score in self._scores.items() if of == benchmark}
        here = against_others(name, machines, states, scores)
        if flag["origin"] == "default":
            return {"here": here}
        other = in_declaration(name, corepower, machines, states, scores)
        found: dict[str, Any] = {"here": here, "declared_other": other}
        deviation, error, _ = _deviation(flag) or (0.0, 0.0, 0.0)
        total = math.log1p(deviation)
        if here is None and other is None and abs(total) > SURE * error:
            # only models whose state no record tells may be in another one
            untold = {
                model: part for model, part in machines.mix[name].items() if states.here(name, model) is None
            }
            found["inferred"] = inferred(corepower, total, error, untold, scores)
        return found

    def _then(self, name: str, machines: Machines) -> tuple[float, float] | None:
        # The hardware of the window over that of the first days of the declaration, in ln.
        since = self._declared.get(name)
        if since is None or not self._first <= since < self._window.first_day:
            return None
        last = min(since + timedelta(days=DECLARED_DAYS), self._window.first_day) - timedelta(days=1)
        where = (In("queue", (name,)), Days("day", since, last), Present("cpu_model"))
        query = Query(("cpu_model",), (Sum("cpu_s", "cpu_s"),), where=where, over=BUCKETS)
        seconds = {
            row["cpu_model"]: row["cpu_s"] or 0.0 for row in self._store.aggregate(query).table.to_pylist()
        }
        total = sum(seconds.values())
        facts = {model: part / total for model, part in seconds.items() if model in machines.models and part}
        if not facts or sum(facts.values()) < LEAST_KNOWN:
            return None
        today = machines.mix[name]
        return machines.of_mix(today) - machines.of_mix(facts), machines.difference_error(today, facts)


def _shared_errors(store: JobStore, run: StoredRun) -> dict[str, float]:
    # Relative errors common to all buckets of a queue: by type, core class and start-up time.
    where = of_headline(run, "queue")
    parts = ("k_err_type", "k_err_class", "k_err_cost")
    rows = read_table(store, FACTORS, where, ["name", "k", *parts]).to_pylist()
    return {
        row["name"]: math.hypot(*(row[part] or 0.0 for part in parts)) / row["k"] for row in rows if row["k"]
    }


def _declared_on(store: JobStore, window: Window) -> dict[str, date]:
    # Start of validity of the value in force at the end of the window.
    columns = ["name", "corepower", "valid_from"]
    newest: dict[str, date] = {}
    for row in read_table(store, COREPOWER, [In("level", ("queue",))], columns).to_pylist():
        if row["corepower"] is not None and row["valid_from"] < window.end:
            day = row["valid_from"].date()
            newest[row["name"]] = max(day, newest.get(row["name"], day))
    return newest


def _rows(facts: Facts, flag: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    parts = take_apart(facts)
    total = math.log1p(facts.deviation)
    first, of_all = largest(parts), shares(parts)
    for part in parts:
        error = part.error
        yield {
            "level": "queue",
            "name": facts.name,
            "processing_type": ALL_TYPES,
            "part": part.part,
            "share": of_all[part.part],
            "share_err": None if error is None or not total else error / abs(total),
            "sentence": part.sentence or None,
            "effect": part.effect,
            "effect_err": error,
            "largest": part is first,
            "deviation": facts.deviation,
            "corepower": facts.corepower,
            "origin": facts.origin,
            "verdict": flag["verdict"],
            "reason": in_one_sentence(facts, parts) if part is first else None,
        }
