"""Running the program as a user does, and jobs to run it on."""

import random
import subprocess
from pathlib import Path

from click.testing import CliRunner, Result

from esjobs.cli.main import main
from tests.forked import program

JOBS = """job_id,task_id,queue,cpu_raw,processing_type,state,end_time,cores,events,cpu_s,wall_s,hs06_s
{rows}
"""


def run(*arguments: str, store: Path | str | None = None, data: bytes | None = None) -> Result:
    """Run the program in this process; ``data``: what it reads from standard input."""
    given = [] if store is None else ["--store", f"duckdb:{store}"]
    return CliRunner().invoke(main, [*given, *arguments], input=data, catch_exceptions=False)


def run_apart(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The program as a process of its own, whose libraries warn and log as they do for users."""
    return program(arguments, environment=environment)


def job_file(path: Path, n_queues: int = 12, n_tasks: int = 3, n_jobs: int = 60) -> Path:
    """Jobs of a small grid where every site is as fast as it declares, except the last one."""
    rows = []
    scatter = random.Random(1)
    for site in range(n_queues):
        declared = 13 + site
        speed = declared * (2.0 if site == n_queues - 1 else 1.0)
        for task in range(n_tasks):
            for job in range(n_jobs):
                cpu = 20_000 / speed * (1 + task) * scatter.gauss(1, 0.03)
                rows.append(
                    f"{task}-{site}-{job},task{task},SITE{site:02},Intel Xeon E5-2650 v{site % 3 + 2} @ 2GHz,"
                    f"simul,finished,2018-08-{10 + job % 5}T12:00:00Z,1,100,{cpu:.3f},{cpu * 1.1:.3f},"
                    f"{cpu * 1.1 * declared:.0f}"
                )
    path.write_text(JOBS.format(rows="\n".join(rows)), encoding="utf-8")
    return path
