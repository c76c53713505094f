"""A column that is added to a table of days moves what marks its days as up to date, so none keeps null."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

import esjobs.flags.drift.drift
import esjobs.issues.detect
import esjobs.pop.joining
import esjobs.records.jobs.aggregate
import esjobs.scores.score
import esjobs.today.sums
from esjobs.api.session import Session
from esjobs.core.query import Days
from esjobs.core.tables import Table, column
from esjobs.core.window import Window
from esjobs.issues.in_force import in_force
from esjobs.schema.catalogue import TABLES
from esjobs.scores.settings import EfficiencySettings
from tests.cli.running import job_file

WINDOW = Window.of_days(date(2018, 8, 10), date(2018, 8, 14))

Marks = Callable[[Session], Mapping[date, str]]


def of_scores(session: Session) -> Mapping[date, str]:
    settings = session.settings.section(EfficiencySettings)
    return esjobs.scores.score.fingerprints_of_days(session.store, WINDOW, settings, "")


def of_findings(session: Session) -> Mapping[date, str]:
    return esjobs.issues.detect.fingerprints_of(session.store, in_force(session.settings), WINDOW)


def of_daily_factors(session: Session) -> Mapping[date, str]:
    return esjobs.flags.drift.drift.fingerprints_of_days(session.store, Days.of_window(WINDOW))


def of_pop(session: Session) -> Mapping[date, str]:
    del session
    return {WINDOW.first_day: esjobs.pop.joining.day_mark([["load", "1"]])}


def of_buckets(session: Session) -> Mapping[date, str]:
    behind = esjobs.records.jobs.aggregate.days_behind(session.store, WINDOW, session.settings.rules)
    return {WINDOW.first_day: f"{len(behind)} days are behind"}


def of_day_sums(session: Session) -> Mapping[date, str]:
    return esjobs.today.sums.fingerprints_of_days(session.store.day_fingerprints(WINDOW).to_pylist())


STEPS: dict[str, tuple[object, Marks]] = {
    "buckets": (esjobs.records.jobs.aggregate, of_buckets),
    "day_sums": (esjobs.today.sums, of_day_sums),
    "daily_factors": (esjobs.flags.drift.drift, of_daily_factors),
    "issue_days": (esjobs.issues.detect, of_findings),
    "footprints": (esjobs.issues.detect, of_findings),
    "issues": (esjobs.issues.detect, of_findings),
    "measures": (esjobs.issues.detect, of_findings),
    "pop_orphans": (esjobs.pop.joining, of_pop),
    "pop": (esjobs.pop.joining, of_pop),
    "predicted_scores": (esjobs.scores.score, of_scores),
    "scores": (esjobs.scores.score, of_scores),
}
"""By table of days that are made once: the module that marks them, and its marks."""


@pytest.mark.parametrize("name", STEPS)
def test_another_column_moves_the_mark_of_every_day(
    name: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.ingest("jobs", job_file(tmp_path / "jobs.csv", n_queues=3))
    session.speed.aggregate()
    module, marks = STEPS[name]
    before = marks(session)
    assert before
    assert before == marks(session)
    assert replaced(module, name, monkeypatch)
    after = marks(session)
    assert before.keys() == after.keys()
    assert all(before[day] != after[day] for day in before)


def test_every_table_with_a_mark_is_among_them() -> None:
    marked = {table.name for table in TABLES if "fingerprint" in table.column_names}
    # the books of days mark the buckets
    assert marked - {"day_books"} <= STEPS.keys()


def replaced(module: object, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Put a table with one more column in the place of a module's own; how often it was there."""
    found = 0
    for attribute, value in vars(module).copy().items():
        if isinstance(value, Table) and value.name == name:
            monkeypatch.setattr(module, attribute, with_one_more(value))
            found += 1
        elif isinstance(value, tuple) and any(isinstance(one, Table) and one.name == name for one in value):
            many = tuple(with_one_more(one) if one.name == name else one for one in value)
            monkeypatch.setattr(module, attribute, many)
            found += 1
    return found


def with_one_more(table: Table) -> Table:
    return replace(table, columns=(*table.columns, column("later", "number", "what came later")))


def test_the_layout_is_that_of_names_and_types() -> None:
    (table,) = (table for table in TABLES if table.name == "pop")
    assert table.layout == replace(table, columns=table.columns[::-1], meaning="other words").layout
    assert table.layout != with_one_more(table).layout
