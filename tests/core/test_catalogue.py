"""The catalogue, the query language and the tables agree with each other and with the published contract."""

from typing import get_args

import pytest

from esjobs.core import errors, fields
from esjobs.core.arrow import JOB_SCHEMA, PUT_SCHEMA, table_schema
from esjobs.core.identity import content_id
from esjobs.core.query import Count, In, Query, SumProduct, filter_fields, metric_fields
from esjobs.core.rules import CleaningRules
from esjobs.records.jobs.aggregate import BUCKET_KEYS, BUCKET_METRICS
from esjobs.schema import catalogue as capabilities
from esjobs.schema.catalogue import TABLES
from tests.contract.made_up import MADE_UP
from tests.messages import raised

CONTRACT = {
    "factors": "run level name processing_type method k k_err k_err_stat k_err_sandwich k_raw rho component "
    "n_tasks n_buckets n_jobs status reason",
    "flags": "run level name processing_type method corepower benchmark origin k k_err expected_k deviation "
    "deviation_err verdict significant q_value stable proposed_corepower proposed_corepower_err sentence "
    "n_tasks n_jobs component",
    "buckets": "day task_id core_class queue cpu_model processing_type n_jobs events events_sq cpu_s "
    "cpu_s_sq events_cpu_s wall_s core_s cpe_sum cpe_sq",
}


@pytest.mark.parametrize("name", CONTRACT)
def test_published_columns_come_first_and_in_order(name: str) -> None:
    wanted = tuple(CONTRACT[name].split())
    assert capabilities.table(name).column_names[: len(wanted)] == wanted


def test_every_name_has_one_meaning() -> None:
    names = [field.name for field in (*fields.JOB_FIELDS, *fields.DERIVED_FIELDS)]
    assert len(names) == len(set(names))
    assert all(field.meaning for field in (*fields.JOB_FIELDS, *fields.DERIVED_FIELDS))
    for table in TABLES:
        assert len(set(table.column_names)) == len(table.columns)
        assert table.partition in table.column_names
        assert table_schema(table).names == list(table.column_names)


def test_every_engine_is_asked_to_keep_every_type() -> None:
    assert {column.type for column in MADE_UP.columns} == set(get_args(fields.FieldType))


def test_jobs_cross_the_seam_in_catalogue_order() -> None:
    assert JOB_SCHEMA.names == [field.name for field in fields.JOB_FIELDS]
    assert PUT_SCHEMA.names[: len(JOB_SCHEMA)] == JOB_SCHEMA.names


def test_unknown_field_names_the_nearest() -> None:
    with raised(errors.UsageError):
        fields.field("cpus_s")


def test_a_store_is_not_asked_for_what_is_resolved_above_it() -> None:
    with raised(errors.UsageError):
        Query(("cpu_model",), (Count(),))
    with raised(errors.UsageError):
        Query(("queue",), (Count(),), where=(In("cpu_model", ("x",)),))
    with raised(errors.UsageError):
        Query(("cpu_s",), (Count(),))
    with raised(errors.UsageError):
        Query(("queue",), (SumProduct("cpu_s", "nonsense", "x"),))


def test_nothing_in_a_bucket_contains_the_declared_corepower() -> None:
    query = Query(BUCKET_KEYS, BUCKET_METRICS, drops=CleaningRules().drops())
    read = {*query.keys, *filter_fields(tuple(rule.keep for rule in query.drops))}
    for metric in query.metrics:
        read |= set(metric_fields(metric))
    derived = {name for name in read if fields.field(name).derived is not None}
    for name in derived:
        derivation = fields.field(name).derived
        assert isinstance(derivation, fields.Quotient | fields.DayOf | fields.CoreClassOf)
        read |= (
            {*derivation.over, *derivation.under}
            if isinstance(derivation, fields.Quotient)
            else {derivation.field}
        )
    assert not [name for name in read if fields.field(name).declared]
    assert fields.field("hs06_s").declared


def test_rules_keep_their_published_order() -> None:
    assert [rule.reason for rule in CleaningRules().drops()] == [
        "not finished",
        "no events",
        "no cores",
        "wall time out of range",
        "efficiency out of range",
        "excluded processing type",
        "no task",
    ]


def test_rules_have_a_name_that_moves_with_them() -> None:
    assert CleaningRules().digest == CleaningRules().digest
    assert CleaningRules(min_events=2).digest != CleaningRules().digest


def test_content_ids_do_not_depend_on_order() -> None:
    assert content_id({"a": [1, 2], "b": None}) == content_id({"b": None, "a": [1, 2]})
    assert content_id({"a": [1, 2]}) != content_id({"a": [2, 1]})


def test_the_error_tree_has_one_root_and_is_drawn_in_full() -> None:
    drawn = errors.__doc__ or ""
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, errors.EsjobsError)
            assert name in drawn
            assert value.__doc__
