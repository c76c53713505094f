"""Results of the noise test: cost of collectors."""

from esjobs.core.tables import Table, column, columns

NOISE_COSTS = Table(
    "noise_costs",
    "measured overhead of a collector of monitoring data for programs whose processes wait for each other",
    "measurement",
    (
        column("measurement", "keyword", "derived from collector and configuration; a new one replaces it"),
        column("collector", "keyword", "name of the collector"),
        column("collective", "keyword", "timed operation; null if missing in the files"),
        column("bytes", "integer", "size of its messages; null if missing in the files", "B"),
        column("ranks", "integer", "processes; null if missing in the files"),
        column("cost_frac", "number", "ratio of geometric mean times, on over off, minus 1", "1"),
        column("low_frac", "number", "lower end of its 99 % interval", "1"),
        column("high_frac", "number", "upper end of its 99 % interval", "1"),
        column("verdict", "keyword", "seen: the interval excludes 0", values=("seen", "not seen")),
        column("n_off", "integer", "accepted runs with the collector off"),
        column("n_on", "integer", "accepted runs with the collector on"),
        # a rank that waited for its core measures the scheduler, and not the collector
        column("n_runs_skipped", "integer", "excluded runs: a rank waited for a core"),
        column("sentence", "text", "result in words"),
        column("entered_at", "time", "time of storing", "UTC"),
    ),
    entered=True,
    made_by="noise compare",
    shown=columns("collector collective bytes ranks verdict cost_frac low_frac high_frac n_off n_on"),
    order=columns("collector collective bytes ranks"),
)

TABLES = (NOISE_COSTS,)
