"""Every step from the command line, on aliases that somebody has changed: one line, and no row goes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esjobs.schema.declared import COREPOWER
from esjobs.schema.speed import FLAGS
from esjobs.store.elastic.layout import Names
from tests.cli.running import job_file, run
from tests.messages import compare_text
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize(
    "server", server_params("elasticsearch8", matrix=("opensearch3",)), indirect=True
)

WINDOW = "2018-08-10/2018-08-15"
WINDOWED = ("aggregate", "fit", "correlate", "flag", "detect", "score", "drift", "decompose")
Actions = list[dict[str, Any]]


def _removed(index: str, alias: str, _: Any) -> Actions:
    return [{"remove": {"index": index, "alias": alias}}]


def _renamed(index: str, alias: str, facts: Any) -> Actions:
    return [*_removed(index, alias, facts), {"add": {"index": index, "alias": f"old-{alias}", **facts}}]


def _refiltered(index: str, alias: str, _: Any) -> Actions:
    return [{"add": {"index": index, "alias": alias, "filter": {"term": {"generation": "x"}}}}]


CHANGES: tuple[Callable[[str, str, Any], Actions], ...] = (_removed, _renamed, _refiltered)


def aliases(server: Server, prefix: str) -> dict[tuple[str, str], Any]:
    """The aliases that show rows, and those of jobs."""
    found = server.json("GET", f"{prefix}-*/_alias")
    return {
        (index, alias): facts
        for index, of_index in sorted(found.items())
        for alias, facts in of_index["aliases"].items()
        if "none" not in str(facts)
    }


def documents(server: Server, names: Names) -> dict[str, int]:
    server.json("POST", f"{names.prefix}-*/_refresh")
    rows = server.json("GET", f"_cat/indices/{names.prefix}-*?format=json&h=index,docs.count")
    ledger = f"{names.prefix}-night"  # a night that is refused has an account all the same
    return {
        row["index"]: int(row["docs.count"])
        for row in rows
        if row["index"] != names.state and not row["index"].startswith(ledger)
    }


def test_every_step_says_in_one_line_what_somebody_did_to_aliases(
    server: Server, index_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(f"{index_prefix}own")
    monkeypatch.setenv("ESJOBS_STORE", server.url)
    monkeypatch.setenv("ESJOBS_CLUSTER__PREFIX", names.prefix)
    jobs = str(job_file(tmp_path / "jobs.csv", n_queues=6, n_tasks=2, n_jobs=20))
    declared = tmp_path / "declared.csv"
    declared.write_text("name,corepower,benchmark,valid_from\nSITE03,30,HS06,2018-01-01\n", encoding="utf-8")
    corepower = ("corepower", "import", "csv", "--level", "queue", str(declared))
    begun: list[tuple[str, ...]] = [("ingest", "jobs", jobs), corepower, ("run", "--window", WINDOW)]
    for step in begun:
        assert run(*step).exit_code == 0
    disturb(server, names, begun)


def disturb(server: Server, names: Names, begun: list[tuple[str, ...]]) -> None:
    """Change aliases in every way, take every step, count, repair."""
    shown = aliases(server, names.prefix)
    indices = {index for index, _ in shown}
    assert {names.rows(table) for table in (COREPOWER, FLAGS)} | {names.jobs_of()} <= indices
    rows, flags = documents(server, names), run("show", "flags", "--format", "csv").stdout
    steps = [*begun, *((name, "--window", WINDOW) for name in WINDOWED)]
    steps += [("watch",), ("rerun", "2018-08-14"), ("prune", "--keep", "1"), ("setup",), ("show", "flags")]
    for change in CHANGES:
        actions = [each for (index, alias), facts in shown.items() for each in change(index, alias, facts)]
        server.json("POST", "_aliases", {"actions": actions})
        for step in steps:
            require_refused(step)
            assert documents(server, names) == rows, (change, step)
        repair(server, names, shown)
        assert {index: documents(server, names)[index] for index in rows} == rows
        rows = documents(server, names)
        assert run("show", "flags", "--format", "csv").stdout == flags
    latest = next(key for key in shown if key[1] == names.latest(FLAGS))
    for index, alias in ((names.rows(COREPOWER), names.alias(COREPOWER)), latest):
        server.json("POST", "_aliases", {"actions": _removed(index, alias, None)})
        run("prune", "--keep", "1")  # has nothing to prune, and looks at nothing then
        assert documents(server, names) == rows, (index, alias)
        # what it has written by then is of no publication, and goes with the next sweep
        require_refused(("run", "--window", WINDOW))
        repair(server, names, shown)
        assert run("show", "flags", "--format", "csv").stdout == flags
        rows = documents(server, names)
    for step in (("run", "--window", WINDOW), ("prune", "--keep", "1")):
        assert run(*step).exit_code == 0
    assert run("show", "flags", "--format", "csv").stdout == flags


def require_refused(step: tuple[str, ...]) -> None:
    refused = run(*step)
    assert refused.exit_code == 1, (step, refused.output)
    assert refused.stderr.count("\n") == 1, (step, refused.stderr)
    compare_text(refused.stderr)


def repair(server: Server, names: Names, shown: dict[tuple[str, str], Any]) -> None:
    assert run("setup", "--repair").exit_code == 0
    found = aliases(server, names.prefix)
    strange = [key for key in found if key[1].startswith("old-")]
    if strange:
        actions = [{"remove": {"index": index, "alias": alias}} for index, alias in strange]
        server.json("POST", "_aliases", {"actions": actions})
    left = {key: facts for key, facts in found.items() if key not in strange}
    assert {key: left.get(key) for key in shown} == shown
