"""The line through the origin: truth recovered, verdicts safe, and what cannot be judged is said."""

import numpy as np
import pytest
from scipy import stats

from fitters import InputError, LineResult, SettingError, fit_line
from tests.fitters.toys import Floats
from tests.messages import raised

nan = float("nan")
SLOPE = 0.08


def toy_line(rng: np.random.Generator, n: int, wrong: float = 0.0) -> tuple[Floats, Floats, Floats, Floats]:
    """k, k_err, c, true deviation: 5 % scatter of sites, k errors of 0.1 to 10 %, some declared wrong."""
    c = rng.uniform(8, 20, n)
    relative = np.exp(rng.uniform(np.log(0.001), np.log(0.1), n))
    bad = rng.random(n) < wrong
    factor = np.where(bad, np.where(rng.random(n) < 0.7, 1 / 1.6, 1.6), 1.0)
    site = np.exp(0.05 * rng.normal(size=n)) * factor
    k = SLOPE * c * site
    return k * np.exp(relative * rng.normal(size=n)), k * relative, c, site - 1


@pytest.mark.parametrize(
    ("n", "wrong", "bias"), [(60, 0.0, 0.005), (60, 0.12, 0.01), (60, 0.25, 0.015), (12, 0.0, 0.01)]
)
def test_slope_is_right_with_wrong_declarations_and_its_error_covers(
    n: int, wrong: float, bias: float
) -> None:
    rng = np.random.default_rng(1)
    toys = [toy_line(rng, n, wrong)[:3] for _ in range(100)]
    lines = [fit_line(*toy) for toy in toys]
    off = np.log([line.slope for line in lines]) - np.log(SLOPE)
    error = np.array([line.slope_err / line.slope for line in lines])
    assert abs(off.mean()) < bias
    assert 0.6 < (off / error).std() < 1.3


def test_a_tiny_error_does_not_drag_the_line() -> None:
    rng = np.random.default_rng(2)
    k, k_err, c, _ = toy_line(rng, 40)
    before = fit_line(k, k_err, c)
    k[0], k_err[0] = 2 * SLOPE * c[0], 1e-9
    after = fit_line(k, k_err, c)
    assert abs(np.log(after.slope / before.slope)) < 0.02
    assert abs(np.log(after.wls.value / before.slope)) > 0.5  # what the plot shows as a warning
    assert after.points.verdict[0] == "deviates"


def test_each_point_is_compared_with_the_line_of_the_other_groups() -> None:
    own: list[float] = []
    whole: list[float] = []
    for seed in range(20):
        k, k_err, c, _ = toy_line(np.random.default_rng(seed), 8)
        group = np.arange(8) // 2
        line = fit_line(k, k_err, c, group=group)
        for name in range(4):
            others = group != name
            rest = fit_line(k[others], k_err[others], c[others], group=group[others]).slope
            own.extend(np.log(line.points.expected_k[~others] / c[~others] / rest))
            whole.extend(np.log([line.slope / rest] * 2))
    assert np.std(own) < 0.4 * np.std(whole)


def test_deviations_leave_the_own_group_out_and_pulls_are_as_wide_as_they_say() -> None:
    rng = np.random.default_rng(3)
    pulls = []
    for _ in range(100):
        k, k_err, c, true = toy_line(rng, 30)
        points = fit_line(k, k_err, c).points
        pulls.append((points.deviation - true) / points.deviation_err)
    values = np.concatenate(pulls)
    assert abs(values.mean()) < 0.15
    assert 0.75 < np.quantile(np.abs(values), 0.6827) < 1.05
    assert 0.92 < np.mean(np.abs(values) < 2) < 0.97  # those of one toy share its line


def test_honest_sites_are_not_called_deviating_and_wrong_ones_are_found() -> None:
    rng = np.random.default_rng(4)
    honest = found = wrong = flagged = 0
    for _ in range(100):
        k, k_err, c, true = toy_line(rng, 60, 0.12)
        points = fit_line(k, k_err, c).points
        bad = np.abs(true) > 0.25
        good = np.abs(true) < 0.2
        honest += int(good.sum())
        flagged += int((points.verdict[good] == "deviates").sum())
        precise = bad & (k_err / k < 0.03)
        wrong += int(precise.sum())
        found += int((points.verdict[precise] == "deviates").sum())
    assert flagged <= 0.01 * honest
    assert found >= 0.9 * wrong


