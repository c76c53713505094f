"""Tests that need a server are put in an order that starts each server once."""

from collections import defaultdict
from itertools import groupby

import pytest

from tests.servers.plugin import chosen_products, server_params
from tests.servers.products import PRODUCTS
from tests.servers.vendors import vendor_of


def test_tests_of_a_version_stay_together_and_those_of_a_vendor_in_one_process(
    request: pytest.FixtureRequest,
) -> None:
    names = []
    for item in request.session.items:
        groups = [marker.args[0] for marker in item.iter_markers("xdist_group")]
        marker = item.get_closest_marker("server")
        names.append(None if marker is None else marker.args[0])
        assert groups == ([] if marker is None else [PRODUCTS[marker.args[0]].vendor.name])
    visits = [name for name, _ in groupby(names) if name is not None]
    assert len(visits) == len(set(visits))


def test_names_tell_the_vendor() -> None:
    assert vendor_of("tests/a.py::test_x[elasticsearch9]") == "elasticsearch"
    assert vendor_of("tests/a.py::test_x[case-opensearch2-other]@opensearch") == "opensearch"
    assert vendor_of("tests/opensearch2.py::test_opensearch2") is None


def test_parameters_carry_the_mark_of_their_product() -> None:
    assert [param.id for param in server_params()] == list(PRODUCTS)
    (one,) = server_params("opensearch3")
    assert one.values == ("opensearch3",)
    assert [mark.name for mark in one.marks] == ["server"]
    first, more = server_params("opensearch3", matrix=("opensearch2",))
    assert [mark.name for mark in first.marks] == ["server"]
    assert [mark.name for mark in more.marks] == ["server", "matrix"]


def test_a_test_runs_on_one_of_the_servers_that_it_names_or_on_one_of_each_vendor() -> None:
    names = [f"tests/a.py::test_{number}" for number in range(100)]
    chosen = [chosen_products(name, list(PRODUCTS), each_vendor=False) for name in names]
    assert {len(found) for found in chosen} == {1}
    assert all(chosen.count({product}) > 10 for product in PRODUCTS)
    both = [chosen_products(name, list(PRODUCTS), each_vendor=True) for name in names]
    assert all(
        {PRODUCTS[one].vendor.name for one in found} == {"elasticsearch", "opensearch"} for found in both
    )
    assert set().union(*both) == {*PRODUCTS}
    assert chosen_products(names[0], ["opensearch3"], each_vendor=False) == {"opensearch3"}
    assert chosen_products(names[0], ["duckdb-file", "duckdb-memory"], each_vendor=True) <= {
        "duckdb-file",
        "duckdb-memory",
    }


COVERED = {
    "test_killed_in_the_middle_of_a_load": "lost bulks in tests/elastic/faults.py",
    "test_killed_while_it_was_read": "the snapshot that is closed in tests/elastic/faults.py",
    "test_a_master_is_lost": "test_a_node_with_an_address_is_lost; answers 503 in tests/elastic/faults.py",
    "test_killed_in_the_moment_of_publication": "lost and late answers in tests/elastic/faults.py",
    "test_documents_survive_a_kill": "restarts in tests/servers/test_servers.py",
    "test_who_may_only_read_may_not_write": "tests/elastic/test_access.py",
    "test_a_server_that_does_not_start_shows_its_log": "no other test: it is about the tests themselves",
}
"""Tests of the matrix alone, each more than half a minute, and what covers them in ``make test``."""


def test_no_other_test_is_of_the_matrix_alone(request: pytest.FixtureRequest) -> None:
    in_matrix: dict[str, set[bool]] = defaultdict(set)
    for item in request.session.items:
        if item.get_closest_marker("server"):
            in_matrix[item.nodeid.partition("[")[0]].add(item.get_closest_marker("matrix") is not None)
    alone = {name.rpartition("::")[2] for name, found in in_matrix.items() if False not in found}
    assert alone <= set(COVERED)
