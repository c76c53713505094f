"""What would connect a component is said in jobs, tasks and names."""

import numpy as np

import fitters
from esjobs.records.tasks.keys import TaskKeys
from esjobs.speed.factors import solve
from esjobs.speed.fit_input import FitInput
from esjobs.speed.fit_rows import component_rows
from esjobs.speed.links import what_would_link


def columns(*rows: tuple[str, str, int]) -> FitInput:
    task, name, jobs = zip(*rows, strict=True)
    ones = np.ones(len(rows))
    keys, number = TaskKeys.of((each, "single", "simul", None) for each in task)
    nothing = fitters.factorise([None] * len(rows), "reason")
    return FitInput(
        "queue",
        "all",
        fitters.factorise(number, "task"),
        fitters.factorise(name, "name"),
        np.array(jobs, np.int64),
        ones,
        ones,
        ones,
        ones,
        ones,
        ones,
        ones,
        nothing,
        nothing,
        nothing,
        0 * ones,
        0 * ones,
        ones,
        ones,
        ones,
        0,
        keys,
        np.full(len(keys), np.nan),
    )


def test_a_bucket_with_too_few_jobs_is_the_cheapest_link() -> None:
    data = columns(
        ("t1", "A", 90), ("t1", "B", 90), ("t2", "C", 90), ("t2", "D", 90), ("t2", "A", 12), ("t1", "D", 3)
    )
    entered = data.n_jobs >= 20
    link = what_would_link(data, entered, np.array([0, 0, 1, 1, 0, 1]), 20)
    assert link(1, ["C", "D"]) == "8 more jobs of task t2 (single-core, simul) at A; a reliable link needs 50"


def test_without_such_a_bucket_the_widest_tasks_are_named() -> None:
    data = columns(("t1", "A", 90), ("t1", "B", 90), ("t9", "E", 90))
    link = what_would_link(data, data.n_jobs >= 20, np.array([0, 0, 1]), 20)
    assert link(1, ["E"]) == "two tasks with 50 jobs or more at E, for example t1 (single-core, simul)"


def test_nothing_fitted_nothing_to_link_with() -> None:
    data = columns(("t1", "A", 3), ("t9", "E", 3))
    link = what_would_link(data, data.n_jobs >= 20, np.array([0, 1]), 20)
    assert link(1, ["E"]) == "the fit contains nothing to link it with"


def test_more_jobs_of_a_bucket_that_was_left_out_with_enough_of_them_are_not_asked_for() -> None:
    data = columns(("t1", "A", 90), ("t1", "B", 90), ("t2", "C", 90), ("t2", "D", 90), ("t2", "A", 40))
    entered = np.array([True, True, True, True, False])
    link = what_would_link(data, entered, np.array([0, 0, 1, 1, 0]), 20)
    assert link(1, ["C", "D"]).startswith("two tasks with 50 jobs or more at C, D, for example ")


def test_a_method_that_needs_more_jobs_than_the_settings_says_so() -> None:
    data = columns(("t1", "A", 90), ("t1", "B", 90), ("t1", "C", 12))
    fit = solve(data, "paper", 1)
    assert fit.factors.reason[2] == "no task has 20 jobs here; the largest has 12"
    assert fit.min_bucket_jobs == 20
    assert [row["link"] for row in component_rows(fit)][1] == (
        "8 more jobs of task t1 (single-core, simul) at C; a reliable link needs 50"
    )
