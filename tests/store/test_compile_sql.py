"""Queries as SQL: every value a parameter, every name from the catalogue; golden files to read.

``pytest tests/store --update-golden`` writes the golden files anew.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from esjobs.core import fields
from esjobs.core.errors import UsageError
from esjobs.core.query import (
    Count,
    DropRule,
    Either,
    In,
    Maximum,
    Minimum,
    Missing,
    NotLike,
    Present,
    Query,
    Range,
    Select,
    Sum,
    SumProduct,
    SumWhere,
)
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.schema.runs import RUNS
from esjobs.schema.speed import FACTORS
from esjobs.store.duck.compile_sql import (
    Compiled,
    compile_aggregate,
    compile_books,
    compile_read,
    compile_select,
    compile_window,
)
from tests.messages import raised

GOLDEN = Path(__file__).parents[1] / "golden" / "sql"
AUGUST = Window.parse("2018-08-01/2018-09-01")
BUCKETS = Query(
    ("day", "task_id", "core_class", "queue", "cpu_raw", "processing_type"),
    (
        Count(),
        Sum("events", "events"),
        SumProduct("events", "events", "events_sq"),
        Sum("cpu_s", "cpu_s"),
        SumProduct("cpu_s", "cpu_s", "cpu_s_sq"),
        SumProduct("events", "cpu_s", "events_cpu_s"),
        Sum("wall_s", "wall_s"),
        Sum("core_s", "core_s"),
        Sum("cpu_s_per_event", "cpe_sum"),
        SumProduct("cpu_s_per_event", "cpu_s_per_event", "cpe_sq"),
    ),
    AUGUST,
    drops=CleaningRules().drops(),
)
RATIO = Query(
    ("queue",),
    (
        Count("jobs"),
        SumWhere("cpu_s", ("wall_s", "cores"), "cpu_s"),
        SumWhere("core_s", ("cpu_s",), "core_s"),
        SumWhere("events", (), "events"),
        Minimum("end_time", "first"),
        Maximum("day", "last_day"),
    ),
    where=(
        Either((In("queue", ("CERN", "BNL")), Missing("queue"))),
        Present("user"),
        Range("efficiency", ge=0.5),
        Range("events", gt=0, le=100),
        In("cores", (8,)),
    ),
)
HOSTILE = Select(
    ("job_id", "day"),
    where=(
        In("queue", ("' OR 1=1 --", "%", "_", "\\", '"; DROP TABLE jobs; --')),
        NotLike("processing_type", ("100%*_!*", "plain", "pre*", "*'; --*")),
    ),
)
NO_RULES = Query((), (Count(),))
DROP_MISSING = Query(
    (),
    (Count(),),
    drops=(
        DropRule("named", NotLike("user", ("a*",))),
        DropRule("project", In("project", ("x",)), missing="pass", unknown="project unknown"),
    ),
)

WEIGHTED = Query(
    ("level", "site_guessed"),
    (Count("n"), SumProduct("k", "n_jobs", "weighted"), SumWhere("n_jobs", ("k",), "jobs")),
    AUGUST,
    where=(In("status", ("ok",)), Range("n_jobs", ge=50)),
    over=FACTORS,
)

CASES: dict[str, Compiled] = {
    "aggregate-buckets": compile_aggregate(BUCKETS),
    "books-buckets": compile_books(BUCKETS),
    "aggregate-ratio": compile_aggregate(RATIO),
    "books-ratio": compile_books(RATIO),
    "aggregate-no-keys": compile_aggregate(NO_RULES),
    "books-no-rules": compile_books(NO_RULES),
    "aggregate-drop-missing": compile_aggregate(DROP_MISSING),
    "books-drop-missing": compile_books(DROP_MISSING),
    "select-all": compile_select(Select()),
    "select-window": compile_select(Select(("core_class", "efficiency"), AUGUST)),
    "select-hostile": compile_select(HOSTILE),
    "read-all": compile_read(RUNS, (), ()),
    "read-filtered": compile_read(
        FACTORS,
        (
            In("level", ("queue",)),
            Range("k", gt=1.5),
            In("site_guessed", ("false",)),
            NotLike("name", ("A*",)),
        ),
        ("name", "k"),
    ),
    "read-sorted": compile_read(FACTORS, (Present("k"),), ("name", "k"), ("-k", "name"), 25),
    "aggregate-rows": compile_aggregate(WEIGHTED),
    "window": compile_window(AUGUST),
}


def rendered(compiled: Compiled) -> str:
    """SQL and parameters as one file."""
    params = "".join(f"-- ${number}: {value!r}\n" for number, value in enumerate(compiled.params, start=1))
    return f"{compiled.sql.strip()}\n{params}"


@pytest.mark.parametrize("name", CASES)
def test_golden(request: pytest.FixtureRequest, name: str) -> None:
    path = GOLDEN / f"{name}.sql"
    if request.config.getoption("update_golden"):
        path.write_text(rendered(CASES[name]))
    assert rendered(CASES[name]) == path.read_text()


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.sql")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_every_parameter_is_used(name: str) -> None:
    compiled = CASES[name]
    for number in range(1, len(compiled.params) + 1):
        assert f"${number}" in compiled.sql


def test_no_value_is_pasted_into_the_text() -> None:
    for name in ("select-hostile", "read-filtered", "aggregate-buckets", "books-drop-missing"):
        compiled = CASES[name]
        for value in compiled.params:
            if isinstance(value, str):
                assert f"'{value}'" not in compiled.sql
    assert "DROP" not in CASES["select-hostile"].sql
    assert "OR 1=1" not in CASES["select-hostile"].sql


def test_times_are_bound_as_utc_without_a_zone() -> None:
    window = Window(datetime.fromisoformat("2018-08-01T02:00:00+02:00"), datetime(2018, 9, 1, tzinfo=UTC))
    assert compile_window(window).params == (datetime(2018, 8, 1), datetime(2018, 9, 1))  # noqa: DTZ001


@pytest.mark.parametrize("name", [item.name for item in (*fields.JOB_FIELDS, *fields.DERIVED_FIELDS)])
def test_every_field_of_the_catalogue_compiles(name: str) -> None:
    if isinstance(fields.field(name).derived, fields.Resolved):
        with raised(UsageError):
            compile_select(Select((name,)))
    else:
        assert f'AS "{name}"' in compile_select(Select((name,))).sql
