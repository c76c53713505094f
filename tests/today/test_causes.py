"""Scan for the cause of a loss on planted parts."""

from dataclasses import replace

import numpy as np
import pytest

from esjobs.today.causes import Leaves, main_code, partitions_of, scan

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
    nothing = np.zeros(len(queue))
    jobs = (np.full(len(queue), 1000.0), np.full(len(queue), 1 / CATEGORIES)) if counts else (None, None)
    return Leaves(value.astype(float), expected, variance, codes, nothing, nothing, *jobs)


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
    damaged = replace(of, value=value)
    names = [name for name in ("site", "queue", "kind", "category", "task") if name in of.codes]
    (term, *_) = scan(damaged, partitions_of(names, everything=True))
    assert set(term.literals) == set(planted)
    assert (term.rows == rows).all()
    assert term.ratio == pytest.approx(3.0 if counts else 0.6, rel=0.1)


def test_all_jobs_are_a_part_and_nothing_is_none() -> None:
    of = leaves(4, counts=False)
    names = ("site", "queue", "kind", "task")
    assert scan(of, partitions_of(names, everything=True)) == []
    worse = replace(of, value=of.value * 0.7)
    (term,) = scan(worse, partitions_of(names, everything=True))
    assert term.literals == ()
    assert term.share == pytest.approx(1.0)


def test_two_parts_are_two_terms() -> None:
    of = leaves(5, counts=True)
    value = np.where(of.codes["site"] == 1, of.value * 4, of.value)
    value = np.where(of.codes["category"] == 2, value * 2, value)
    worse = replace(of, value=value)
    found = scan(worse, partitions_of(("site", "queue", "kind", "category", "task"), everything=True))
    assert {term.literals for term in found[:2]} == {(("site", 1),), (("category", 2),)}


@pytest.mark.parametrize("planted", [(("site", 3),), (("category", 2),), (("queue", 4), ("category", 1))])
def test_a_share_of_all_jobs_is_one_part_however_often_they_failed_before(
    planted: tuple[tuple[str, int], ...],
) -> None:
    of = leaves(6, counts=True)
    rng = np.random.default_rng(7)
    # kinds of work that fail 40 times as often as others
    expected = of.expected * np.where(of.codes["kind"] == 0, 4.0, 0.1)
    rows = np.logical_and.reduce([of.codes[name] == code for name, code in planted])
    more = rows * 0.1 * of.exposed(dict(planted))
    worse = replace(
        of, value=rng.poisson(expected + more).astype(float), expected=expected, variance=expected
    )
    (term, *others) = scan(
        worse, partitions_of(("site", "queue", "kind", "category", "task"), everything=True)
    )
    assert (set(term.literals), others) == (set(planted), [])
    assert term.added == pytest.approx(0.1, rel=0.1)
    assert term.expect(worse, expected)[rows] == pytest.approx((expected + more)[rows], rel=0.15)
    assert (term.expect(worse, expected)[~rows] == expected[~rows]).all()


def test_the_error_of_most_failures_is_found() -> None:
    of = leaves(8, counts=True)
    value = np.where(of.codes["category"] == 1, of.expected + 90.0, of.expected + 5.0)
    found = main_code(replace(of, value=value), "category", 0.8)
    assert found is not None
    assert found[0] == 1
    assert found[1] == pytest.approx(90 / 105)
    assert main_code(replace(of, value=value), "category", 0.9) is None
