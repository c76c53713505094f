"""Results of the noise test: cost of collectors."""

from esjobs.core.tables import Table, column, columns

NOISE_COSTS = Table(
    "noise_costs",
    "what a collector of monitoring data costs programs whose processes wait for each other, as measured",
    "measurement",
    (
        column(
            "measurement", "keyword", "follows from collector and configuration; made again it is replaced"
        ),
        column("collector", "keyword", "what was switched off and on, as it was named"),
        column("collective", "keyword", "the operation that was timed; null where the files do not say"),
        column("bytes", "integer", "length of its messages; null where the files do not say", "B"),
        column("ranks", "integer", "processes; null where the files do not say"),
        column("cost_frac", "number", "ratio of geometric mean times, on over off, less 1", "1"),
        column("low_frac", "number", "lower end of its 99 % interval", "1"),
        column("high_frac", "number", "upper end of its 99 % interval", "1"),
        column("verdict", "keyword", "seen: the interval leaves 0 out", values=("seen", "not seen")),
        column("n_off", "integer", "runs with the collector off that count"),
        column("n_on", "integer", "runs with it on that count"),
        column("n_runs_skipped", "integer", "runs left out, for a rank waited for a core"),
        column("sentence", "text", "the same in words"),
        column("entered_at", "time", "when it was kept", "UTC"),
    ),
    entered=True,
    made_by="noise compare",
    shown=columns("collector collective bytes ranks verdict cost_frac low_frac high_frac n_off n_on"),
    order=columns("collector collective bytes ranks"),
)
"""A row a collector and configuration."""

TABLES = (NOISE_COSTS,)
