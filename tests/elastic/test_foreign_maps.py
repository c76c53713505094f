"""Truth values and counters in indices of others, however these have them mapped."""

from pathlib import Path
from typing import Any

import pytest

from esjobs.core.errors import SettingsError
from esjobs.core.query import Count, In, Query, Select
from esjobs.store.elastic.fields.field_map import load_field_map
from tests.contract.jobs import groups, job
from tests.elastic.foreign import CATALOGUE, make_index, plain, reader
from tests.messages import raised
from tests.servers.server import Server

DOCUMENTS: list[dict[str, Any]] = [
    {"smt": True, "counters": {"b": 2, "a.x": 1.5}},
    {"smt": False, "counters": {"a": {"x": "3"}, "b": None}},
    {"counters": {}},
    {"smt": True},
]
EXPECTED = [
    (True, [("a.x", 1.5), ("b", 2.0)]),
    (False, [("a.x", 3.0)]),
    (None, None),
    (True, None),
]


@pytest.mark.parametrize(
    ("smt", "counters"),
    [
        ({"type": "boolean"}, {"type": "object", "enabled": False}),
        ({"type": "keyword"}, {"type": "object", "dynamic": True}),
    ],
)
def test_objects_and_truth_values(
    server: Server, index_prefix: str, smt: dict[str, Any], counters: dict[str, Any]
) -> None:
    index = f"{index_prefix}jobs"
    documents = [plain(job(number, **extra)) for number, extra in enumerate(DOCUMENTS)]
    make_index(server, index, {**CATALOGUE, "smt": smt, "counters": counters}, documents)
    store = reader(server, index_prefix, index, load_field_map("esjobs"))
    select = Select(("job_id", "smt", "counters"))
    found = {row["job_id"]: row for batch in store.select(select) for row in batch.to_pylist()}
    assert [(found[str(n)]["smt"], found[str(n)]["counters"]) for n in range(4)] == EXPECTED
    true = Select(("job_id",), where=(In("smt", ("true",)),))
    ids = sorted(str(name) for batch in store.select(true) for name in batch.column(0).to_pylist())
    assert ids == ["0", "3"]
    by_smt = groups(store, Query(("smt",), (Count(),)))
    assert {key: row["n_jobs"] for (key,), row in by_smt.items()} == {True: 2, False: 1, None: 1}
    states = {state.field: (state.state, state.note) for state in store.check_fields()}
    told = "read from the documents; the index does not show whether they have it"
    assert states["counters"] == ("present", told)
    assert states["smt"][0] == ("present" if smt["type"] == "boolean" else "wrong type")
    store.close()


def test_a_map_of_others_that_is_none(server: Server, index_prefix: str) -> None:
    index = f"{index_prefix}jobs"
    documents = [plain(job(number, counters=text)) for number, text in enumerate(("many", "2"))]
    make_index(server, index, {**CATALOGUE, "counters": {"type": "keyword"}}, documents)
    store = reader(server, index_prefix, index, load_field_map("esjobs"))
    rows = [row for batch in store.select(Select(("counters",))) for row in batch.to_pylist()]
    assert rows == [{"counters": None}] * 2
    states = {state.field: state for state in store.check_fields()}
    assert (states["counters"].state, states["counters"].note) == (
        "wrong type",
        "counters is keyword, not an object",
    )
    store.close()


@pytest.mark.parametrize(
    ("text", "error"), [("smt = {constant = true}", ""), ('smt = {constant = "yes"}', "only text")]
)
def test_a_truth_value_can_be_the_same_for_all(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'time = "end"\n[fields]\njob_id = "id"\nqueue = "q"\n{text}\n')
    if error:
        with raised(SettingsError):
            load_field_map(str(path))
    else:
        assert load_field_map(str(path)).sources["smt"].constant is True
