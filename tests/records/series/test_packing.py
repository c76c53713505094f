"""Packed series: what comes back is the nearest 32-bit float, whatever form was chosen."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.core.errors import StoreError
from esjobs.records.series.packing import (
    ALL_MISSING,
    BYTES,
    CONSTANT,
    FLOATS,
    SHORTS,
    pack,
    spans,
    unpack,
    unpack_equal,
)
from tests.messages import raised

NAN, INF = float("nan"), float("inf")

FORMS: dict[int, list[Any]] = {
    ALL_MISSING: [[], [NAN], [None, NAN], [INF, -INF], [1e39]],
    CONSTANT: [[0.0], [0.25, 0.25], [3e38], [-0.0, 0.0], [254.0] * 9],
    BYTES: [[0.0, 1.0], [254.0, NAN], [0.0, None, 7.0]],
    SHORTS: [[255.0, 0.0], [65534.0, 1.0, NAN]],
    FLOATS: [[65535.0, 0.0], [-1.0, 0.0], [0.5, 1.0], [1e18, 0.0], [1e-45, 0.0]],
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_chosen_where_it_is_enough(form: int) -> None:
    for samples in FORMS[form]:
        packed = pack(np.array(samples, float))
        assert packed[0] == form, samples
        assert len(packed) == 1 + {0: 0, 1: 4, 2: 4, 3: 1, 4: 2}[form] * (1 if form == 1 else len(samples))


samples = st.lists(
    st.one_of(
        st.just(NAN),
        st.floats(allow_nan=True, allow_infinity=True),
        st.integers(0, 255).map(float),
        st.integers(0, 70_000).map(float),
        st.sampled_from([0.0, -0.0, 0.01, np.nextafter(0.01, 0), 5e-324, 1e300]),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(samples)
def test_samples_come_back_as_the_nearest_32_bit_floats(given_samples: list[float]) -> None:
    with np.errstate(over="ignore"):
        wanted = np.array(given_samples, np.float64).astype(np.float32)
    wanted[~np.isfinite(wanted)] = NAN
    found = unpack(pack(given_samples), len(given_samples))
    np.testing.assert_array_equal(found, wanted)
    assert not np.signbit(found[found == 0]).any()


@settings(deadline=None)
@given(samples, st.sampled_from([0.01, 0.0, 0.1, 0.7, 1e6, 40.0]))
def test_no_sample_comes_to_the_other_side_of_a_threshold(
    given_samples: list[float], threshold: float
) -> None:
    exact = np.array(given_samples, np.float64)
    known = np.abs(exact) < 1e38
    found = unpack(pack(given_samples), len(given_samples))
    assert not (found[known & (exact >= threshold)] < threshold).any()
    assert not (found[known & (exact <= threshold)] > threshold).any()


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 300.0, 0.5, NAN]), min_size=3, max_size=3), max_size=30))
def test_many_series_at_once_are_those_one_by_one(rows: list[list[float]]) -> None:
    packed = pa.array([b"other", *map(pack, rows), b"other"], pa.binary())[1:-1]
    wanted = np.array([unpack(pack(row), 3) for row in rows], np.float32).reshape(-1, 3)
    np.testing.assert_array_equal(unpack_equal(packed, 3), wanted)


@pytest.mark.parametrize("broken", [b"", b"\x02\x00", b"\x03\x01", b"\x09\x01\x02", b"\x01\x00", b"\x00\x00"])
def test_what_is_no_series_is_said_to_be_none(broken: bytes) -> None:
    with raised(StoreError):
        unpack(broken, 2)


def test_a_series_without_bytes_is_said_to_be_none() -> None:
    with raised(StoreError):
        unpack_equal(pa.array([None], pa.binary()), 1)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_rows_are_taken_in_any_order_whatever_their_forms(length: int) -> None:
    """Of one form or of several: what stands there is what each series alone says."""
    rng = np.random.default_rng(length)
    several = [
        np.full(length, np.nan),
        np.full(length, 0.5),
        rng.random(length),
        np.arange(length) * 1.0,
        np.arange(length) * 300.0,
    ]
    packed = [pack(each) for each in several]
    stored = spans(pa.array(packed, pa.binary()))
    for rows in ([2], [3, 3], [4, 4, 4], [1, 1], [0], [4, 0, 2, 1, 3, 2]):
        found = unpack_equal(stored.take(np.array(rows)), length)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, [unpack(packed[row], length) for row in rows])
        found += 1  # the rows are the caller's own
    np.testing.assert_array_equal(unpack(packed[2], length), several[2].astype(np.float32))
