"""Similarity by names of symbols: planted programs, a second implementation, what is missing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.similar.static import N_HASHES, StaticSimilarity, hashed

RUNTIME = [f"_start_{i}" for i in range(8)]


def program(name: str, version: int) -> list[str]:
    """A program's names: most stay from version to version."""
    return [*RUNTIME, *(f"{name}_{i}" for i in range(version, 40 + version))]


def by_definition(fingerprints: list[list[str] | None]) -> np.ndarray:
    """The cosine of every two, from dictionaries of names, without hashes."""
    sets = [frozenset(names) if names else None for names in fingerprints]
    different = {names for names in sets if names is not None}
    weight = {
        name: math.log((1 + len(different)) / (1 + sum(name in each for each in different))) + 1
        for each in different
        for name in each
    }

    def product(one: frozenset[str], other: frozenset[str]) -> float:
        return sum(weight[name] ** 2 for name in one & other)

    result = np.full((len(sets), len(sets)), np.nan)
    for i, one in enumerate(sets):
        for j, other in enumerate(sets):
            if one is not None and other is not None:
                result[i, j] = product(one, other) / math.sqrt(product(one, one) * product(other, other))
    return result


def matrix(similar: StaticSimilarity) -> np.ndarray:
    return np.array([similar.similarity(i) for i in range(len(similar))]).reshape(len(similar), -1)


def test_versions_of_a_program_are_nearer_than_other_programs() -> None:
    fingerprints = [program(name, version) for name in ("gmx", "lmp", "vasp") for version in range(4)]
    found = matrix(StaticSimilarity(fingerprints))
    own = np.kron(np.eye(3), np.ones((4, 4))).astype(bool)
    assert found[own].min() > found[~own].max()
    assert found[~own].max() < 0.2


NAMES = st.one_of(st.none(), st.lists(st.sampled_from([f"name_{i}" for i in range(30)]), max_size=12))


@given(st.lists(NAMES, min_size=1, max_size=8))
def test_it_is_the_definition(fingerprints: list[list[str] | None]) -> None:
    found = matrix(StaticSimilarity(fingerprints))
    np.testing.assert_allclose(found, by_definition(fingerprints), atol=1e-12)
    assert np.nanmax(found, initial=0.0) <= 1.0
    np.testing.assert_allclose(found, found.T, atol=1e-12)


@given(st.lists(NAMES, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_changes_a_number(fingerprints, random) -> None:  # type: ignore[no-untyped-def]
    before = matrix(StaticSimilarity(fingerprints))
    order = list(range(len(fingerprints))) * 3
    random.shuffle(order)
    again = [sorted(fingerprints[i] or [], reverse=True) * 2 for i in order]
    np.testing.assert_allclose(matrix(StaticSimilarity(again)), before[np.ix_(order, order)], atol=1e-12)


def test_what_has_no_names_has_no_similarity() -> None:
    similar = StaticSimilarity([None, ["a"], [], ["a"]])
    np.testing.assert_array_equal(similar.similarity(1), [np.nan, 1.0, np.nan, 1.0])
    assert np.isnan(similar.similarity(0)).all()
    assert similar.shared(0, 1) == []
    assert len(StaticSimilarity([])) == 0
    assert np.isnan(StaticSimilarity([None]).similarity(0)).all()


def test_shared_names_are_those_that_make_the_similarity() -> None:
    fingerprints = [program("gmx", 0), program("gmx", 5), program("lmp", 0)]
    similar = StaticSimilarity(fingerprints)
    shared = similar.shared(0, 1, top=None)
    assert {each.name for each in shared} == set(fingerprints[0]) & set(fingerprints[1])
    assert shared[0].name.startswith("gmx_")
    assert shared[-1].name.startswith("_start_")
    assert sum(each.share for each in shared) == pytest.approx(similar.similarity(0)[1])
    assert [each.name for each in similar.shared(0, 1, top=2)] == [each.name for each in shared[:2]]


def test_hashes_are_the_same_everywhere() -> None:
    """CRC-32 of "123456789" is its published check value."""
    assert hashed(["123456789"]).tolist() == [0xCBF43926 % N_HASHES]
    assert hashed(["\udcff\x00", ""]).max() < N_HASHES
