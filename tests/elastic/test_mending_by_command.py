"""Every step from the command line, on aliases that somebody has changed: one line, and no row goes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esjobs.schema.catalogue import TABLES
from esjobs.store.elastic.layout import Names
from tests.cli.running import job_file, run
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)

WINDOW = "2018-08-10/2018-08-15"
Actions = list[dict[str, Any]]


def _removed(index: str, alias: str, _: Any) -> Actions:
    return [{"remove": {"index": index, "alias": alias}}]


def _renamed(index: str, alias: str, facts: Any) -> Actions:
    return [*_removed(index, alias, facts), {"add": {"index": index, "alias": f"old-{alias}", **facts}}]


def _refiltered(index: str, alias: str, _: Any) -> Actions:
    return [{"add": {"index": index, "alias": alias, "filter": {"term": {"generation": "x"}}}}]


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
    return {row["index"]: int(row["docs.count"]) for row in rows if row["index"] != names.state}


def test_every_step_says_in_one_line_what_somebody_did_to_aliases(
    server: Server, index_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(f"{index_prefix}own")
    monkeypatch.setenv("ESJOBS_STORE", server.url)
    monkeypatch.setenv("ESJOBS_CLUSTER__PREFIX", names.prefix)
    jobs = str(job_file(tmp_path / "jobs.csv", n_sites=6, n_tasks=2, n_jobs=20))
    declared = tmp_path / "declared.csv"
    declared.write_text("name,value,benchmark,valid_from\nSITE03,30,HS06,2018-01-01\n", encoding="utf-8")
    corepower = ("corepower", "import", "csv", "--level", "site", str(declared))
    steps = [
        ("ingest", "jobs", jobs),
        corepower,
        ("aggregate", "--window", WINDOW),
        ("fit", "--window", WINDOW),
        ("correlate", "--window", WINDOW),
        ("flag", "--window", WINDOW),
        ("run", "--window", WINDOW),
        ("detect", "--window", WINDOW),
        ("score", "--window", WINDOW),
        ("watch",),
        ("drift", "--window", WINDOW),
        ("reasons", "--window", WINDOW),
        ("rerun", "2018-08-14"),
        ("prune", "--keep", "1"),
        ("setup",),
        ("show", "flags"),
    ]
    for step in steps:
        done = run(*step)
        assert done.exit_code == 0, (step, done.stderr)
    shown = aliases(server, names.prefix)
    tables = {table.name for table in TABLES if any(i == names.rows(table) for i, _ in shown)}
    assert {"corepower", "flags", "runs"} <= tables
    rows, flags = documents(server, names), run("show", "flags", "--format", "csv").stdout
    changes: list[Callable[[str, str, Any], Actions]] = [_removed, _renamed, _refiltered]
    for change in changes:
        actions = [each for (index, alias), facts in shown.items() for each in change(index, alias, facts)]
        server.json("POST", "_aliases", {"actions": actions})
        for step in steps:
            refused = run(*step)
            assert refused.exit_code == 1, (change, step, refused.output)
            assert refused.stderr.count("\n") == 1, (change, step, refused.stderr)
            assert "setup --mend" in refused.stderr, (change, step, refused.stderr)
            assert documents(server, names) == rows, (change, step)
        assert run("doctor", "--format", "csv").stdout.count("setup --mend") >= len(tables)
        assert run("setup", "--mend").exit_code == 0
        server.json("POST", "_aliases", {"actions": _forgotten(server, names)})
        assert aliases(server, names.prefix) == shown
        assert (documents(server, names), run("show", "flags", "--format", "csv").stdout) == (rows, flags)
    # one after the other: some steps need no row of the table, and no step takes one away
    for (index, alias), facts in shown.items():
        server.json("POST", "_aliases", {"actions": _removed(index, alias, facts)})
        pruned = run("prune", "--keep", "1")
        assert (pruned.exit_code, pruned.stderr.count("\n")) == (1, 1), (index, alias, pruned.output)
        assert re.search(r"--mend", pruned.stderr)
        assert documents(server, names) == rows, (index, alias)
        assert run("setup", "--mend").exit_code == 0
    assert aliases(server, names.prefix) == shown
    for step in (("rerun", "2018-08-14"), ("prune", "--keep", "1")):
        assert run(*step).exit_code == 0
    assert run("show", "flags", "--format", "csv").stdout == flags


def _forgotten(server: Server, names: Names) -> Actions:
    """Take away the aliases of other names."""
    found = server.json("GET", f"{names.prefix}-*/_alias")
    return [
        *(
            {"remove": {"index": i, "alias": a}}
            for i, each in found.items()
            for a in each["aliases"]
            if a[:4] == "old-"
        ),
        {"add": {"index": names.jobs_of(), "alias": "old"}},
        {"remove": {"index": names.jobs_of(), "alias": "old"}},
    ]
