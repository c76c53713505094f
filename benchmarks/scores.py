"""Measurements of what is told of jobs: scores and detectors.

    python -m benchmarks.scores --part detectors|rates|counters [options of the part]

``detectors``: speed beside a loop over jobs and beside pandas. ``rates``: how often periodic phases are
found in made-up series. ``counters``: scores from stored counters. Each part is a module of its own.
"""

import importlib
import sys

PARTS = {"detectors": "scores_detectors", "rates": "scores_rates", "counters": "scores_counters"}


def main() -> None:
    """Hand the other options to the part."""
    words = sys.argv[1:]
    if len(words) < 2 or words[0] != "--part" or words[1] not in PARTS:
        sys.exit(f"benchmarks.scores: say --part and one of {', '.join(PARTS)}")
    part = PARTS[words[1]]
    sys.argv = [part, *words[2:]]
    importlib.import_module(f"benchmarks.{part}").main()


if __name__ == "__main__":
    main()
