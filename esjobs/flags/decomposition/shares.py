"""Hardware or site: by what the speeds of queues scatter, and the rest of each beside its CPU models."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import fitters
from esjobs.core.numbers import percent
from esjobs.core.words import ALL_TYPES, HALF_WIDTH_90
from esjobs.flags.decomposition.machines import Machines
from esjobs.publish.publication import finite
from esjobs.schema.decomposition import SHARE_PARTS

SURE = 2.0  # Errors from which a share is seen
_HEAD = {"level": "queue", "processing_type": ALL_TYPES}


def shares_of(machines: Machines) -> fitters.VarianceShares | None:
    """Return the shares of the variance of ln k between queues; None with too few comparable queues."""
    mix = np.zeros((len(machines.queues), len(machines.models)))
    for queue, parts in machines.mix.items():
        for model, weight in machines.gradient(parts).items():
            mix[machines.queues[queue], machines.models[model]] = weight
    buckets = machines.buckets
    return fitters.variance_shares(*buckets.codes, buckets.value, machines.effects.weight, mix)


def share_rows(shares: fitters.VarianceShares | None) -> Iterator[dict[str, Any]]:
    """Yield a row per part, and one of all."""
    if shares is None:
        return
    parts = (shares.classes, shares.units, shares.sorting, shares.total)
    for part, found in zip(SHARE_PARTS, parts, strict=True):
        yield {
            **_HEAD,
            "part": part,
            "share": finite(found.share),
            "share_err": finite(found.share_err) if part != "all" else None,
            "variance": found.value,
            "variance_err": finite(found.error),
            "uncorrected": found.plug_in,
            "n_queues": int(shares.inside.sum()),
            "n_clusters": shares.n_clusters,
            "sentence": _sentence(shares) if part == "all" else None,
        }


def _sentence(shares: fitters.VarianceShares) -> str:
    number = int(shares.inside.sum())
    if not shares.total.value > 0:
        return f"{number} queues do not differ in speed by more than their errors."
    spread = percent(math.expm1(math.sqrt(shares.total.value)))
    by = f"{_said(shares.classes)} of the variance by their CPU models, {_said(shares.units)} by the sites"
    return f"The speeds of {number} queues scatter by {spread}: {by} beside these, {_sorting(shares)}."


def _sorting(shares: fitters.VarianceShares) -> str:
    parts = (shares.classes, shares.units)
    # where one of the two is not seen, what goes with it is not either
    if any(part.value <= SURE * part.error for part in parts) or (
        abs(shares.sorting.value) <= SURE * shares.sorting.error
    ):
        return "none seen by sorting"
    correlation = shares.sorting.value / 2 / math.sqrt(parts[0].value * parts[1].value)
    where = "faster" if correlation > 0 else "slower"
    return (
        f"{_said(shares.sorting)} because fast CPU models stand at {where} sites (correlation "
        f"{min(max(correlation, -1.0), 1.0):.2f})"
    )


def _said(part: fitters.Variance) -> str:
    if part.value <= 0 and not part.value < -SURE * part.error:
        return "none seen"
    error = "" if math.isnan(part.share_err) else f" ± {percent(part.share_err)}"
    return f"{percent(part.share)}{error}"


def rest_rows(
    machines: Machines, shares: fitters.VarianceShares | None, shared: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """Yield a row per queue; ``shared``: relative errors common to all buckets of a queue."""
    if shares is None:
        return
    sums = machines.buckets.sums
    n_jobs = np.bincount(sums.queue, sums.sums["n_jobs"], len(sums.queues))
    for queue, number in machines.queues.items():
        own = machines.own(queue)
        if own is None:
            continue
        effect, error = own[0], math.hypot(own[1], shared.get(queue, 0.0))
        drawn, drawn_err = fitters.shrink(effect, error, shares.unit_scatter)
        width = HALF_WIDTH_90 * drawn_err
        yield {
            **_HEAD,
            "name": queue,
            "rest": math.expm1(effect),
            "rest_err": math.exp(effect) * error,
            "likely": math.expm1(drawn),
            "likely_low": math.expm1(drawn - width),
            "likely_high": math.expm1(drawn + width),
            "n_jobs": int(n_jobs[number]),
        }
