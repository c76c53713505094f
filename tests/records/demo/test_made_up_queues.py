"""What is planted in the made-up grid: roles, declarations, names, the score."""

import pickle
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.core.errors import UsageError
from esjobs.records.demo import LAST_DAY, Grid, QueueTruth, Truth
from esjobs.records.names.cpu_models import resolve_names
from esjobs.records.names.sites import guess_site
from tests.messages import raised


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Grid(seed=1).truth()


def honest(queue: QueueTruth) -> bool:
    return queue.declared is not None and not queue.misdeclared and queue.origin != "default"


def test_the_parts_are_dealt_as_promised(truth: Truth) -> None:
    queues = truth.queues
    assert len(queues) == 60
    assert len({queue.name for queue in queues}) == 60
    assert Counter(queue.origin for queue in queues) == {"own": 50, "default": 4, "inherited": 4, "none": 2}
    assert Counter(queue.factor for queue in queues) == {1.0: 54, 1.6: 3, 0.7: 3}
    assert len(truth.island) == 3
    assert sum(queue.short_jobs for queue in queues) == 3
    assert len(truth.misdeclared) == 6
    assert not set(truth.misdeclared) & set(truth.island)


def test_no_queue_plays_two_parts(truth: Truth) -> None:
    for queue in truth.queues:
        parts = [queue.misdeclared, queue.island, queue.short_jobs, queue.origin != "own"]
        assert sum(parts) <= 1, queue


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), n_queues=st.integers(20, 150), n_models=st.integers(5, 44))
def test_declarations_of_any_grid_mean_what_they_are_planted_as(
    seed: int, n_queues: int, n_models: int
) -> None:
    truth = Grid(seed=seed, n_queues=n_queues, n_models=n_models).truth()
    assert len(truth.queues) == n_queues
    assert len({queue.name for queue in truth.queues}) == n_queues
    assert len(truth.cpu_models) == n_models
    assert truth.misdeclared
    assert sum(queue.share for queue in truth.queues) == pytest.approx(1.0)
    speeds = {cpu.name: cpu.speed for cpu in truth.cpu_models}
    for queue in truth.queues:
        assert 1 <= len(queue.mixture) <= 5
        assert sum(part for _, part in queue.mixture) == pytest.approx(1.0)
        slowness = sum(part / speeds[name] for name, part in queue.mixture)
        assert queue.speed == pytest.approx(1.0 / slowness)
        if queue.declared is None:
            assert queue.origin == "none"
        elif queue.origin == "default":
            assert queue.declared == 10.0
        else:
            assert abs(queue.declared - 10.0) > 0.05  # never read as a default by accident
            assert abs(queue.declared - 12.0) > 0.05
            assert queue.declared == pytest.approx(queue.speed * queue.factor, rel=0.25)
            same = queue.declared == queue.parent_corepower
            assert same == (queue.origin == "inherited")


def test_honest_declarations_scatter_by_a_few_percent(truth: Truth) -> None:
    ratios = [(q.declared or 0.0) / q.speed for q in truth.queues if honest(q) and q.origin == "own"]
    assert max(abs(ratio - 1.0) for ratio in ratios) < 0.13
    assert 0.02 < (sum((ratio - 1.0) ** 2 for ratio in ratios) / len(ratios)) ** 0.5 < 0.07


def test_siblings_share_a_site_and_its_hosts(truth: Truth) -> None:
    families: dict[str, list[QueueTruth]] = {}
    for queue in truth.queues:
        families.setdefault(queue.site, []).append(queue)
        assert guess_site(queue.name) == queue.site
    large = [family for family in families.values() if len(family) > 1]
    assert sorted(len(family) for family in large) == [2, 2, 2, 2, 2, 3, 3, 4]
    for family in large:
        assert len({tuple(name for name, _ in queue.mixture) for queue in family}) == 1
        assert max(q.speed for q in family) / min(q.speed for q in family) < 1.15


def test_every_cpu_string_resolves_to_its_model() -> None:
    truth = Grid(n_models=44).truth()
    names = []
    for cpu in truth.cpu_models:
        resolved = set(resolve_names([cpu.name, *cpu.raw]))
        assert len(resolved) == 1, cpu
        names.append(resolved.pop())
    assert None not in names
    assert len(set(names)) == 44


def test_every_model_runs_somewhere(truth: Truth) -> None:
    used = {name for queue in truth.queues for name, _ in queue.mixture}
    assert used == {cpu.name for cpu in truth.cpu_models}


def test_the_table_to_import_has_queues_and_models(truth: Truth) -> None:
    rows = Grid(seed=1).declarations()
    queues = {row.name: row for row in rows if row.level == "queue"}
    models = {row.name: row for row in rows if row.level == "cpu_model"}
    assert set(queues) == {queue.name for queue in truth.queues}
    assert {row.benchmark for row in rows} == {"HS06"}
    assert all(row.valid_from.date() < LAST_DAY and row.valid_from.tzinfo for row in rows)
    for queue in truth.queues:
        row = queues[queue.name]
        assert (row.corepower, row.site, row.parent_corepower) == (
            queue.declared,
            queue.site,
            queue.parent_corepower,
        )
    assert 20 <= len(models) < 40
    for cpu in truth.cpu_models:
        assert (cpu.name in models) == (cpu.reference is not None)
        if cpu.reference is not None:
            assert cpu.reference == pytest.approx(cpu.speed, rel=0.1)


def test_the_score_counts_found_missed_and_others(truth: Truth) -> None:
    grid = Grid(seed=1)
    planted = truth.misdeclared
    good = next(queue.name for queue in truth.queues if honest(queue))
    said = dict.fromkeys(planted[2:], "confirmed") | {planted[1]: "candidate", planted[0]: "undecided"}
    score = grid.score(said | {good: "confirmed"})
    assert score.missed == (planted[0],)
    assert score.candidates == (planted[1],)
    assert score.found == planted[2:]
    assert score.others == (good,)
    assert score.planted == 6
    assert score.sentence == (
        f"4 of 6 injected misdeclared queues confirmed (candidates: {planted[1]}; missed: {planted[0]}), "
        f"1 others confirmed (confirmed: {good})"
    )
    assert grid.score(dict.fromkeys(planted, "confirmed") | {good: "candidate"}).sentence == (
        f"6 of 6 injected misdeclared queues confirmed, 0 others confirmed (candidates: {good})"
    )
    assert grid.score({}).missed == planted


def test_a_grid_is_a_value() -> None:
    grid = Grid(seed=3)
    assert grid == Grid(seed=3) != Grid(seed=4)
    assert hash(grid) == hash(Grid(seed=3))
    assert pickle.loads(pickle.dumps(grid)).truth() == grid.truth()  # noqa: S301  our own bytes
    assert grid.truth() != Grid(seed=4).truth()
    with pytest.raises(AttributeError):
        grid.seed = 4  # type: ignore[misc]
    with pytest.raises(KeyError):
        grid.truth().queue("nowhere")


@pytest.mark.parametrize(
    "arguments",
    [
        {"seed": -1},
        {"jobs_per_day": 0},
        {"tasks_per_day": 3},
        {"n_queues": 19},
        {"n_models": 4},
        {"n_models": 45},
    ],
)
def test_a_grid_that_cannot_be_is_refused(arguments: dict[str, Any]) -> None:
    with raised(UsageError):
        Grid(**arguments)


def test_sizes_that_cannot_be_are_refused() -> None:
    with raised(UsageError):
        Grid.of_size(0)
