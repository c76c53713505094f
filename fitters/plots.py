"""Plots for notebooks: pulls, residuals, factors, correlations, the line.

Matplotlib is needed here and nowhere else in the package (``pip install "esjobs[plots]"``). Every function
draws into the axes it is given, or into a new figure, and returns the axes; nothing is shown or saved.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from fitters.errors import FitError
from fitters.line import LineResult
from fitters.residuals import bucket_table
from fitters.results import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

blue, orange, grey = "#3b6ea5", "#d1722c", "0.6"


class PlotError(FitError, ImportError):
    """Matplotlib is not installed; the message says how to get it."""


def _axes(axes: "Axes | None", size: tuple[float, float] = (7.0, 4.0)) -> "Axes":
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        msg = 'plots need Matplotlib, which is not installed: pip install "esjobs[plots]"'
        raise PlotError(msg) from None
    if axes is not None:
        return axes
    return plt.subplots(figsize=size, layout="constrained")[1]


def plot_pulls(result: FitResult, axes: "Axes | None" = None) -> "Axes":
    """Histogram of the buckets' pulls beside the standard normal law; rejected ones apart.

    Pulls beyond 6 are in the outermost bins. Raises `PlotError` without Matplotlib.
    """
    axes = _axes(axes)
    table = bucket_table(result)
    good = np.isfinite(table.pull)
    used, out = good & (table.status == "used"), good & (table.status == "rejected")
    edges = np.linspace(-6, 6, 49)
    clipped = np.clip(table.pull, -5.99, 5.99)
    axes.hist(clipped[used], edges.tolist(), color=blue, label=f"{used.sum()} buckets")
    if out.any():
        axes.hist(clipped[out], edges.tolist(), color=orange, label=f"{out.sum()} rejected")
    width = edges[1] - edges[0]
    normal = used.sum() * width * np.exp(-0.5 * edges**2) / np.sqrt(2 * np.pi)
    axes.plot(edges, normal, color="black", lw=1, label="standard normal")
    shown = f", width {table.pull[used].std():.2f}" if used.any() else ""
    axes.set(xlabel=f"pull of a bucket{shown}", ylabel="buckets")
    axes.legend(frameon=False)
    return axes


def plot_residuals(result: FitResult, by: str = "unit", axes: "Axes | None" = None, most: int = 40) -> "Axes":
    """Residuals x - 1 of the buckets in %, in a column per unit or per task.

    `by` is ``unit`` or ``task``; the `most` with the most buckets are shown, by falling number.
    """
    axes = _axes(axes, (9.0, 4.0))
    table = bucket_table(result)
    if by not in ("unit", "task"):
        msg = f"by is {by!r}; accepted are 'unit', 'task'"
        raise FitError(msg)
    labels = table.name if by == "unit" else table.task
    names, code, count = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-count, kind="stable")[:most]
    column = np.full(names.size, -1)
    column[order] = np.arange(order.size)
    place = column[code]
    for status, colour in (("used", blue), ("rejected", orange)):
        shown = (place >= 0) & (table.status == status) & np.isfinite(table.ratio)
        axes.plot(
            place[shown], 100 * (table.ratio[shown] - 1), ".", color=colour, ms=4, alpha=0.6, label=status
        )
    axes.axhline(0, color="black", lw=0.8)
    axes.set_xticks(np.arange(order.size), names[order].tolist(), rotation=90, fontsize=7)
    axes.set_ylabel("value k / A - 1, %")
    axes.legend(frameon=False)
    return axes


def plot_factors(result: FitResult, component: int = 0, axes: "Axes | None" = None) -> "Axes":
    """Factors of one component with their whole and their statistical errors, by falling factor."""
    units = result.units
    chosen = np.flatnonzero((units.component == component) & np.isfinite(units.k))
    chosen = chosen[np.argsort(-units.k[chosen])]
    axes = _axes(axes, (6.0, 1.0 + 0.2 * max(chosen.size, 3)))
    place = np.arange(chosen.size)
    for errors, width, label in ((units.k_err, 1.0, "whole error"), (units.k_err_stat, 3.0, "statistical")):
        known = np.isfinite(errors[chosen])
        if known.any():
            axes.errorbar(
                units.k[chosen][known], place[known], xerr=errors[chosen][known], fmt="none", color=blue,
                elinewidth=width, label=label,
            )  # fmt: skip
    axes.plot(units.k[chosen], place, "o", color=blue, ms=4)
    axes.axvline(1, color=grey, lw=0.8, ls=":")
    axes.set_yticks(place, [str(name) for name in units.name[chosen]], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(f"speed factor k (component {component}, mean 1)")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False)
    return axes


def plot_correlations(result: FitResult, component: int = 0, axes: "Axes | None" = None) -> "Axes":
    """Correlation matrix of ln k in one component, in the scale sum k = n."""
    names, covariance = result.covariance(component, "scale_free")
    axes = _axes(axes, (6.0, 5.0))
    sigma = np.sqrt(np.diagonal(covariance))
    image = axes.imshow(covariance / np.outer(sigma, sigma), vmin=-1, vmax=1, cmap="RdBu_r")
    if names.size <= 60:
        axes.set_xticks(np.arange(names.size), [str(name) for name in names], rotation=90, fontsize=7)
        axes.set_yticks(np.arange(names.size), [str(name) for name in names], fontsize=7)
    axes.figure.colorbar(image, ax=axes, label="correlation of ln k")
    return axes


def plot_line(
    line: LineResult, k: Any, k_err: Any, c: Any, *, limit: float = 0.20, axes: "Axes | None" = None
) -> "Axes":
    """Factors against declared values, the line and the band of +- `limit`; arguments as for `fit_line`."""
    k, k_err, c = (np.asarray(column, np.float64) for column in (k, k_err, c))
    axes = _axes(axes, (6.0, 5.0))
    points = line.points
    shown = np.isfinite(k) & np.isfinite(c)
    colours = {"deviates": orange, "ok": blue}
    for verdict in dict.fromkeys(points.verdict.tolist()):
        rows = shown & (points.verdict == verdict)
        if rows.any():
            axes.errorbar(
                c[rows], k[rows], yerr=np.nan_to_num(k_err[rows]), fmt="o", ms=4, elinewidth=1,
                color=colours.get(verdict, grey), label=verdict or "without verdict",
            )  # fmt: skip
    if np.isfinite(line.slope) and shown.any():
        ends = np.array([0.0, 1.05 * float(c[shown].max())])
        axes.plot(ends, line.slope * ends, color="black", lw=1, label=f"k = {line.slope:.4g} c")
        low, high = line.slope * (1 - limit) * ends, line.slope * (1 + limit) * ends
        axes.fill_between(ends, low, high, color="black", alpha=0.08, lw=0)
    axes.set(xlabel="declared value c", ylabel="speed factor k", xlim=(0, None), ylim=(0, None))
    axes.legend(frameon=False)
    return axes
