"""The step: an index of a centre made of a questionnaire and the records; and two of them held together."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from esjobs.schema.provisioning import QUALITY_INDEX
from esjobs.schema.provisioning_names import AREAS
from esjobs.store.base import JobStore

COMPARED_SCHEMA = pa.schema(
    [
        *(("area", pa.string()), ("points_a", pa.float64()), ("points_b", pa.float64())),
        *(("difference", pa.float64()), ("n_inputs", pa.int64()), ("n_left_out", pa.int64())),
    ]
)


@dataclass(frozen=True)
class Comparison:
    """Two indices over what both know, and what has to be said of them."""

    rows: pa.Table
    title: str
    notes: tuple[str, ...]


def assess(store: JobStore, rank: Rank, asked: Questionnaire, now: datetime) -> RunReport:
    """Make the index of a centre and publish it in place of that of the same centre and period.

    Missing inputs are rows with a reason and count nowhere, least of all as zero.
    """
    began = time.perf_counter()
    answers = [_answer(store, rank, asked, each) for each in asked.inputs]
    rows = _rows(asked, answers, now)
    identity = rows[0]["assessment"]
    store.publish([store.replace(QUALITY_INDEX, identity, rows_table(QUALITY_INDEX, rows).to_batches())])
    tidy(store)
    missing = [
        f"missing: {each.area}: {each.name} ({answer.reason})"
        for each, answer in zip(asked.inputs, answers, strict=True)
        if answer.value is None
    ]
    unasked = [area for area in AREAS if area not in {each.area for each in asked.inputs}]
    missing += [f"missing: {area} (the questionnaire asks nothing)" for area in unasked]
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
        window=str(asked.period),
    )


def _answer(store: JobStore, rank: Rank, asked: Questionnaire, each: Input) -> Measured:
    if each.measure is not None:
        return measured(store, rank, each.measure, asked.period, asked.where)
    return Measured(each.value, "" if each.value is not None else "nobody entered it")


def _rows(asked: Questionnaire, answers: Sequence[Measured], now: datetime) -> list[dict[str, Any]]:
    period = str(asked.period)
    common = {
        "assessment": content_id({"centre": asked.centre, "period": period}),
        "centre": asked.centre,
        "period": period,
        "made_at": now,
    }
    areas: dict[str, Points] = {}
    rows: list[dict[str, Any]] = []
    for area, priority in AREAS.items():
        mine = [(each, one) for each, one in zip(asked.inputs, answers, strict=True) if each.area == area]
        areas[area] = area_points([each for each, _ in mine], [one.value for _, one in mine])
        of_area = {"area": area, "priority": priority, "label": f"{asked.centre} {period}: {area}"}
        weight = asked.weights[area]
        rows.append({**of_area, "kind": "area", "name": area, "weight": weight, **_told(areas[area])})
        rows += [{**of_area, **_input_row(each, one)} for each, one in mine]
    index = {"kind": "index", "name": "index", "label": f"{asked.centre} {period}: index"}
    rows.insert(0, {**index, **_told(index_points(areas, asked.weights))})
    return [{**common, **row, "place": place} for place, row in enumerate(rows)]


def _told(points: Points) -> dict[str, Any]:
    return {
        "points": points.points,
        "points_low": points.low,
        "points_high": points.high,
        "coverage": points.coverage,
    }


def _input_row(each: Input, answer: Measured) -> dict[str, Any]:
    known = answer.value is not None
    points = points_of(answer.value, each.worst, each.best) if answer.value is not None else None
    return {
        "kind": "input",
        "name": each.name,
        "origin": ("entered" if each.measure is None else "measured") if known else "missing",
        "measure": each.measure,
        "value": answer.value,
        "worst": each.worst,
        "best": each.best,
        "points": points,
        "points_low": 0.0 if points is None else points,
        "points_high": 100.0 if points is None else points,
        "weight": each.weight,
        "coverage": 1.0 if known else 0.0,
        "reason": answer.reason or None,
    }


def indexed(store: JobStore, assessment: str) -> pa.Table:
    """The rows of an index in the columns that people read, the index first, then area by area."""
    rows = read_table(store, QUALITY_INDEX, [In("assessment", (assessment,))])
    return rows.sort_by("place").select(
        [
            "kind",
            "area",
            "name",
            "origin",
            "value",
            "points",
            "points_low",
            "points_high",
            "weight",
            "coverage",
        ]
    )


def compare(store: JobStore, first: str, second: str) -> Comparison:
    """Two indices over the inputs that both know and that mean the same in both.

    ``first``, ``second``: a centre, ``CENTRE PERIOD``, or an assessment. Weights are those of the first. What
    only one of them knows is left out of both and named, for it would compare questionnaires instead of
    centres. Raises :class:`NoResultError` for what is not there or not clear.
    """
    a, b = _stored(store, first), _stored(store, second)
    inputs_a, inputs_b = _inputs(a), _inputs(b)
    common = [key for key in inputs_a if key in inputs_b]
    notes = [
        f"only in one of them: {key[0]}: {key[1]}" for key in (*inputs_a, *inputs_b) if key not in common
    ]
    weights = {row["area"]: row["weight"] for row in a if row["kind"] == "area"}
    if weights != {row["area"]: row["weight"] for row in b if row["kind"] == "area"} or any(
        inputs_a[key]["weight"] != inputs_b[key]["weight"] for key in common
    ):
        notes.append("their weights differ; those of the first are taken for both")
    sides = [{area: _over(area, common, inputs_a, found) for area in AREAS} for found in (inputs_a, inputs_b)]
    rows: list[dict[str, Any]] = []
    for area in AREAS:
        left = sum(key[0] == area and key not in common for key in {*inputs_a, *inputs_b})
        number = sum(key[0] == area for key in common)
        rows.append(_compared(area, sides[0][area].points, sides[1][area].points, number, left))
    a_index, b_index = (index_points(side, weights).points for side in sides)
    every = {*inputs_a, *inputs_b}
    rows.insert(0, _compared("index", a_index, b_index, len(common), len(every) - len(common)))
    title = f"a: {a[0]['centre']} {a[0]['period']}; b: {b[0]['centre']} {b[0]['period']}"
    return Comparison(pa.Table.from_pylist(rows, COMPARED_SCHEMA), title, tuple(sorted(set(notes))))


_Key = tuple[Any, ...]


def _inputs(rows: Sequence[Mapping[str, Any]]) -> dict[_Key, Mapping[str, Any]]:
    """The known inputs by all that says what they mean."""
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


def _compared(name: str, a: float | None, b: float | None, number: int, left: int) -> dict[str, Any]:
    difference = None if a is None or b is None else b - a
    return {
        "area": name,
        "points_a": a,
        "points_b": b,
        "difference": difference,
        "n_inputs": number,
        "n_left_out": left,
    }


def _stored(store: JobStore, asked: str) -> list[dict[str, Any]]:
    """The rows of an assessment, that of the index first."""
    heads = read_table(store, QUALITY_INDEX, [In("kind", ("index",))]).to_pylist()
    if not heads:
        raise NoResultError("no index is stored; make one: esjobs provision index FILE")
    fitting = [
        row
        for row in heads
        if asked in (row["assessment"], row["centre"], f"{row['centre']} {row['period']}")
    ]
    if len(fitting) != 1:
        listed = ", ".join(
            f"'{row['centre']} {row['period']}'" for row in sorted(fitting or heads, key=_when)
        )
        which = "several indices are" if fitting else "no index is"
        raise NoResultError(f"{which} called '{asked}'; there are {listed}")
    rows = read_table(store, QUALITY_INDEX, [In("assessment", (fitting[0]["assessment"],))]).to_pylist()
    return sorted(rows, key=lambda row: int(row["place"]))


def _when(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["centre"], row["period"]
