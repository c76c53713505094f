"""Flags with memory in every store: the same states, events and notes, whatever is run again."""

from datetime import UTC, datetime
from typing import Any

import pytest

from esjobs.flags.notes import acknowledge, answer
from esjobs.flags.overview import flag_history, open_flags
from esjobs.publish.publication import read_table
from esjobs.schema.flags import FLAG_STATES, TABLES
from esjobs.store.base import JobStore
from tests.conftest import memory_session
from tests.flags.verdict_nights import LONG, SETTINGS, VerdictNights, night, verdict

NOW = datetime(2025, 3, 1, 9, tzinfo=UTC)
BAD, GOOD = -0.35, 0.01
HOSTILE = "Q'; DROP TABLE flags; -- \"é\\\t"


def remembered(store: JobStore) -> dict[str, list[str]]:
    """Every row of every table, as texts."""
    # the account is the login of each server
    return {
        table.name: sorted(
            str({name: value for name, value in row.items() if name != "account"})
            for row in read_table(store, table).to_pylist()
        )
        for table in TABLES
    }


def course(store: JobStore) -> list[dict[str, list[str]]]:
    """A flag opens, is acknowledged and answered about; another comes and goes; a night is run again."""
    nights = VerdictNights(store)
    told = []
    for number in range(5):
        rows: list[dict[str, Any]] = [verdict(HOSTILE, BAD), verdict("B", BAD if number == 1 else GOOD)]
        if number == 2:
            rows = rows[1:]
        nights.publish(number, rows, rows)
        nights.watch(number)
        if number == 3:
            acknowledge(store, HOSTILE, SETTINGS, LONG, until=night(9), by="ann", text="';\n<b>é", now=NOW)
            answer(store, HOSTILE, SETTINGS, LONG, text="SMT", now=NOW)
        told.append(remembered(store))
    other = [verdict(HOSTILE, BAD), verdict("B", BAD)]
    nights.replace(2, other, other)
    nights.watch(2)
    told.append(remembered(store))
    nights.watch(4)
    told.append(remembered(store))
    return told


@pytest.fixture(scope="module")
def expected() -> list[dict[str, list[str]]]:
    with memory_session() as session:
        return course(session.store)


def test_every_store_remembers_the_same(store: JobStore, expected: list[dict[str, list[str]]]) -> None:
    for number, (told, wanted) in enumerate(zip(course(store), expected, strict=True)):
        assert told == wanted, f"after {number}"
    states = {row["name"]: row["state"] for row in read_table(store, FLAG_STATES).to_pylist()}
    assert states == {HOSTILE: "acknowledged", "B": "resolved"}
    assert open_flags(store).column("name").to_pylist() == [HOSTILE]
    kinds = flag_history(store, HOSTILE).column("kind").to_pylist()
    assert kinds == ["noticed", "opened", "acknowledged", "answered"]
