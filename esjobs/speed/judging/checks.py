"""Checks that a deviation went through, each with its number, and what would refute it.

The one list of them: mails, pages and commands show the texts that are made here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from esjobs.core.numbers import signed_percent
from esjobs.core.words import VARIED
from esjobs.speed.judging.stability import Change, deviation_under
from esjobs.speed.judging.verdicts import Evidence

SEPARATOR = "; "
_SHOWN = dict(
    zip(
        VARIED,
        (
            "other objective",
            "start-up times two errors off",
            "each processing type alone",
            "each core class alone",
            "each task left out",
            "start-up time as elsewhere (f = 1)",
            "each half of its tasks",
            "each half of the time",
            "the halves, which differ beyond errors",
            "strays put back",
        ),
        strict=True,
    )
)


@dataclass(frozen=True)
class Check:
    """A check of a deviation: its name, and either what was counted or the deviations under it."""

    what: str
    counted: str = ""
    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        """Name and number."""
        if self.low is None or self.high is None:
            return f"{self.what}: {self.counted}"
        low, high = signed_percent(self.low), signed_percent(self.high)
        return f"{self.what}: {low}" if low == high else f"{self.what}: {low} to {high}"


def checks_of(evidence: Evidence, changes: Iterable[Change]) -> Iterator[Check]:
    """Yield the checks of a name with a deviation: its records, then the deviations under every change."""
    units = evidence.n_units + evidence.n_cut
    cut = f"in {evidence.n_cut} of {units} task units, which are left out" if evidence.n_cut else "none"
    yield Check("jobs cut off by a time limit", cut)
    if evidence.core_use is not None:
        yield Check("core counts", f"CPU time is {evidence.core_use:.2f} of wall time x cores")
    buckets = evidence.n_buckets + evidence.n_rejected
    apart = f"{evidence.n_rejected} of {buckets} buckets do not fit the others"
    yield Check("two speeds", apart if evidence.n_rejected else f"all {buckets} buckets fit together")
    if evidence.deviation_raw is not None:
        yield Check("no start-up time removed", low=evidence.deviation_raw, high=evidence.deviation_raw)
    for item in changes:
        low, high = (deviation_under(evidence, k) for k in (item.k_low, item.k_high))
        if low is not None and high is not None:
            yield Check(_SHOWN[item.change], low=low, high=high)


def refuted_by(evidence: Evidence) -> str:
    """Return what would refute a deviation; empty without an estimate."""
    estimate, deviation = evidence.estimate, evidence.deviation
    if estimate is None or deviation is None:
        return ""
    bound, word = (estimate.high, "above") if deviation < 0 else (estimate.low, "below")
    return (
        f"a benchmark {word} {bound:.1f} {estimate.benchmark} per core on fully loaded hosts, one copy per "
        "job slot; or wrong events, CPU times or core counts in the records of these jobs"
    )
