"""Reference scores of CPU models: a range per core for each state of SMT, no mean."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from esjobs.publish.publication import read_table
from esjobs.schema.references import REFERENCES, SAME_SCORE
from esjobs.store.base import JobStore

Range = tuple[float, float]


@dataclass(frozen=True)
class ReferenceScore:
    """Scores per core of one CPU model in one benchmark, over all imported tables.

    ``by_smt``: lowest and highest with SMT on (True), off (False), unknown (None).
    """

    cpu_model: str
    benchmark: str
    by_smt: Mapping[bool | None, Range] = field(default_factory=dict)

    @property
    def range(self) -> Range:
        """Lowest and highest of all."""
        return min(low for low, _ in self.by_smt.values()), max(high for _, high in self.by_smt.values())

    @property
    def ambiguous(self) -> bool:
        """True if the range is wider than one machine measured twice."""
        low, high = self.range
        return high > low * (1 + SAME_SCORE)

    @property
    def smt_gain(self) -> Range | None:
        """Score per core with SMT on over that with it off: the range that the tables allow, if they tell.

        >>> ReferenceScore("X", "hs06", {True: (10.0, 11.0), False: (16.0, 17.0)}).smt_gain
        (0.5882352941176471, 0.6875)
        """
        on, off = self.by_smt.get(True), self.by_smt.get(False)
        if on is None or off is None:
            return None
        # the lowest over the highest, and the other way round: a quotient of ranges
        return on[0] / off[1], on[1] / off[0]


def reference_scores(store: JobStore, benchmarks: Iterable[str]) -> dict[tuple[str, str], ReferenceScore]:
    """All scores of the benchmarks, by benchmark and CPU model. One read; imports stand side by side."""
    wanted = set(benchmarks)
    columns = ["benchmark", "cpu_model", "smt", "value_per_core"]
    ranges: dict[tuple[str, str], dict[bool | None, Range]] = defaultdict(dict)
    for row in read_table(store, REFERENCES, columns=columns).to_pylist():
        if row["benchmark"] in wanted:
            # a range, no mean: tables differ in systems, compilers and years
            by_smt = ranges[row["benchmark"], row["cpu_model"]]
            value = row["value_per_core"]
            low, high = by_smt.get(row["smt"], (value, value))
            by_smt[row["smt"]] = (min(low, value), max(high, value))
    return {key: ReferenceScore(key[1], key[0], by_smt) for key, by_smt in sorted(ranges.items())}
