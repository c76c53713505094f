"""A view means the same to a store as to rows in memory, and a chart asks for the columns that it reads."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashboards.panels import REPORT
from dashboards.spec import Panel, View, Where
from dashboards.targets.vegalite.charts import CHARTS, from_index, from_rows
from dashboards.targets.vegalite.index import MOST_ROWS, body
from dashboards.view.ask import filters, query_rows
from dashboards.view.rows import Row, records, select
from esjobs.api.session import Session
from esjobs.core.query import Count, Maximum, Minimum, Sum, SumProduct
from esjobs.schema.catalogue import table
from tests.conftest import memory_session
from tests.steps.grids import grid_jobs, load

ABOUT_ROWS = [each for each in REPORT if each.view.table]
DRAWN = [each for each in REPORT if each.kind in CHARTS]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A run in which one queue deviates."""
    declared = np.arange(9.25, 25.0)
    speed = declared.copy()
    speed[3] *= 2
    with memory_session() as session:
        jobs = grid_jobs(np.random.default_rng(4), speed, declared, tasks=6)
        jobs.loc[:6, "state"] = "failed"
        load(session, jobs, tmp_path_factory.mktemp("views"))
        session.run()
        yield session


def everything(session: Session, name: str) -> list[Row]:
    """Every visible row of a table."""
    return [row for batch in session.store.read(table(name), ()) for row in records(batch)]


def alike(left: list[Row], right: list[Row]) -> bool:
    """The same rows, whatever their order and the order in which numbers were added."""
    texts = [
        sorted(json.dumps(_rounded(row), sort_keys=True, default=str) for row in rows)
        for rows in (left, right)
    ]
    return texts[0] == texts[1]


def _rounded(row: Row) -> dict[str, Any]:
    return {name: float(f"{value:.9g}") if isinstance(value, float) else value for name, value in row.items()}


@pytest.mark.parametrize("each", ABOUT_ROWS, ids=lambda each: each.id)
def test_a_store_gives_the_rows_that_would_be_chosen(each: Panel, ran: Session) -> None:
    rows = everything(ran, each.view.table)
    assert alike(query_rows(ran.store, each.view, "all", "gamma"), select(each.view, rows, "all", "gamma"))


@pytest.mark.parametrize(
    "where",
    [
        Where("status_shown", ("ok", "candidate")),
        Where("status_shown", ("ok",), negate=True),
        Where("verdict", ("undeclared", None), negate=True),
        Where("origin", ("own",), negate=True),
        Where("component", (0, None)),
        Where("corepower"),
        Where("corepower", negate=True),
        Where("deviation", above=0.05),
        Where("stable", (True,)),
        Where("stable", (True,), negate=True),
    ],
    ids=str,
)
def test_every_condition_has_one_meaning(where: Where, ran: Session) -> None:
    view = View("flags", where=(where,), types="every")
    assert alike(query_rows(ran.store, view), select(view, everything(ran, "flags")))


def test_groups_are_added_up_alike(ran: Session) -> None:
    metrics = (
        Count("n"),
        Sum("n_jobs", "jobs"),
        Minimum("k", "least"),
        Maximum("k", "most"),
        SumProduct("k", "k", "squares"),
    )
    view = View("factors", by=("level", "method"), metrics=metrics, types="every")
    complete = filters(view)[1]
    assert complete
    groups = query_rows(ran.store, view)
    assert alike(groups, select(view, everything(ran, "factors")))
    assert {row["method"] for row in groups} == {"gamma", "paper"}


@pytest.mark.parametrize("each", DRAWN, ids=lambda each: each.id)
def test_a_chart_is_the_same_but_for_where_its_rows_come_from(each: Panel) -> None:
    here, there = from_rows(each), from_index(each)
    lifted = [step for step in there["transform"] if "_source" in json.dumps(step.get("calculate", ""))]
    assert there["transform"][len(lifted) :] == [
        step if "lookup" not in step else there["transform"][len(lifted) + place]
        for place, step in enumerate(here["transform"])
    ]
    assert json.dumps(_bare(here["layer"])) == json.dumps(_bare(there["layer"]))
    known = set(table(each.view.table).column_names)
    assert {step["as"] for step in lifted} <= known
    assert {step["as"] for step in lifted} == set(there["data"]["url"]["body"]["_source"])


def _bare(found: Any) -> Any:
    """Layers without lookups, which name where they look."""
    if isinstance(found, list):
        return [_bare(each) for each in found if not (isinstance(each, dict) and "lookup" in each)]
    return {name: _bare(each) for name, each in found.items()} if isinstance(found, dict) else found


@pytest.mark.parametrize("each", DRAWN, ids=lambda each: each.id)
def test_a_chart_names_no_column_that_its_table_lacks(each: Panel) -> None:
    """What is read below a row of the index is asked of the index, lookups too."""
    text = json.dumps(from_index(replace(each, view=replace(each.view, level="queue"))))
    assert f'"index": "esjobs-latest-{each.view.table.replace("_", "-")}"' in text
    for join in each.joins:
        assert f'"index": "esjobs-latest-{join.view.table.replace("_", "-")}"' in text
        assert {join.on, *join.columns} <= set(table(join.view.table).column_names)


def test_a_search_leaves_room_for_the_dashboard() -> None:
    """Its conditions stand beside the placeholders, for a server refuses ``%context%`` beside a query.

    The latest run is shown whatever the range of time is; its history is not.
    """
    view = View(
        "flags",
        where=(Where("k"), Where("verdict", ("ok",), negate=True)),
        level="queue",
        sort=("-k", "name"),
    )
    asked_for = body(view, ["name", "k"], "all", "gamma")
    assert asked_for == {
        "size": MOST_ROWS,
        "_source": ["name", "k"],
        "sort": [
            {"k": {"order": "desc", "missing": "_last"}},
            {"name": {"order": "asc", "missing": "_last"}},
        ],
        "query": {
            "bool": {
                "must": ["%dashboard_context-must_clause%"],
                "filter": [
                    {"term": {"level": "queue"}},
                    {"term": {"method": "gamma"}},
                    {"term": {"processing_type": "all"}},
                    {"exists": {"field": "k"}},
                    "%dashboard_context-filter_clause%",
                ],
                "must_not": [{"terms": {"verdict": ["ok"]}}, "%dashboard_context-must_not_clause%"],
            }
        },
    }


def _index(name: str) -> str:
    kebab = name.replace("_", "-")
    return f'"index": "esjobs-latest-{kebab}"'
