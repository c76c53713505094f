"""Plots are drawn without a screen, show what they should, and say what is missing."""

import sys
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest

from fitters import Buckets, FitError, FitResult, fit_line, fit_speed_factors, plots
from tests.fitters.toys import make

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def result() -> FitResult:
    toy = make(np.random.default_rng(71), 12, 60, 6.0)
    value = toy.value.copy()
    value[::40] *= 20
    buckets = Buckets.from_columns(toy.task, toy.unit, value, rel_var=np.full(value.size, 0.01))
    return fit_speed_factors(buckets, "gamma", robust="tukey")


def labels(axes: Axes) -> list[str]:
    return [str(label) for label in axes.get_legend_handles_labels()[1]]


def test_pulls_count_every_bucket(result: FitResult) -> None:
    axes = plots.plot_pulls(result)
    rejected = result.weighting.n_rejected
    assert f"{rejected} rejected" in labels(axes)
    heights = sum(bar.get_height() for bar in axes.patches)  # type: ignore[attr-defined]
    assert heights == pytest.approx(result.source.n_buckets, abs=rejected)
    assert "width" in axes.get_xlabel()


@pytest.mark.parametrize(("by", "columns"), [("unit", 12), ("task", 40)])
def test_residuals_have_a_column_each(result: FitResult, by: str, columns: int) -> None:
    axes = plots.plot_residuals(result, by)
    assert len(axes.get_xticks()) == columns
    assert labels(axes) == ["used", "rejected"]
    with pytest.raises(FitError, match="by is 'day'"):
        plots.plot_residuals(result, "day")


def test_factors_are_drawn_with_errors_in_given_axes(result: FitResult) -> None:
    _, given = plt.subplots()
    axes = plots.plot_factors(result, axes=given)
    assert axes is given
    assert axes.get_yticklabels()[0].get_text() == str(result.units.name[np.argmax(result.units.k)])
    assert labels(axes) == ["whole error", "statistical"]
    bare = fit_speed_factors(Buckets.from_columns([1, 1], ["A", "B"], [1.0, 2.0]))
    assert labels(plots.plot_factors(bare)) == []


def test_correlations_are_between_minus_one_and_one(result: FitResult) -> None:
    image = plots.plot_correlations(result).get_images()[0].get_array()
    assert image is not None
    assert np.abs(image).max() == pytest.approx(1)
    assert np.shape(image) == (12, 12)


def test_the_line_is_drawn_with_its_verdicts() -> None:
    rng = np.random.default_rng(72)
    c = rng.uniform(8, 20, 30)
    k = 0.1 * c * np.exp(rng.normal(0, 0.03, 30))
    k[0] *= 2
    line = fit_line(k, 0.02 * k, c)
    axes = plots.plot_line(line, k, 0.02 * k, c)
    assert {"deviates", "ok"} <= set(labels(axes))
    few = fit_line([1.0], [0.1], [10.0])
    assert labels(plots.plot_line(few, [1.0], [0.1], [10.0])) == ["without verdict"]


def test_without_matplotlib_there_is_a_hint(result: FitResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plots.PlotError, match=r"esjobs\[plots\]"):
        plots.plot_pulls(result)
