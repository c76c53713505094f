"""What a measurement ran on, how quiet it was, and where it is written."""

import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

_LIBRARIES = ("esjobs", "duckdb", "pyarrow", "numpy")


def describe(*libraries: str) -> dict[str, object]:
    """Cores, memory, name of the CPU, versions; of more libraries than all benchmarks have in common."""
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_b": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in (*_LIBRARIES, *libraries)},
    }


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def load() -> list[float]:
    """Mean number of running processes over the last 1, 5 and 15 minutes."""
    return list(os.getloadavg())


def busy_s() -> float:
    """Seconds that all processors together have worked for any program since the start of the machine."""
    user, nice, system = Path("/proc/stat").read_text(encoding="utf-8").split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def publish(out: Path, text: str, measured: Mapping[str, Any]) -> None:
    """Write a table of results, what it was made from beside it, and print it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    out.with_suffix(".json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(text)
