"""Who answers the questions: esjobs with a session open, SQL on the same file, the official client.

Each side is a process of its own that answers the question whose number it reads, of the site and queue whose
number comes with it, and says seconds, processor seconds and the numbers of the answer.

    python -m benchmarks.questions_sides esjobs duckdb:jobs.duckdb '[{"queue": "A", ...}, ...]'
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.questions_asked import QUESTIONS, Asked

MEMORY = "2GB"
PREFIX = "bench"

Names = Mapping[str, str]
Answer = Callable[[Asked, Names], Callable[[], pa.Table | None]]
"""Makes what answers a question about these names."""


class Side:
    """A process that answers; ``pid``: its number."""

    def __init__(self, kind: str, store: str, names: Sequence[Names]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.questions_sides", kind, store, json.dumps(names)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, number: int, place: int) -> dict[str, Any]:
        """Put a question about the names at this place; what it cost and its numbers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{number} {place}\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        if not said:
            raise RuntimeError(f"no answer to: {QUESTIONS[number].title}")
        answer: dict[str, Any] = json.loads(said)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def _of_esjobs(store: str) -> Answer:
    import esjobs
    from esjobs import Settings
    from esjobs.cli.query import query
    from esjobs.render.charts.query import text_picture
    from esjobs.settings import ClusterSettings

    settings = Settings(store=store, memory=MEMORY, cluster=ClusterSettings(prefix=PREFIX))
    session = esjobs.open(settings=settings, read_only=True)

    @cache
    def options(arguments: tuple[str, ...]) -> Mapping[str, Any]:
        """Of a question, as a notebook would give them: reading a command line is timed with the command."""
        given = dict(query.make_context("query", [*arguments]).params)
        for name in ("form", "out", "spreadsheet"):
            given.pop(name, None)
        return given

    def asked(one: Asked, names: Names) -> pa.Table | None:
        command, *arguments = (text.format(**names) for text in one.command)
        match command:
            case "query":
                given = dict(options(tuple(arguments)))
                plot = given.pop("plot")
                answer = session.query(**given).details
                if plot:
                    text_picture(answer, 120)
                return answer.table
            case "show":
                return session.tables.flags(name=names["queue"], level="queue").rows
            case "queue":
                str(session.site(names["queue"]))
            case "compare":
                return session.speed.compare().rows
            case "jobs":
                where = [f"site={names['queue']}", "efficiency<10%"]
                return session.jobs(where=where, top=50).batches().read_all()
        return None

    def prepared(one: Asked, names: Names) -> Callable[[], pa.Table | None]:
        if one.command[0] == "query":
            options(tuple(text.format(**names) for text in one.command[1:]))
        return lambda: asked(one, names)

    return prepared


def _of_sql(store: str, *, whole: bool = False) -> Answer:
    import duckdb

    path = Path(store.removeprefix("duckdb:"))
    connection = duckdb.connect(path, read_only=True, config={"memory_limit": MEMORY})
    for name in ("sites", "models"):
        connection.execute(f"CREATE TEMP TABLE {name} AS FROM '{path.parent}/{name}.parquet'")
    connection.execute("SET preserve_insertion_order = false")

    def asked(one: Asked, names: Names) -> pa.Table | None:
        answer = None
        for statement in (one.whole,) if whole else one.sql:
            answer = connection.sql(statement.format(**names)).to_arrow_table()
        return answer

    return lambda one, names: lambda: asked(one, names)


def _of_client(store: str) -> Answer:
    import elasticsearch

    client = elasticsearch.Elasticsearch(store, request_timeout=120)

    def asked(one: Asked, names: Names) -> pa.Table | None:
        assert one.body is not None
        client.search(index=f"{PREFIX}-jobs", **one.body(names), request_cache=False)
        return None

    return lambda one, names: lambda: asked(one, names)


SIDES: Mapping[str, Callable[[str], Answer]] = {
    "esjobs": _of_esjobs,
    "sql": _of_sql,
    "whole": partial(_of_sql, whole=True),
    "client": _of_client,
}


def numbers_of(table: pa.Table | None, names: tuple[str, ...]) -> dict[str, float]:
    """What of an answer is compared: sums of columns, in which the order does not matter."""
    if table is None:
        return {}
    sums = {name: pc.sum(table.column(name)).as_py() for name in names}
    return {"rows": table.num_rows, **sums} if names else {}


def main() -> None:
    """Answer until nothing is asked."""
    kind, store, given = sys.argv[1:]
    side, names = SIDES[kind](store), json.loads(given)
    for line in sys.stdin:
        number, place = map(int, line.split())
        one = QUESTIONS[number]
        answer = side(one, names[place])
        wall, cpu = time.perf_counter(), time.process_time()
        table = answer()
        spent = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
        print(json.dumps({**spent, "numbers": numbers_of(table, one.checked)}), flush=True)


def write_names(session: Any, folder: Path) -> None:
    """The WLCG sites of queues and the models of CPUs, as tables for the SQL."""
    import pyarrow.parquet

    from esjobs.core.query import Count
    from esjobs.records.jobs.resolution import aggregate

    for file, stored, resolved in (("sites", "queue", "site"), ("models", "cpu_raw", "cpu_model")):
        table = aggregate(session.store, (stored, resolved), (Count("n"),)).table.select([stored, resolved])
        columns = [column.cast(pa.string()) for column in table.columns]
        pyarrow.parquet.write_table(pa.table(columns, names=[stored, resolved]), folder / f"{file}.parquet")


if __name__ == "__main__":
    main()
