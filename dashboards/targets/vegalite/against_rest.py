"""Intervals of rates per name, and who differs from the rest, in the language of a chart.

The same rules as :mod:`esjobs.core.rates`: Wilson's interval of a share, that of the standard error of a
ratio or of a weighted mean, and each name against all others, without those that lie apart themselves.
Errors take jobs for independent.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dashboards.targets.vegalite.sources import Step
from esjobs.core.rates import FEW_JOBS, INTERVAL_SIGMAS, LEAST_ALIKE, NOISE_SIGMAS

DIFFERS, LIKE_REST, ALONE = "differs", "like the rest", "nothing to compare with"

# True where enough jobs are left when the names that lie apart are left out of the rest
_ENOUGH = f"datum.alike_n_jobs - datum.like_n_jobs >= {LEAST_ALIKE!r} * (datum.all_n_jobs - datum.n_jobs)"
_REST = "datum.enough ? datum.alike_{0} - datum.like_{0} : datum.all_{0} - datum.{0}"

# True where a name has something that it can be held against
_COMPARABLE = f"isValid(datum.rest) && datum.n_jobs >= {FEW_JOBS}"

# The sums of a mean over jobs; a ratio has others in place of those over the number of jobs
_RATIO = {
    "over": "datum.over",
    "under": "datum.n_jobs",
    "squares": "datum.squares",
    "products": "datum.over",
    "under_squares": "datum.n_jobs",
    "n_jobs": "datum.n_jobs",
}


@dataclass(frozen=True)
class Rate:
    """The sums of a rate, each an expression of a row, and the kind of its error.

    ``share``: jobs over jobs. ``ratio``: a sum over another one, of the same jobs. ``weighted``: a mean, its
    ``squares`` weighted as well, ``under_squares`` the sum of squared weights; weights and values are taken
    for independent.
    """

    kind: Literal["share", "ratio", "weighted"]
    sums: Mapping[str, str]

    @property
    def columns(self) -> dict[str, str]:
        """All sums, each an expression of a row; those beyond the rate are added up beside it."""
        return {**_RATIO, **self.sums}


def against_rest(rate: Rate, name: str) -> list[Step]:
    """From rows with the sums of a rate to a row per name: value, ends of its interval, who differs.

    Names of fewer than five jobs are left out, for a rate of few jobs leads by chance; all are there, and
    none differs, where no name has so many.
    """
    ends = _of_shares() if rate.kind == "share" else _of_means(rate)
    sums = tuple(rate.columns)
    return [
        *({"calculate": how, "as": each} for each, how in rate.columns.items()),
        {"aggregate": [{"op": "sum", "field": each, "as": each} for each in sums], "groupby": [name]},
        {"joinaggregate": [{"op": "sum", "field": each, "as": f"all_{each}"} for each in sums]},
        # before names of few jobs are left out: the rule is at the mean of everybody
        {"calculate": "datum.all_over / datum.all_under", "as": "mean"},
        {"filter": f"isValid(datum[{json.dumps(name)}]) && datum.under > 0"},
        {"joinaggregate": [{"op": "max", "field": "n_jobs", "as": "most_jobs"}]},
        {"filter": f"datum.n_jobs >= min({FEW_JOBS}, datum.most_jobs)"},
        {"calculate": "datum.over / datum.under", "as": "value"},
        *_median(),
        # first against the median, to find who lies apart; then against the others of the rest
        {"calculate": "datum.middle", "as": "rest"},
        *ends,
        *({"calculate": f"datum.apart ? 0 : datum.{each}", "as": f"like_{each}"} for each in sums),
        {"joinaggregate": [{"op": "sum", "field": f"like_{each}", "as": f"alike_{each}"} for each in sums]},
        {"calculate": _ENOUGH, "as": "enough"},
        *({"calculate": _REST.format(each), "as": f"rest_{each}"} for each in sums),
        {"calculate": "datum.rest_n_jobs > 1 ? datum.rest_over / datum.rest_under : null", "as": "rest"},
        *ends,
        {"calculate": f"datum.differing ? '{DIFFERS}' : '{LIKE_REST}'", "as": "status_shown"},
        {"calculate": "datum.differing ? 1 : 0", "as": "one"},
        {"joinaggregate": [{"op": "sum", "field": "one", "as": "n"}, {"op": "count", "as": "names"}]},
        {"calculate": f"datum.names < 2 ? '{ALONE}' : datum.status_shown", "as": "status_shown"},
    ]


# An expression: how many names differ
SENTENCE = (
    "datum.names < 2 ? 'The rest is not in this selection, so nothing is compared.' : "
    f"datum.most_jobs < {FEW_JOBS} ? 'No name has {FEW_JOBS} jobs; their order has no meaning.' : (datum.n ? "
    "format(datum.n, ',d') : 'None') + ' of ' + format(datum.names, ',d') + ' differ' + (datum.n > 1 ? '' : "
    f"'s') + ' from the rest by more than {NOISE_SIGMAS:.0f} standard errors' + (datum.n ? '.' : '; their "
    "order has no meaning.')"
)


def _median() -> list[Step]:
    """The value at which half of the jobs are of names with a lower one."""
    return [
        {
            "window": [{"op": "sum", "field": "n_jobs", "as": "up_to"}],
            "sort": [{"field": "value"}],
        },
        {"joinaggregate": [{"op": "sum", "field": "n_jobs", "as": "ranked"}]},
        {"calculate": "datum.up_to >= datum.ranked / 2 ? datum.value : null", "as": "upper"},
        {"joinaggregate": [{"op": "min", "field": "upper", "as": "middle"}]},
    ]


def _of_shares() -> list[Step]:
    """Wilson's interval of 95 %, and whether Newcombe's of the difference to the rest holds 0."""
    steps: list[Step] = []
    for name, share, number, sigmas in (
        ("", "value", "n_jobs", INTERVAL_SIGMAS),
        ("own_", "value", "n_jobs", NOISE_SIGMAS),
        ("rest_", "rest", "rest_n_jobs", NOISE_SIGMAS),
    ):
        p, n, z2 = f"datum.{share}", f"datum.{number}", sigmas**2
        # Wilson's centre and half-width, for each number of standard errors
        middle = f"({p} + {z2 / 2!r} / {n}) / (1 + {z2!r} / {n})"
        reach = f"{sigmas!r} * sqrt({p} * (1 - {p}) / {n} + {z2 / 4!r} / ({n} * {n})) / (1 + {z2!r} / {n})"
        steps += [
            {"calculate": f"{middle} - {reach}", "as": f"{name}low"},
            {"calculate": f"{middle} + {reach}", "as": f"{name}high"},
        ]
    # Newcombe: the distances to the ends that face each other, added in squares
    below = "sqrt(pow(datum.value - datum.own_low, 2) + pow(datum.rest_high - datum.rest, 2))"
    above = "sqrt(pow(datum.own_high - datum.value, 2) + pow(datum.rest - datum.rest_low, 2))"
    differing = f"{_COMPARABLE} && (datum.value - datum.rest > {below} || datum.rest - datum.value > {above})"
    apart = "datum.rest < datum.own_low || datum.rest > datum.own_high"
    return [*steps, {"calculate": differing, "as": "differing"}, {"calculate": apart, "as": "apart"}]


def _of_means(rate: Rate) -> list[Step]:
    """The interval of 95 %, and whether the value differs from that of the rest."""
    steps: list[Step] = []
    for part, value in (("", "value"), ("rest_", "rest")):
        _, under, squares, products, under_squares, n = (f"datum.{part}{name}" for name in _RATIO)
        v = f"datum.{value}"
        if rate.kind == "weighted":
            # variance of a weighted mean with its effective number of values
            spread = f"({squares} / {under} - {v} * {v}) * {under_squares}"
        else:
            # squared residuals of over - value x under (delta method of a ratio)
            spread = f"{squares} - 2 * {v} * {products} + {v} * {v} * {under_squares}"
        # rounding may leave a spread of 0 just below it
        error = f"{n} > 1 ? sqrt(max({spread}, 0) * {n} / ({n} - 1)) / {under} : 0"
        steps.append({"calculate": error, "as": f"{part}error"})
    away = "abs(datum.value - datum.rest)"
    noise = "sqrt(pow(datum.error, 2) + pow(datum.rest_error, 2))"
    return [
        *steps,
        {"calculate": f"max(datum.value - {INTERVAL_SIGMAS!r} * datum.error, 0)", "as": "low"},
        {"calculate": f"datum.value + {INTERVAL_SIGMAS!r} * datum.error", "as": "high"},
        {"calculate": f"{_COMPARABLE} && {away} > {NOISE_SIGMAS!r} * {noise}", "as": "differing"},
        {"calculate": f"{away} > {NOISE_SIGMAS!r} * datum.error", "as": "apart"},
    ]
