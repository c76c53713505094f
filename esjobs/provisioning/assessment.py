"""Pipeline step: quality index from a questionnaire and job records; comparison of two indices."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from esjobs.core.errors import NoResultError
from esjobs.core.identity import content_id
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.provisioning.contacts import Rank
from esjobs.provisioning.index import Points, area_points, index_points, points_of
from esjobs.provisioning.measures import Measured, measured
from esjobs.provisioning.questionnaire import Input, Questionnaire
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.records.answer import Answer
from esjobs.schema.provisioning import QUALITY_INDEX
from esjobs.schema.provisioning_names import AREAS
from esjobs.store.base import JobStore

_Key = tuple[Any, ...]
COMPARED_SCHEMA = pa.schema(
    [
        *(("area", pa.string()), ("points_a", pa.float64()), ("points_b", pa.float64())),
        *(("difference", pa.float64()), ("n_inputs", pa.int64()), ("n_left_out", pa.int64())),
    ]
)


def assess(store: JobStore, rank: Rank, questionnaire: Questionnaire, now: datetime) -> RunReport:
    """Compute the index of a centre and publish it, replacing that of the same period.

    Missing inputs are rows with a reason; they never count as zero.
    """
    began = time.perf_counter()
    answers = [_answer(store, rank, questionnaire, each) for each in questionnaire.inputs]
    rows = _rows(questionnaire, answers, now)
    # of centre and period: computed again, an index replaces itself
    identity = rows[0]["assessment"]
    store.publish([store.replace(QUALITY_INDEX, identity, rows_table(QUALITY_INDEX, rows).to_batches())])
    tidy(store)
    missing = [
        f"missing: {each.area}: {each.name} ({answer.reason})"
        for each, answer in zip(questionnaire.inputs, answers, strict=True)
        if answer.value is None
    ]
    unasked = [area for area in AREAS if area not in {each.area for each in questionnaire.inputs}]
    missing += [f"missing: {area} (no questions in the questionnaire)" for area in unasked]
    return RunReport(
        "provision index",
        identity,
        len(answers),
        sum(answer.value is not None for answer in answers),
        time.perf_counter() - began,
        rows_are="inputs",
        rows_become="known",
        counts={"missing": sum(answer.value is None for answer in answers)},
        notes=tuple(missing),
        window=str(questionnaire.period),
    )


def _answer(store: JobStore, rank: Rank, questionnaire: Questionnaire, each: Input) -> Measured:
    if each.measure is not None:
        return measured(store, rank, each.measure, questionnaire.period, questionnaire.where)
    return Measured(each.value, "" if each.value is not None else "not entered")


def _rows(questionnaire: Questionnaire, answers: Sequence[Measured], now: datetime) -> list[dict[str, Any]]:
    period = str(questionnaire.period)
    common = {
        "assessment": content_id({"centre": questionnaire.centre, "period": period}),
        "centre": questionnaire.centre,
        "period": period,
        "made_at": now,
    }
    areas: dict[str, Points] = {}
    rows: list[dict[str, Any]] = []
    for area, priority in AREAS.items():
        mine = [
            (each, one) for each, one in zip(questionnaire.inputs, answers, strict=True) if each.area == area
        ]
        areas[area] = area_points([each for each, _ in mine], [one.value for _, one in mine])
        of_area = {"area": area, "priority": priority, "label": f"{questionnaire.centre} {period}: {area}"}
        weight = questionnaire.weights[area]
        rows.append({**of_area, "kind": "area", "name": area, "weight": weight, **_points(areas[area])})
        rows += [{**of_area, **_input_row(each, one)} for each, one in mine]
    index = {"kind": "index", "name": "index", "label": f"{questionnaire.centre} {period}: index"}
    rows.insert(0, {**index, **_points(index_points(areas, questionnaire.weights))})
    return [{**common, **row, "position": order} for order, row in enumerate(rows)]


def _points(points: Points) -> dict[str, Any]:
    return {
        "points": points.points,
        "points_low": points.low,
        "points_high": points.high,
        "coverage": points.coverage,
    }


def _input_row(each: Input, answer: Measured) -> dict[str, Any]:
    present = answer.value is not None
    points = points_of(answer.value, each.worst, each.best) if answer.value is not None else None
    return {
        "kind": "input",
        "name": each.name,
        "origin": ("entered" if each.measure is None else "measured") if present else "missing",
        "measure": each.measure,
        "value": answer.value,
        "worst": each.worst,
        "best": each.best,
        "points": points,
        # an unknown answer may be worth anything: it widens the interval and leaves the points alone
        "points_low": 0.0 if points is None else points,
        "points_high": 100.0 if points is None else points,
        "weight": each.weight,
        "coverage": 1.0 if present else 0.0,
        "reason": answer.reason or None,
    }


def indexed(store: JobStore, assessment: str) -> pa.Table:
    """Return the rows of an index in the columns for people, the index first."""
    rows = read_table(store, QUALITY_INDEX, [In("assessment", (assessment,))])
    shown = ("kind", "area", "name", "origin", "value", "points", "points_low", "points_high")
    return rows.sort_by("position").select([*shown, "weight", "coverage"])


def compare(store: JobStore, first: str, second: str) -> Answer:
    """Compare two indices on the inputs that both have, with the same meaning.

    ``first``, ``second``: a centre, ``CENTRE PERIOD``, or an assessment. Weights are those of the first.
    Other inputs are excluded and named. Raises :class:`NoResultError` for missing or ambiguous indices.
    """
    a, b = _stored(store, first), _stored(store, second)
    inputs = [_inputs(side) for side in (a, b)]
    # only inputs of one meaning can be compared: name, measure and both ends of the scale
    every = list(inputs[0] | inputs[1])
    common = [key for key in inputs[0] if key in inputs[1]]
    notes = {f"only in one of them: {area}: {name}" for area, name, *_ in set(every) - set(common)}
    weights = _weights(a)
    of_inputs = [[side[key]["weight"] for key in common] for side in inputs]
    if weights != _weights(b) or of_inputs[0] != of_inputs[1]:
        notes.add("their weights differ; those of the first are used for both")
    sides = [{area: _over(area, common, inputs[0], side) for area in AREAS} for side in inputs]
    rows = [_compared("index", [index_points(side, weights).points for side in sides], every, common)]
    for area in AREAS:
        points = [side[area].points for side in sides]
        of_area = ([key for key in keys if key[0] == area] for keys in (every, common))
        rows.append(_compared(area, points, *of_area))
    title = f"a: {a[0]['centre']} {a[0]['period']}; b: {b[0]['centre']} {b[0]['period']}"
    return Answer(pa.Table.from_pylist(rows, COMPARED_SCHEMA), tuple(sorted(notes)), title=title)


def _weights(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {row["area"]: row["weight"] for row in rows if row["kind"] == "area"}


def _inputs(rows: Sequence[Mapping[str, Any]]) -> dict[_Key, Mapping[str, Any]]:
    """Return present inputs by everything that defines their meaning."""
    return {
        tuple(row[name] for name in ("area", "name", "measure", "worst", "best")): row
        for row in rows
        if row["kind"] == "input" and row["value"] is not None
    }


def _over(
    area: str, common: Sequence[_Key], weighing: Mapping[_Key, Any], found: Mapping[_Key, Any]
) -> Points:
    mine = [key for key in common if key[0] == area]
    inputs = [Input(area, key[1], key[3], key[4], weight=weighing[key]["weight"]) for key in mine]
    return area_points(inputs, [found[key]["value"] for key in mine])


def _compared(
    name: str, points: Sequence[float | None], inputs: Sequence[_Key], common: Sequence[_Key]
) -> dict[str, Any]:
    a, b = points
    return {
        "area": name,
        "points_a": a,
        "points_b": b,
        "difference": None if a is None or b is None else b - a,
        "n_inputs": len(common),
        "n_left_out": len(inputs) - len(common),
    }


def _stored(store: JobStore, query: str) -> list[dict[str, Any]]:
    """Return the rows of an assessment, the index first."""
    heads = read_table(store, QUALITY_INDEX, [In("kind", ("index",))]).to_pylist()
    if not heads:
        raise NoResultError("no index stored; run: esjobs provision index FILE")
    names = {row["assessment"]: f"{row['centre']} {row['period']}" for row in heads}
    fitting = [row for row in heads if query in (row["assessment"], row["centre"], names[row["assessment"]])]
    if len(fitting) != 1:
        ordered = sorted(fitting or heads, key=lambda row: (row["centre"], row["period"]))
        listed = ", ".join(f"'{names[row['assessment']]}'" for row in ordered)
        which = "several indices are" if fitting else "no index is"
        raise NoResultError(f"{which} called '{query}'; use one of: {listed}")
    rows = read_table(store, QUALITY_INDEX, [In("assessment", (fitting[0]["assessment"],))]).to_pylist()
    return sorted(rows, key=lambda row: int(row["position"]))
