"""What is attacked: a function per kind of input; it returns, or raises an error of esjobs."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import esjobs
from esjobs.api.session import Session
from esjobs.entry import load
from esjobs.issues.rules.reading import read_rules
from esjobs.web.table import PAGES, ROWS
from tests.fuzz.mutation import TOKENS, damaged
from tests.records.ingest.test_promises import SAMPLES
from tests.web.client import Client

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
RULES = ROOT / "esjobs" / "issues" / "rules" / "default.toml"
SETTINGS = ROOT / "deploy" / "esjobs.toml"
# formats without a sample of ours: public files, where they are
FILES = {
    "apel": "osg-apel/2015-05.summary.dat",
    "cric": "panda-queue/queuedata_CERN.json",
    "prmon": "prmon/memory_monitor_output.txt",
    "supremm": "supremm/summary/4824787-1451650405.json",
}
SERIES = b"source,job_id,metric,unit,scope,time,value\nx,1,cpu_load,n1,node,2025-06-01T00:00:00,4\n"
PERF = b"""# started on Mon Jun  2 10:00:00 2025

 1,234.5 msec task-clock
 5,000,000 cycles

 1.25 seconds time elapsed
"""
LIKWID = b"""# HWThreads,0,1
# GID,MetricsCount,CpuCount,Total runtime [s],CPI,Power [W]
1,2,2,1.0,0.5,0.7,100,0
1,2,2,2.0,0.5,-,101,-
1,2,2,3.0,0.5,0.6,102,0
"""
LIKWID_FILL = ("job_id=1", "unit=n1", "start_time=2025-06-01T10:00:00Z")
WORDS = (
    *("queue", "site", "efficiency", "cpu_s", "events", "state", "end_time", "user", "task", "nothing"),
    *("=", "!=", "<", "<=", ">", ">=", "~", "(", ")", ",", "and", "or", "not", "in", "is", "null", "between"),
    *("'A'", '"A"', "'", '"', "1", "-1", "1e999", "2025-06-01", "last-month", "*", "%", "\\", "\x00", "ü"),
)


@dataclass(frozen=True)
class Attacked:
    """What targets work on: an open demo, its web, a folder for files."""

    session: Session
    web: Client
    folder: Path


Target = Callable[[random.Random, Attacked], None]


def formats(rng: random.Random, attacked: Attacked) -> None:
    """A damaged file of a format."""
    samples = _samples()
    name = rng.choice(sorted(samples))
    file_name, content = samples[name]
    path = attacked.folder / file_name
    path.write_bytes(damaged(rng, content, [each for _, each in samples.values()]))
    try:
        with esjobs.open("duckdb::memory:") as session:
            if name == "likwid":
                books = session.ingest("series", path, mapping="likwid", fill=LIKWID_FILL)
            else:
                books = session.ingest(name, path)
            if books.rows_in is not None:
                assert books.rows_in >= books.n_dropped
    finally:
        path.unlink()


def conditions(rng: random.Random, attacked: Attacked) -> None:
    """A condition, a window and a grouping put together from words of the language and nonsense."""
    text = " ".join(rng.choice(WORDS) for _ in range(rng.choice((1, 3, 5, 9, 400))))
    if rng.random() < 0.3:
        text = damaged(rng, b"efficiency < 0.5 and queue = 'A'").decode("utf-8", "replace")
    window = rng.choice((None, None, "last-month", "2025-W25", _nonsense(rng)))
    by = rng.choice(("queue", "site", "day", "state", _nonsense(rng)))
    attacked.session.query(by, ["jobs"], where=text, window=window).to_pandas()


def rules(rng: random.Random, attacked: Attacked) -> None:
    """A damaged file of rules."""
    path = attacked.folder / "rules.toml"
    path.write_bytes(damaged(rng, RULES.read_bytes()))
    read_rules([path])


def settings(rng: random.Random, attacked: Attacked) -> None:
    """A damaged settings file, and each of its sections."""
    path = attacked.folder / "esjobs.toml"
    path.write_bytes(damaged(rng, SETTINGS.read_bytes()))
    load(path)


def web(rng: random.Random, attacked: Attacked) -> None:
    """An address of the web with damaged parts; every answer is one of ours."""
    route = rng.choice((*PAGES, *ROWS))
    path = route.pattern
    while "{" in path:
        start, end = path.index("{"), path.index("}")
        path = path[:start] + quote(_nonsense(rng), safe=rng.choice(("", "/"))) + path[end + 1 :]
    names = ("by", "metric", "where", "window", "limit", "after", "sort", "name", "type", "level", "x")
    query = "&".join(f"{rng.choice(names)}={quote(_nonsense(rng))}" for _ in range(rng.randint(0, 4)))
    method = rng.choice(("GET", "GET", "GET", "HEAD", "POST", "\x00"))
    got = attacked.web.get(f"{path}?{query}", method, accept=quote(_nonsense(rng))[:200])
    assert got.status in (200, 304, 400, 404, 405, 406, 413, 414, 421, 422, 431, 503), (
        got.status,
        path,
        query,
    )
    assert "content-security-policy" in got.headers


TARGETS: dict[str, Target] = {
    "formats": formats,
    "conditions": conditions,
    "rules": rules,
    "settings": settings,
    "web": web,
}


def _nonsense(rng: random.Random) -> str:
    known = rng.choice((b"queue", b"CERN", b"2025-06-01/2025-06-02", b"10", b"sites.html", b"all"))
    return rng.choice((known, damaged(rng, known), rng.choice(TOKENS))).decode("utf-8", "replace")[:6000]


def _samples() -> dict[str, tuple[str, bytes]]:
    ours = {name: (file, text.encode()) for name, (file, text) in SAMPLES.items()}
    public = {name: (Path(path).name, DATA / path) for name, path in FILES.items()}
    found = {
        name: (file, path.read_bytes()[:200_000]) for name, (file, path) in public.items() if path.exists()
    }
    own = {
        "series": ("series.csv", SERIES),
        "perf-stat": ("stat.txt", PERF),
        "likwid": ("likwid.csv", LIKWID),
    }
    return {**ours, **found, **own}
