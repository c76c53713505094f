"""Fields that few records carry: kept by every engine, and nothing else moves by them."""

from esjobs.core.query import Count, In, Query
from esjobs.store.base import JobStore
from tests.contract.jobs import Row, batch, groups, job, put, selected

COUNTERS = [("INST_RETIRED.ANY", 1.5e19), ('odd "name", é', 0.0), ("uops_issued.any", 3.0)]
FULL: Row = {
    "nodes": 2,
    "gpus": 0,
    "smt": False,
    "requested_wall_s": 86400.0,
    "requested_memory_b": 5e11,
    "requested_cores": 64,
    "requested_gpus": 4,
    "application": "gromacs",
    "cluster": "fritz",
    "subcluster": "icelake",
    "exit_code": "0:15",
    "counters": COUNTERS,
    "executable": "/opt/gromacs/2024.1/bin/gmx_mpi",
    "error": "pilot:1305",
    "node": "wn042.site.tld",
    "release": "Athena/24.0.41",
}
NAMES = tuple(FULL)


def test_every_value_comes_back(store: JobStore) -> None:
    put(store, "a", job(1, **FULL), job(2), job(3, smt=True))
    expected = [tuple(None for _ in NAMES), tuple(FULL.values())]
    found = selected(store, *NAMES, where=[In("job_id", ("1", "2"))])
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert [dict(counts) for counts in selected(store, "counters") if counts] == [dict(COUNTERS)]


def test_truth_values_are_filtered_and_grouped_by(store: JobStore) -> None:
    put(store, "a", *(job(n, smt=smt) for n, smt in enumerate((True, True, False, None))))
    assert selected(store, "job_id", where=[In("smt", ("true",))]) == ["0", "1"]
    assert selected(store, "job_id", where=[In("smt", ("false",))]) == ["2"]
    found = groups(store, Query(("smt",), (Count(),)))
    assert {key: row["n_jobs"] for (key,), row in found.items()} == {True: 2, False: 1, None: 1}


def test_a_poorer_copy_takes_no_counters_away(store: JobStore) -> None:
    put(store, "rich", job(1, **FULL))
    before = selected(store), store.day_fingerprints(None)
    counts = store.put_jobs([batch([job(1)])], "poor")
    assert (counts.jobs_changed, counts.kept) == (0, dict.fromkeys(NAMES, 1))
    assert (selected(store), store.day_fingerprints(None)) == before
    store.put_jobs([batch([job(1, events=5)])], "poor and new")
    store.undo_load("rich")
    assert selected(store, "counters", "smt", "events") == [(None, None, 5)]


def test_counters_are_replaced_together(store: JobStore) -> None:
    """What was counted in two ways is not mixed: a ratio of its parts would mean nothing."""
    put(store, "a", job(1, counters=[("cycles", 10.0), ("slots", 40.0)]))
    counts = store.put_jobs([batch([job(1, counters=[("cycles", 12.0)], nodes=1)])], "b")
    assert counts.changed == {"counters": 1, "nodes": 1}
    assert selected(store, "counters") == [[("cycles", 12.0)]]
    put(store, "c", job(1, gpus=1))
    assert selected(store, "counters", "nodes", "gpus") == [([("cycles", 12.0)], 1, 1)]
    store.undo_load("b")
    assert selected(store, "counters", "nodes") == [([("cycles", 10.0), ("slots", 40.0)], None)]


def test_thousands_of_names_are_no_thousands_of_fields(store: JobStore) -> None:
    """An index that knew each name would refuse the load: a mapping has a thousand fields at most."""
    rows = [job(n, counters=[(f"event.{n}.{k}", float(k)) for k in range(100)]) for n in range(50)]
    assert put(store, "a", *rows) == (50, 0, 0)
    assert sum(len(counts) for counts in selected(store, "counters")) == 5000
