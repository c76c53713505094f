"""Scan for the cause of a loss on planted parts."""

import numpy as np
import pytest

from esjobs.today.causes import Leaves, partitions_of, scan

SITES, QUEUES, TASKS, CATEGORIES = 6, 12, 8, 4


def leaves(seed: int, counts: bool) -> Leaves:
    """Leaves of every queue, task and, of failures, category; a queue is of the site of half its number."""
    rng = np.random.default_rng(seed)
    queue, task, category = (
        each.ravel() for each in np.meshgrid(*map(np.arange, (QUEUES, TASKS, CATEGORIES)), indexing="ij")
    )
    expected = rng.uniform(5, 50, len(queue))
    variance = expected * (1 + 0.05 * expected) if counts else expected**2 * 0.08**2
    value = rng.poisson(expected) if counts else expected * np.exp(0.05 * rng.standard_normal(len(queue)))
    codes = {"site": queue // 2, "queue": queue, "kind": task % 3, "task": task}
    if counts:
        codes["category"] = category
    return Leaves(
        value.astype(float), expected, variance, codes, np.zeros(len(queue)), np.zeros(len(queue)), counts
    )


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize(
    "planted",
    [
        (("site", 3),),
        (("queue", 5),),
        (("task", 2),),
        (("kind", 1),),
        (("queue", 4), ("task", 6)),
        (("site", 2), ("kind", 0)),
    ],
)
def test_the_planted_part_is_found(planted: tuple[tuple[str, int], ...], counts: bool) -> None:
    of = leaves(3, counts)
    rows = np.logical_and.reduce([of.codes[name] == code for name, code in planted])
    value = np.where(rows, of.value * (3.0 if counts else 0.6), of.value)
    damaged = Leaves(value, of.expected, of.variance, of.codes, of.new, of.steady, counts)
    names = [name for name in ("site", "queue", "kind", "category", "task") if name in of.codes]
    (term, *_) = scan(damaged, partitions_of(names, everything=True))
    assert set(term.literals) == set(planted)
    assert (term.rows == rows).all()
    assert term.ratio == pytest.approx(3.0 if counts else 0.6, rel=0.1)


def test_all_jobs_are_a_part_and_nothing_is_none() -> None:
    of = leaves(4, counts=False)
    names = ("site", "queue", "kind", "task")
    assert scan(of, partitions_of(names, everything=True)) == []
    worse = Leaves(of.value * 0.7, of.expected, of.variance, of.codes, of.new, of.steady, counts=False)
    (term,) = scan(worse, partitions_of(names, everything=True))
    assert term.literals == ()
    assert term.share == pytest.approx(1.0)


def test_two_parts_are_two_terms() -> None:
    of = leaves(5, counts=True)
    value = np.where(of.codes["site"] == 1, of.value * 4, of.value)
    value = np.where(of.codes["category"] == 2, value * 2, value)
    worse = Leaves(value, of.expected, of.variance, of.codes, of.new, of.steady, counts=True)
    found = scan(worse, partitions_of(("site", "queue", "kind", "category", "task"), everything=True))
    assert {term.literals for term in found[:2]} == {(("site", 1),), (("category", 2),)}