def test_a_site_with_many_queues_is_one_entry_and_left_out_as_a_whole() -> None:
    rng = np.random.default_rng(5)
    k, k_err, c, _ = toy_line(rng, 12)
    # one site of six queues, all declared twice too high: alone they would pull the line to themselves
    k = np.append(k, np.full(6, 0.5 * SLOPE * 10))
    k_err, c = np.append(k_err, np.full(6, 0.01)), np.append(c, np.full(6, 10.0))
    site = [f"s{i}" for i in range(12)] + ["big"] * 6
    line = fit_line(k, k_err, c, group=site)
    assert (line.n_points, line.n_entries, line.n_groups) == (18, 13, 13)
    alone = fit_line(k[:12], k_err[:12], c[:12], group=site[:12])
    np.testing.assert_allclose(line.points.expected_k[12:], alone.slope * 10, rtol=1e-3)
    assert set(line.points.verdict[12:]) == {"deviates"}
    assert line.correlation_points.n == 18
    assert line.correlation_groups.n == 13
    # two declared values of one site are two entries of one group
    c[17] = 11.0
    two = fit_line(k, k_err, c, group=site)
    assert (two.n_entries, two.n_groups) == (14, 13)
    np.testing.assert_allclose(two.points.expected_k[12:17], alone.slope * 10, rtol=1e-3)


def test_a_default_is_listed_with_a_deviation_but_not_fitted() -> None:
    rng = np.random.default_rng(6)
    k, k_err, c, _ = toy_line(rng, 20)
    in_line = np.arange(20) != 3
    k[3] *= 3
    line = fit_line(k, k_err, c, in_line=in_line)
    without = fit_line(np.delete(k, 3), np.delete(k_err, 3), np.delete(c, 3))
    assert line.slope == pytest.approx(without.slope)
    assert not line.points.in_line[3]
    assert line.points.expected_k[3] == pytest.approx(without.slope * c[3])
    assert np.isnan(line.points.p_off[3])
    assert line.points.verdict[3] == ""
    assert line.n_points == 19


def test_what_is_missing_keeps_its_row_and_reason() -> None:
    rng = np.random.default_rng(7)
    k, k_err, c, _ = toy_line(rng, 15)
    k[0], k_err[1], c[2], c[3], k[4] = nan, nan, nan, 0.0, -1.0
    line = fit_line(k, k_err, c, name=[f"q{i}" for i in range(15)])
    assert line.points.status.tolist() == [
        "no k",
        "no k error",
        *["no declared value"] * 2,
        "no k",
        *["ok"] * 10,
    ]
    assert all(line.points.reason[:5])
    assert np.isnan(line.points.deviation[:5]).all()
    assert line.points.verdict[:5].tolist() == [""] * 5
    assert line.n_points == 10
    row = line.points.row("q2")  # nothing declared, but comparable with what others declare
    assert row["equivalent_c"] == pytest.approx(k[2] / line.slope, rel=1e-6)
    assert np.isnan(row["proposed_c"])


def test_the_verdicts_are_those_of_the_probability() -> None:
    rng = np.random.default_rng(8)
    k, k_err, c, _ = toy_line(rng, 60, 0.25)
    k_err[:10] = 0.15 * k[:10]
    line = fit_line(k, k_err, c)
    points = line.points
    inside = (points.p_off < 0.05) & (np.abs(points.deviation) + 1.6448536 * points.deviation_err < 0.2)
    expected = np.where(points.p_off > 0.95, "deviates", np.where(inside, "ok", "undecided"))
    assert points.verdict.tolist() == expected.tolist()
    assert set(expected) == {"deviates", "ok", "undecided"}
    assert line.doubt == ""
    np.testing.assert_array_equal(points.significant, expected == "deviates")
    proposed = expected == "deviates"
    np.testing.assert_allclose(points.proposed_c[proposed], (c * (1 + points.deviation))[proposed])
    relative = points.deviation_err / (1 + points.deviation)
    np.testing.assert_allclose(points.equivalent_c_err, points.equivalent_c * relative)
    np.testing.assert_allclose(points.equivalent_high, points.equivalent_c * np.exp(1.6448536 * relative))
    np.testing.assert_allclose(points.equivalent_low * points.equivalent_high, points.equivalent_c**2)
    assert np.isnan(points.proposed_c[~proposed]).all()


