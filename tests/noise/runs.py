"""Files of runs as the noise test records them, made up."""

from pathlib import Path

import numpy as np


def recorded(path: Path, slower: dict[float, float], delay: float = 0.0, n: int = 12, seed: int = 1) -> Path:
    """Times around 100 s, by level of noise that many times as long; ``delay``: share waited for a core."""
    rng = np.random.default_rng(seed)
    lines = ["level,seconds,run_delay_s"]
    lines += [
        f"{level},{seconds:.6f},{delay * seconds:.6f}"
        for level, factor in slower.items()
        for seconds in 100 * factor + rng.normal(0, 0.2, n)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
