"""Cleaning, merging and the kinds of columns that are read."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fitters import Buckets, InputError, fit_speed_factors
from tests.messages import raised

nan = float("nan")


def books_balance(buckets: Buckets) -> bool:
    used = buckets.n_buckets if buckets.rows is None else int(buckets.rows.sum())
    return buckets.n_rows == used + sum(buckets.dropped.values())


@pytest.mark.parametrize(
    ("column", "bad", "reason"),
    [
        ("value", nan, "value not finite"),
        ("value", float("inf"), "value not finite"),
        ("value", 0.0, "value not positive"),
        ("value", -1.0, "value not positive"),
        ("value", 1e-300, "value outside 1e-100..1e100"),
        ("value", 1e300, "value outside 1e-100..1e100"),
        ("value", 1e99, "value 1e12 times off its task"),
        ("value", 1e-99, "value 1e12 times off its task"),
        ("task", None, "task missing"),
        ("unit", None, "unit missing"),
        ("jobs", 0, "jobs not positive"),
        ("jobs", nan, "jobs not positive"),
        ("jobs", 1e16, "jobs not positive"),
        ("rel_var", -0.1, "rel_var negative or infinite"),
        ("rel_var", float("inf"), "rel_var negative or infinite"),
    ],
)
def test_a_bad_row_is_dropped_under_its_reason_and_changes_nothing_else(
    column: str, bad: object, reason: str
) -> None:
    good: dict[str, list[object]] = {
        "task": ["t", "t", "t", "u", "u"],
        "unit": ["A", "B", "C", "A", "B"],
        "value": [1.0, 2.0, 3.0, 1.1, 2.0],
        "jobs": [10, 10, 10, 10, 10],
        "rel_var": [0.01, 0.01, 0.01, 0.01, 0.01],
    }
    row: dict[str, object] = {"task": "t", "unit": "D", "value": 2.5, "jobs": 5, "rel_var": 0.02}
    expected = Buckets.from_columns(**good)
    buckets = Buckets.from_columns(
        **{name: [*values, {**row, column: bad}[name]] for name, values in good.items()}
    )
    assert buckets.dropped == {reason: 1}
    assert books_balance(buckets)
    np.testing.assert_array_equal(buckets.value, expected.value)
    np.testing.assert_array_equal(buckets.ptr, expected.ptr)
    if column != "unit":
        assert buckets.unit_names.tolist() == ["A", "B", "C", "D"]
        assert buckets.unit_reasons == {3: reason}
        units = fit_speed_factors(buckets).units
        assert units.row("D")["status"] == "no data"
        assert units.row("D")["reason"] == f"all rows dropped: {reason}"
        assert np.isnan(units.row("D")["k"])


@pytest.mark.parametrize(
    ("cpu_s", "events", "reason"),
    [
        (5.0, 0.0, "events not positive"),
        (5.0, -1.0, "events not positive"),
        (5.0, nan, "events not positive"),
        (nan, 2.0, "value not finite"),
        (float("inf"), 2.0, "value not finite"),
        (5.0, float("inf"), "value not finite"),
        (0.0, 2.0, "value not positive"),
        (-5.0, 2.0, "value not positive"),
        (1e300, 1.0, "value outside 1e-100..1e100"),
        (1e300, 1e-300, "value not finite"),
        (1e-300, 1e300, "value outside 1e-100..1e100"),
        (1e200, 1e200, "value outside 1e-100..1e100"),
    ],
)
def test_bad_sums(cpu_s: float, events: float, reason: str) -> None:
    buckets = Buckets.from_columns(["t"] * 3, ["A", "B", "C"], cpu_s=[2.0, 4.0, cpu_s], events=[1, 1, events])
    assert buckets.dropped == {reason: 1}
    assert books_balance(buckets)


def test_a_row_counts_once_under_the_first_reason() -> None:
    buckets = Buckets.from_columns(["t", None, "t"], ["A", None, None], [1.0, nan, nan], jobs=[1, 0, 0])
    assert buckets.dropped == {"task missing": 1, "unit missing": 1}


def test_sums_merge_by_sums_and_not_by_means() -> None:
    buckets = Buckets.from_columns(
        ["t", "t", "t"],
        ["A", "B", "A"],
        cpu_s=[100.0, 50.0, 10.0],
        events=[10, 10, 9],
        jobs=[5, 5, 1],
        rel_var=[0.01, 0.04, 0.25],
    )
    assert buckets.value.tolist() == [110 / 19, 5.0]
    assert buckets.jobs is not None
    assert buckets.jobs.tolist() == [6, 5]
    assert buckets.rel_var is not None
    np.testing.assert_allclose(buckets.rel_var, [(100**2 * 0.01 + 10**2 * 0.25) / 110**2, 0.04])
    assert buckets.rows is not None
    assert buckets.rows.tolist() == [2, 1]
    assert books_balance(buckets)


def test_values_merge_weighted_with_jobs() -> None:
    buckets = Buckets.from_columns(
        ["t"] * 3, ["A", "A", "B"], [1.0, 4.0, 2.0], jobs=[3, 1, 1], rel_var=[0.1, 0.2, 0.3]
    )
    np.testing.assert_allclose(buckets.value, [7 / 4, 2.0])
    assert buckets.rel_var is not None
    np.testing.assert_allclose(buckets.rel_var, [(9 * 0.1 + 16 * 0.2) / 49, 0.3])
    plain = Buckets.from_columns(["t"] * 3, ["A", "A", "B"], [1.0, 4.0, 2.0])
    np.testing.assert_allclose(plain.value, [2.5, 2.0])


def test_an_unknown_variance_beside_a_known_one_takes_its_spread_per_job() -> None:
    columns = {
        "cpu_s": [100.0, 10.0, 5.0],
        "events": [10, 1, 1],
        "jobs": [10, 1, 1],
        "rel_var": [0.01, nan, nan],
    }
    buckets = Buckets.from_columns(["t"] * 3, ["A", "A", "B"], **columns)
    assert buckets.rel_var is not None
    # 0.1 per job: 0.01 for ten jobs, 0.1 for the lone one
    np.testing.assert_allclose(buckets.rel_var, [(100**2 * 0.01 + 10**2 * 0.1) / 110**2, nan])


def test_splitting_a_bucket_in_two_gives_its_variance_back() -> None:
    whole = Buckets.from_columns(["t"], ["A"], cpu_s=[100.0], events=[10], jobs=[8], rel_var=[0.02])
    halves = Buckets.from_columns(
        ["t"] * 2, ["A"] * 2, cpu_s=[50.0] * 2, events=[5] * 2, jobs=[4] * 2, rel_var=[0.04] * 2
    )
    for name in ("value", "jobs", "rel_var"):
        np.testing.assert_allclose(getattr(whole, name), getattr(halves, name))


labels = ["b", "a", None, "b", "c", "a"]


@pytest.mark.parametrize(
    "column",
    [
        labels,
        tuple(labels),
        np.array(labels, object),
        pd.Series(labels),
        pd.Series(labels, dtype="category"),
        pd.Categorical(labels, categories=["z", "c", "b", "a"]),
        pd.Index(labels),
        pa.array(labels),
        pa.array(labels).dictionary_encode(),
        pa.chunked_array([labels[:2], labels[2:]]),
        pa.chunked_array(
            [pa.array(labels[:2]).dictionary_encode(), pa.array(labels[2:]).dictionary_encode()]
        ),
        pd.Series(labels, dtype=pd.ArrowDtype(pa.string())),
        np.ma.array(["b", "a", "x", "b", "c", "a"], mask=np.arange(6) == 2),
        (label for label in labels),
    ],
    ids=lambda column: type(column).__name__,
)
def test_labels_of_many_libraries_read_the_same(column: object) -> None:
    buckets = Buckets.from_columns(["t"] * 6, column, np.arange(1.0, 7.0))
    assert buckets.unit_names.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(buckets.value, [4.0, 2.5, 5.0])
    assert buckets.dropped == {"unit missing": 1}


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        pd.Series,
        pa.array,
        lambda v: pa.chunked_array([v]),
        lambda v: pd.Series(v, dtype="Float64"),
        lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.float64())),
        lambda v: np.array(v)[::-1][::-1],
        lambda v: np.array(v, dtype=">f4"),
    ],
)
def test_numbers_of_many_libraries_read_the_same(make: Callable[[list[float]], object]) -> None:
    numbers = [1.0, 2.0, 4.0]
    buckets = Buckets.from_columns(make([1, 1, 1]), ["A", "B", "C"], make(numbers), jobs=make([3, 4, 5]))
    assert buckets.value.tolist() == numbers
    assert buckets.jobs is not None
    assert buckets.jobs.tolist() == [3, 4, 5]


def test_missing_numbers_are_dropped_whatever_their_spelling() -> None:
    for column in (
        [1.0, None, 2.0],
        pd.Series([1.0, None, 2.0], dtype="Float64"),
        pd.Series([1, None, 2], dtype="Int64"),
        pa.array([1.0, None, 2.0]),
        pa.array([1, None, 2]),
        np.ma.array([1.0, 5.0, 2.0], mask=np.arange(3) == 1),
    ):
        assert Buckets.from_columns(["t"] * 3, ["A", "B", "C"], column).dropped == {"value not finite": 1}


def test_integer_labels_sort_as_numbers_and_mixed_ones_as_text() -> None:
    assert Buckets.from_columns([10, 9, 100], [1, 2, 3], [1.0] * 3).task_names.tolist() == [9, 10, 100]
    huge = [2**62, -(2**62), 5]
    assert Buckets.from_columns(huge, [1, 2, 3], [1.0] * 3).task_names.tolist() == sorted(huge)
    assert Buckets.from_columns([10, "a", 9], [1, 2, 3], [1.0] * 3).task_names.tolist() == [10, 9, "a"]
    assert Buckets.from_columns([2**70, 1], [1, 2], [1.0] * 2).task_names.tolist() == [1, 2**70]


def test_all_dropped_leaves_rows_with_a_reason() -> None:
    buckets = Buckets.from_columns(["t", "t"], ["A", "B"], [0.0, nan])
    assert buckets.n_buckets == buckets.n_tasks == 0
    assert books_balance(buckets)
    result = fit_speed_factors(buckets)
    assert result.units.status.tolist() == ["no data", "no data"]
    assert len(result.tasks) == 0
    assert np.isnan(result.units.k).all()
    assert result.dof == 0


t2, u2, v2 = ["t", "t"], ["A", "B"], [1.0, 2.0]


@pytest.mark.parametrize(
    "arguments",
    [
        ([], [], []),
        (t2, ["A"], v2),
        (t2, u2, [1.0]),
        (t2, u2, ["1", "2"]),
        (t2, u2, np.array([1, "x"], object)),
        (t2, u2, [1j, 2j]),
        (t2, u2, [[1.0], [2.0]]),
        (t2, u2, 1.0),
        (t2, u2),
        ("tt", u2, v2),
        (t2, 5, v2),
        (np.array([[1], [2]]), u2, v2),
        (t2, [["A"], ["B"]], v2),
        (t2, u2, np.array(["2020-01-01", "2020-01-02"], "M8[D]")),
    ],
)
def test_columns_that_cannot_be_read_are_refused_by_name(arguments: tuple[object, ...]) -> None:
    with raised(InputError):
        Buckets.from_columns(*arguments)


@pytest.mark.parametrize("extra", [{"cpu_s": v2}, {"events": v2}, {"cpu_s": v2, "events": v2, "value": v2}])
def test_value_and_sums_exclude_each_other(extra: dict[str, list[float]]) -> None:
    with raised(InputError):
        Buckets.from_columns(t2, u2, **extra)


def test_integer_codes_are_neither_copied_nor_changed() -> None:
    """Sorting needs 16 bytes a row beside 12 that are kept; copies of codes and values would be 16 more."""
    rng = np.random.default_rng(3)
    n = 200_000
    task, unit = rng.integers(0, 5000, n).astype(np.int32), rng.integers(0, 400, n).astype(np.int32)
    task[:5000], unit[:400] = np.arange(5000), np.arange(400)
    _, first = np.unique(task.astype(np.int64) * 400 + unit, return_index=True)
    task, unit = task[first], unit[first]
    value = rng.uniform(1.0, 2.0, first.size)
    columns = (task, unit, value)
    for column in columns:
        column.flags.writeable = False
    copies = [column.copy() for column in columns]
    Buckets.from_columns(*copies)  # compiled
    tracemalloc.start()
    try:
        buckets = Buckets.from_columns(*copies)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 19 * first.size
    read_only = Buckets.from_columns(*columns)
    for name in ("ptr", "unit", "value", "task_names", "unit_names"):
        np.testing.assert_array_equal(getattr(buckets, name), getattr(read_only, name))
    for column, copy in zip(columns, copies, strict=True):
        np.testing.assert_array_equal(column, copy)


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 700])
def test_units_are_sorted_inside_tasks_of_any_size_and_repeated_ones_merged_in_their_order(size: int) -> None:
    rng = np.random.default_rng(size)
    unit = rng.permutation(np.repeat(rng.permutation(3 * size)[:size], 2))
    task, value = np.repeat([1, 0], [size, size]), rng.uniform(1.0, 2.0, 2 * size)
    buckets = Buckets.from_columns(task, unit, value)
    expected: dict[tuple[int, int], list[float]] = {}
    for t, u, v in zip(task.tolist(), unit.tolist(), value.tolist(), strict=True):
        expected.setdefault((t, u), []).append(v)
    owner = np.repeat(buckets.task_names, np.diff(buckets.ptr)).tolist()
    names = buckets.unit_names[buckets.unit].tolist()
    keys = list(zip(owner, names, strict=True))
    for t in (0, 1):
        assert [u for o, u in keys if o == t] == sorted(u for o, u in expected if o == t)
    assert buckets.value.tolist() == pytest.approx([np.mean(expected[key]) for key in keys], rel=1e-14)