def test_few_groups_carry_no_verdict_and_fewer_no_line() -> None:
    c = np.arange(10.0, 16.0)
    line = fit_line(SLOPE * c, 1e-3 * c, c)
    assert line.status == "ok"
    assert set(line.points.verdict) == {"undecided"}
    assert "6 groups; a verdict requires 10" in line.points.reason[0]
    assert fit_line(SLOPE * c, 1e-3 * c, c, min_groups=3).points.verdict.tolist() == ["ok"] * 6
    two = fit_line(SLOPE * c[:2], 1e-3 * c[:2], c[:2])
    assert two.status == "too few"
    assert np.isnan(two.slope)
    assert two.points.status.tolist() == ["no line"] * 2
    assert np.isnan(two.points.expected_k).all()
    one_site = fit_line(SLOPE * c, 1e-3 * c, c, group=["s"] * 6)
    assert one_site.points.status.tolist() == ["no line"] * 6


def test_least_squares_slopes_are_the_closed_forms() -> None:
    rng = np.random.default_rng(9)
    k, k_err, c, _ = toy_line(rng, 20)
    line = fit_line(k, k_err, c)
    assert line.ols.value == pytest.approx(np.sum(c * k) / np.sum(c * c))
    residual = k - line.ols.value * c
    assert line.ols.error == pytest.approx(np.sqrt(np.sum(residual**2) / 19 / np.sum(c * c)))
    w = k_err**-2
    assert line.wls.value == pytest.approx(np.sum(w * c * k) / np.sum(w * c * c))
    assert line.wls.error == pytest.approx(1 / np.sqrt(np.sum(w * c * c)))
    r = line.correlation_points
    assert r.pearson == pytest.approx(np.corrcoef(k, c)[0, 1])
    assert r.spearman == pytest.approx(stats.spearmanr(k, c).statistic)


def test_constant_columns_have_no_correlation_and_no_warning() -> None:
    line = fit_line([1.0] * 12, [0.1] * 12, [10.0] * 12)
    assert line.slope == pytest.approx(0.1)
    assert np.isnan(line.correlation_points.pearson)
    assert line.correlation_points.n == 12


def test_errors_of_declared_values_count() -> None:
    rng = np.random.default_rng(10)
    k, k_err, c, _ = toy_line(rng, 30)
    exact, vague = fit_line(k, k_err, c), fit_line(k, k_err, c, 0.1 * c)
    assert (vague.points.deviation_err > exact.points.deviation_err).all()
    assert vague.slope_err > exact.slope_err


def test_order_and_scale_do_not_matter() -> None:
    rng = np.random.default_rng(11)
    k, k_err, c, _ = toy_line(rng, 30, 0.1)
    line = fit_line(k, k_err, c)
    order = rng.permutation(30)
    shuffled = fit_line(k[order], k_err[order], c[order])
    np.testing.assert_allclose(shuffled.points.deviation, line.points.deviation[order], rtol=1e-9)
    scaled = fit_line(1e6 * k, 1e6 * k_err, 1e-3 * c)
    assert scaled.slope == pytest.approx(1e9 * line.slope)
    np.testing.assert_allclose(scaled.points.deviation, line.points.deviation, rtol=1e-9)


@pytest.mark.parametrize(
    "bad", [[nan] * 4, [0.0] * 4, [-1.0] * 4, [float("inf")] * 4, [1e300, 1e-300, 1e308, 5e-324]]
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_broken_columns_give_rows_with_a_status(bad: list[float], place: int) -> None:
    columns = [[1.0, 2.0, 3.0, 4.0], [0.1] * 4, [10.0, 20.0, 30.0, 41.0]]
    columns[place] = bad
    line = fit_line(*columns)
    assert isinstance(line, LineResult)
    if not (place == 1 and bad[0] == 0):
        assert set(line.points.status) <= {"no k", "no k error", "no declared value", "no line"}
        assert np.isnan(line.points.deviation).all()
    else:
        assert line.status == "ok"  # exact factors are allowed


@pytest.mark.parametrize(
    "arguments",
    [
        ([], [], []),
        ([1.0], [0.1, 0.2], [1.0]),
        ([1.0, 2.0], [0.1, 0.2], [1.0]),
        (["a"], [0.1], [1.0]),
        (1.0, 0.1, 1.0),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(InputError):
        fit_line(*arguments)  # type: ignore[arg-type]


def test_lengths_of_labels_and_settings_are_checked() -> None:
    with raised(InputError):
        fit_line([1.0, 2.0], [0.1, 0.1], [1.0, 2.0], group=["s"])
    with raised(InputError):
        fit_line([1.0, 2.0], [0.1, 0.1], [1.0, 2.0], name=["s"])
    for limit in (0.0, nan, -1.0):
        with raised(SettingError):
            fit_line([1.0, 2.0], [0.1, 0.1], [1.0, 2.0], limit=limit)
