"""``show``: order, number and columns of rows, the same in every format and in Python."""

import csv
import io
import json
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow.parquet as pq
import pytest

import esjobs
from esjobs.core.arguments import Filters, ShowOptions
from esjobs.core.errors import UsageError
from esjobs.core.row_filters import ROW_FILTERS
from esjobs.schema.catalogue import TABLES
from tests.cli.running import run

SORTED = ("--sort", "n_jobs,name", "--asc", "--top", "5", "--columns", "name,n_jobs,level")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def shown(filled: Path, *arguments: str) -> list[dict[str, Any]]:
    ended = run("show", *arguments, "--format", "json", store=filled)
    assert ended.exit_code == 0, ended.output
    rows: list[dict[str, Any]] = json.loads(ended.stdout)
    return rows


def test_every_format_has_the_same_rows_and_columns(filled: Path, tmp_path: Path) -> None:
    everything = shown(filled, "factors", "--method", "gamma", "--type", "all")
    expected = sorted(everything, key=lambda row: (row["n_jobs"], row["name"]))[:5]
    wanted = [{name: row[name] for name in ("name", "n_jobs", "level")} for row in expected]
    asked = ("factors", "--method", "gamma", "--type", "all", *SORTED)
    assert shown(filled, *asked) == wanted
    texts = [{name: str(value) for name, value in row.items()} for row in wanted]
    assert rows_of(run("show", *asked, "--format", "csv", store=filled).stdout) == texts
    run("show", *asked, "--format", "parquet", "--out", str(tmp_path / "x.parquet"), store=filled)
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == wanted
    with esjobs.open(f"duckdb:{filled}", read_only=True) as session:
        frame = session.tables.factors(
            method="gamma",
            type="all",
            sort=["n_jobs", "name"],
            descending=False,
            top=5,
            columns=["name", "n_jobs", "level"],
        ).to_pandas()
    assert frame.to_dict("records") == wanted
    title, heading, *lines = run("show", *asked, store=filled).stdout.splitlines()
    assert heading.split() == ["name", "n", "jobs", "level"] or heading.split() == ["name", "n_jobs", "level"]
    assert [line.split()[0] for line in lines] == [row["name"].split()[0] for row in wanted]
    assert f"5 of {len(everything)}" in title


def test_numbers_are_sorted_as_numbers_and_missing_ones_come_last(filled: Path) -> None:
    for direction in ("--desc", "--asc"):
        values = [row["deviation"] for row in shown(filled, "flags", "--sort", "deviation", direction)]
        known = [value for value in values if value is not None]
        assert values == sorted(known, reverse=direction == "--desc") + [None] * (len(values) - len(known))
    by_default = [row["deviation"] for row in shown(filled, "flags", "--sort", "deviation", "--top", "3")]
    assert by_default == sorted(by_default, reverse=True)
    names = [row["name"] for row in shown(filled, "flags", "--sort", "name")]
    assert names == sorted(names)


def test_the_usual_order_stays_where_nothing_else_is_asked_for(filled: Path) -> None:
    usual = shown(filled, "flags")
    assert shown(filled, "flags", "--top", "3") == usual[:3]
    assert shown(filled, "flags", "--top", "0") == usual
    by_level = shown(filled, "flags", "--sort", "level")
    for level in ("queue", "cpu_model"):
        of_level = [row for row in by_level if row["level"] == level]
        assert of_level == [row for row in usual if row["level"] == level]


@pytest.mark.parametrize("what", [table.name for table in TABLES])
def test_every_table_is_sorted_and_cut(filled: Path, what: str) -> None:
    table = next(each for each in TABLES if each.name == what)
    plain = [item.name for item in table.columns if item.type not in ("map", "list", "bytes")]
    # a column of each type stands for the others
    sorted_by = {item.type: item.name for item in reversed(table.columns) if item.name in plain}
    with esjobs.open(f"duckdb:{filled}", read_only=True) as session:
        try:
            everything = session.tables.read(what).rows
        except esjobs.NoResultError:
            return
        for name in sorted_by.values():
            rows = session.tables.read(what, sort=name, top=4, columns=[name, plain[0]]).rows
            assert rows.column_names == list(dict.fromkeys([name, plain[0]]))
            assert rows.num_rows == min(4, everything.num_rows)
    ended = run("show", what, "--sort", plain[0], "--columns", plain[-1], "--format", "table", store=filled)
    assert ended.exit_code == 0, ended.output


@pytest.mark.parametrize("form", ["table", "csv"])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--columns", "name,devation"), "did you mean deviation"),
        (("--sort", "devation"), "did you mean deviation"),
        (("--desc",), "sort"),
        (("--columns", ","), "columns"),
    ],
)
def test_what_cannot_be_is_refused(filled: Path, form: str, options: tuple[str, ...], named: str) -> None:
    ended = run("show", "flags", *options, "--format", form, store=filled)
    assert ended.exit_code == 2
    assert named in ended.stderr.splitlines()[-1]


def test_packed_columns_have_no_order(filled: Path) -> None:
    series = next(table for table in TABLES if table.name == "series")
    packed = next(item.name for item in series.columns if item.type == "bytes")
    with esjobs.open(f"duckdb:{filled}", read_only=True) as session, pytest.raises(UsageError):
        session.tables.series(sort=packed).to_pandas()


def test_a_name_chooses_by_whatever_column_has_names(filled: Path) -> None:
    models = {row["cpu_model"] for row in shown(filled, "buckets")}
    model = sorted(models)[0]
    rows = shown(filled, "buckets", "--name", model.lower(), "--name", "SITE00")
    assert rows
    assert all(row["cpu_model"] == model or row["queue"] == "SITE00" for row in rows)
    assert {row["queue"] for row in rows} > {"SITE00"}
    assert run("show", "buckets", "--name", "NOBODY", store=filled).exit_code == 2
    assert run("show", "runs", "--name", "SITE00", store=filled).exit_code == 2


def test_filters_are_one_list() -> None:
    others = {"run", "window", "min_severity"}
    assert set(get_type_hints(Filters)) == {each.name for each in ROW_FILTERS} | others
    assert set(get_type_hints(ShowOptions)) - set(get_type_hints(Filters)) == {
        "sort",
        "descending",
        "top",
        "columns",
    }
    help_text = run("show", "--help").stdout
    assert all(f"--{each.name} " in help_text for each in ROW_FILTERS)
