"""Islands, pairs, bridges, lonely units: what can be compared with what, and what is said otherwise."""

import numpy as np
import pytest

from fitters import Buckets, FitResult, SettingError, UnknownNameError, fit_speed_factors
from tests.fitters.toys import make
from tests.messages import raised


def fit(rows: list[tuple[str, str, float]], **options: object) -> FitResult:
    task, unit, value = zip(*rows, strict=True)
    return fit_speed_factors(Buckets.from_columns(task, unit, value), **options)  # type: ignore[arg-type]


MIXED = [
    ("t1", "A", 1.0),
    ("t1", "B", 2.0),
    ("t1", "C", 4.0),
    ("t2", "A", 3.0),
    ("t2", "B", 6.6),
    ("t2", "C", 12.0),
    ("t3", "P", 5.0),  # a pair that only meets itself
    ("t3", "Q", 1.0),
    ("t4", "L", 7.0),  # alone
    ("t4b", "L", 7.0),
    ("t5", "A", 9.0),  # a task of A alone
]


def test_each_component_is_scaled_apart_and_a_lonely_unit_has_no_factor() -> None:
    result = fit(MIXED)
    units = result.units
    assert units.component.tolist() == [0, 0, 0, 2, 1, 1]  # A B C L P Q
    for component, n in ((0, 3), (1, 2)):
        assert units.k[units.component == component].sum() == pytest.approx(n, rel=1e-12)
    assert units.row("P")["k"] == pytest.approx(2 / 6)
    lonely = units.row("L")
    assert lonely["status"] == "no common task"
    assert lonely["reason"] == "shares no task with another unit"
    assert (lonely["n_tasks"], lonely["n_buckets"]) == (0, 0)
    for column in ("k", "k_err", "k_err_model", "k_err_stat", "k_err_int", "k_err_sandwich"):
        assert np.isnan(lonely[column])


def test_the_books_of_the_fit() -> None:
    result = fit(MIXED)
    assert dict(result.dropped) == {"task with one unit": 3}
    assert (result.n_rows, result.n_used) == (11, 8)
    components = result.components
    assert components.name.tolist() == [0, 1, 2]
    assert components.n_units.tolist() == [3, 2, 1]
    assert components.n_tasks.tolist() == [3, 1, 2]
    assert components.n_tasks_used.tolist() == [2, 1, 0]
    assert components.n_buckets.tolist() == [7, 2, 2]
    assert components.n_buckets_used.tolist() == [6, 2, 0]
    assert components.dof.tolist() == [2, 0, 0]
    assert components.status.tolist() == ["ok", "no dof", "no common task"]
    assert result.dof == 2
    assert result.tasks.status.tolist() == ["ok", "ok", "ok", "one unit", "one unit", "one unit"]
    assert np.isnan(result.tasks.A[3:]).all()
    assert result.units.n_tasks.tolist() == [2, 2, 2, 0, 1, 1]


def test_a_pair_without_loops_has_no_error_from_the_scatter_of_others() -> None:
    """P and Q share one task: nothing in the data says how well their ratio is known."""
    result = fit(MIXED)
    assert np.isfinite(result.S)
    pair = result.units.row("P")
    assert pair["k"] + result.units.row("Q")["k"] == pytest.approx(2)
    assert (pair["status"], pair["component"]) == ("no dof", 1)
    assert np.isnan(pair["k_err"])
    assert result.units.row("A")["k_err"] > 0
    assert "no redundancy" in pair["reason"]


def test_no_error_without_degrees_of_freedom_and_without_rel_var() -> None:
    result = fit([("t", "A", 1.0), ("t", "B", 3.0)])
    assert result.units.status.tolist() == ["no dof", "no dof"]
    assert result.units.k.tolist() == pytest.approx([1.5, 0.5])
    assert np.isnan(result.units.k_err).all()
    assert (
        result.units.reason[0]
        == "its component has no redundancy and rel_var is missing, so no error can be estimated"
    )
    assert np.isnan(result.S)
    assert result.sigma_int.source == "unknown"
    assert result.tasks.status.tolist() == ["ok"]


def test_one_row_one_unit_one_task() -> None:
    for rows in ([("t", "A", 1.0)], [("t", "A", 1.0), ("u", "A", 2.0)]):
        result = fit(rows)
        assert result.units.status.tolist() == ["no common task"]
        assert result.n_used == 0
        assert np.isnan(result.units.k[0])


def test_a_bridge_of_one_task_joins_two_clusters() -> None:
    rng = np.random.default_rng(1)
    left = make(rng, 5, 30, 4.0)
    rows = [(f"L{t}", f"a{u}", v) for t, u, v in zip(left.task, left.unit, left.value, strict=True)]
    rows += [(f"R{t}", f"b{u}", v) for t, u, v in zip(left.task, left.unit, left.value, strict=True)]
    apart = fit(rows)
    assert apart.units.component.tolist() == [0] * 5 + [1] * 5
    bridged = fit([*rows, ("bridge", "a0", 10.0), ("bridge", "b0", 10.0)])
    assert set(bridged.units.component) == {0}
    assert bridged.units.k.sum() == pytest.approx(10)
    assert bridged.dof == apart.dof
    # the bridge alone fixes the ratio of the clusters, and carries no residual
    assert bridged.units.k[0] == pytest.approx(bridged.units.k[5], rel=1e-9)
    assert pytest.approx(apart.S, rel=1e-9) == bridged.S
    ratio = np.log(bridged.units.k[:5]) - np.log(apart.units.k[:5])
    assert np.ptp(ratio) < 1e-9
    # errors are those of ratios across the bridge: larger than inside a cluster
    assert (bridged.units.k_err / bridged.units.k > apart.units.k_err / apart.units.k).all()


def test_a_failing_fit_gives_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fitters.fit.alternation.MOST_PASSES", 1)
    monkeypatch.setattr("fitters.fit.solve.ITERATION_LIMIT", 2)
    result = fit(MIXED)
    assert result.units.row("A")["status"] == "fit failed"
    assert "did not converge" in result.units.row("A")["reason"]
    assert np.isnan(result.units.row("A")["k"])
    assert result.components.status[0] == "fit failed"
    assert result.tasks.status[0] == "fit failed"
    with raised(UnknownNameError):
        result.covariance(0)


def test_results_cannot_be_changed() -> None:
    result = fit(MIXED)
    with pytest.raises(ValueError, match="read-only"):
        result.units.k[0] = 1.0
    with pytest.raises(AttributeError):
        result.S = 1.0  # type: ignore[misc]
    with pytest.raises(UnknownNameError):
        result.units.row("Z")


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "papre"},
        {"weights": "floor"},
        {"robust": "none at all"},
        {"search": "by hand"},
        {"weights": "jobs"},
        {"sigma_int": -0.1},
        {"sigma_int": float("nan")},
    ],
)
def test_unknown_settings_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        fit(MIXED, **options)
