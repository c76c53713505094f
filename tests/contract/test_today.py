"""Daily watch in every store: the same sums, judged days and incidents."""

import pytest

from esjobs.publish.publication import read_table
from esjobs.schema.today import DAY_SUMS, INCIDENT_NIGHTS, INCIDENTS, TODAY_DAYS
from esjobs.store.base import JobStore
from esjobs.today.nights import update
from esjobs.today.settings import TodaySettings
from tests.conftest import memory_session
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, BAD_TO, day, jobs_of, put

_KEYS = {
    DAY_SUMS: ("day", "queue", "task_id", "processing_type", "core_class", "outcome"),
    TODAY_DAYS: ("day", "site", "metric"),
    INCIDENT_NIGHTS: ("night", "site"),
    INCIDENTS: ("site",),
}
_UNLIKE = ("fingerprint",)


def judged(store: JobStore) -> dict[str, dict[tuple[object, ...], dict[str, object]]]:
    """Rows of the watch by their keys, after two updates."""
    put(store, jobs_of(range(BAD_TO + 1)))
    update(store, day(BAD_FROM), TodaySettings())
    update(store, day(BAD_TO), TodaySettings())
    found = {}
    for table, keys in _KEYS.items():
        rows = read_table(store, table).to_pylist()
        found[table.name] = {
            tuple(row[key] for key in keys): {name: row[name] for name in row if name not in _UNLIKE}
            for row in rows
        }
        assert len(found[table.name]) == len(rows)
    return found


def test_every_store_judges_alike(store: JobStore) -> None:
    with memory_session() as session:
        expected = judged(session.store)
    mine = judged(store)
    assert mine.keys() == expected.keys()
    for table, rows in expected.items():
        assert mine[table].keys() == rows.keys(), table
        for key, row in rows.items():
            for name, value in row.items():
                wanted = pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
                assert mine[table][key][name] == wanted, (table, key, name)
    assert list(mine["incidents"]) == [(BAD_SITE,)]
