"""Declared corepower: what tables are accepted, what is refused in which words, which value counts when."""

import gzip
import itertools
import json
import tracemalloc
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import InputError, UsageError
from tests.messages import raised
from tests.steps.grids import grid_jobs, load, site_names

DECLARED = np.arange(9.3, 21.0)
"""Twelve values, none of them a default."""


def imported(session: Session, folder: Path, text: str | bytes, **options: Any) -> pd.DataFrame:
    file = folder / "table.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    session.declared.import_values(file, **options)
    return session.tables.corepower().to_pandas().set_index("name")


@pytest.mark.parametrize(
    "text",
    [
        "queue,corepower,benchmark\nCERN,10.5,HS06\nRAL,,HS06\n",
        "queue;corepower;benchmark\nCERN;10.5;HS06\nRAL;;HS06\n",
        "name\tcorepower\tbenchmark\nCERN\t10.5\tHS06\nRAL\t\tHS06",
        "\ufeffqueue,corepower,benchmark\r\nCERN,10.5,HS06\r\nRAL,,HS06\r\n",
        ' Queue , CorePower , BENCHMARK \n"CERN", 10.5 ,HS06\n\nRAL,\\N,HS06\n',
        "benchmark,corepower,name,level\nHS06,1.05e1,CERN,queue\nHS06,0,RAL,queue\n",
    ],
    ids=["comma", "semicolon", "tab", "bom and crlf", "blanks and quotes", "other order"],
)
def test_tables_are_written_in_many_ways(session: Session, tmp_path: Path, text: str) -> None:
    rows = imported(session, tmp_path, text)
    assert rows["corepower"].tolist()[:1] == [10.5]
    assert rows.index.tolist() == ["CERN", "RAL"]
    assert np.isnan(rows["corepower"].iloc[1])
    assert set(rows["benchmark"]) == {"HS06"}
    assert set(rows["level"]) == {"queue"}
    assert rows["valid_from"].iloc[0] == pd.Timestamp("1970-01-01", tz="UTC")


@pytest.mark.parametrize("nothing", ["", "0", "0.0", "-", "\\N", "null", "None"])
def test_nothing_declared_is_nothing_not_zero(session: Session, tmp_path: Path, nothing: str) -> None:
    rows = imported(session, tmp_path, f"queue,corepower,benchmark\nCERN,{nothing},HS06\n")
    assert rows["corepower"].isna().all()


def test_cpu_models_are_found_however_they_are_written(session: Session, tmp_path: Path) -> None:
    text = "CPU,corepower,benchmark\nIntel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz,11.5,HS06\n"
    assert imported(session, tmp_path, text)["level"].tolist() == ["cpu_model"]
    raws = (
        "s+Intel(R) Xeon(R) CPU           E5-2650 v2 @ 2.60GHz 20480 KB",
        "AMD EPYC 7302 16-Core Processor",
    )
    load(session, grid_jobs(np.random.default_rng(1), np.ones(3), models=raws), tmp_path)
    session.run()
    flags = session.tables.flags(level="cpu_model", type="all", method="gamma").to_pandas().set_index("name")
    assert flags["corepower"].dropna().to_dict() == {"Intel Xeon E5-2650 v2": 11.5}
    assert flags.loc["Intel Xeon E5-2650 v2", "origin"] == "own"
    assert flags.loc["AMD EPYC 7302", "verdict"] == "undeclared"


@pytest.mark.parametrize(
    "text",
    [
        "queue,corepower\nCERN,10.5\n",
        "queue,corepower,benchmark\nCERN,10.5,HS17\n",
        "queue,corepower,benchmark\nCERN,884,HS06\n",
        "queue,corepower,benchmark\nCERN,-3,HS06\n",
        "queue,corepower,benchmark\nCERN,nan,HS06\n",
        "queue,corepower,benchmark\nCERN,inf,HS06\n",
        "queue,corepower,benchmark\nCERN,ten,HS06\n",
        "queue;corepower;benchmark\nCERN;10,5;HS06\n",
        "queue,benchmark,corepower\nCERN,HS06,10,5\n",
        "queue,corepower,benchmark\n,10.5,HS06\n",
        "queue,corepower,benchmark,level\nCERN,10.5,HS06,rack\n",
        "queue,corepower,benchmark,valid_from\nCERN,10.5,HS06,soon\n",
        "queue,corepower,benchmark\nCERN,10,HS06\nCERN,11,HS06\n",
        "cpu,corepower,benchmark\nIntel Xeon E5-2650 v2,9,HS06\nIntel Xeon E5-2650v2 @ 2.6GHz,11,HS06\n",
        "queue,cpu_model,corepower,benchmark\nA,B,10,HS06\n",
        "queue,corepower,benchmark\nA\0B,10,HS06\n",
        "queue,corepower,benchmark,site\nA,10,HS06,R\0C\n",
        "queue,corepower,benchmark\n",
        "",
        "host,corepower,benchmark\nCERN,10,HS06\n",
        "queue,score,benchmark\nCERN,10,HS06\n",
        "queue,corepower,corepower\nCERN,10,11\n",
        'queue,corepower,benchmark\n"CERN,10,HS06\n',
        '"queue,corepower,benchmark\n',
        b"queue,corepower,benchmark\nCERN\xff,10,HS06\n",
    ],
)
def test_what_is_refused_is_named_and_nothing_is_stored(
    session: Session, tmp_path: Path, text: str | bytes
) -> None:
    with raised(InputError):
        imported(session, tmp_path, text)
    assert session.tables.corepower().to_pandas().empty


def test_the_same_row_twice_is_one_and_one_repeated(session: Session, tmp_path: Path) -> None:
    text = "queue,corepower,benchmark\nCERN,10.5,HS06\nRAL,,HS06\nCERN,10.50,hs06\n"
    rows = imported(session, tmp_path, text)
    assert rows.index.tolist() == ["CERN", "RAL"]
    report = session.declared.import_values(tmp_path / "table.csv")
    assert (report.rows_in, report.rows_out, report.dropped) == (3, 1, {"repeated": 1})
    assert report.counts["rows without a value"] == 1


def test_levels_are_read_in_any_case_as_benchmarks_are(session: Session, tmp_path: Path) -> None:
    rows = imported(session, tmp_path, "name,level,corepower,benchmark\nA,CPU_Model,10.5,hs06\n")
    assert rows["level"].tolist() == ["cpu_model"]
    (table := tmp_path / "table.csv").write_text("name,corepower\nA,10.5\n")
    upper = session.ingest("corepower", table, fill=["level=CPU_MODEL", "benchmark=hs06"])
    assert upper.run == session.declared.import_values(table, level="cpu_model", benchmark="HS06").run
    with raised(UsageError):
        session.ingest("corepower", table, fill=["level=rack", "benchmark=hs06"])


@pytest.mark.parametrize("by", ["ingest", "import"])
def test_hints_fit_the_command(session: Session, tmp_path: Path, by: str) -> None:
    (table := tmp_path / "table.csv").write_text("name,corepower\nA,10.5\n")
    with raised(InputError):
        _ = session.ingest("corepower", table) if by == "ingest" else session.declared.import_values(table)


def test_tables_and_queue_descriptions_may_be_gzip(
    session: Session, tmp_path: Path, shared_data: Path
) -> None:
    zipped = tmp_path / "table.csv.gz"
    zipped.write_bytes(gzip.compress(b"queue,corepower,benchmark\nCERN,10.5,HS06\n"))
    assert session.declared.import_values(zipped).rows_out == 1
    assert session.ingest("corepower", zipped).counts["updated"] == 1
    zipped.write_bytes(gzip.compress(cern(shared_data).read_bytes()))
    assert session.ingest("cric", zipped).rows_out == 1
    for content in (
        gzip.compress(b"queue,corepower\n")[:-9],
        gzip.compress(bytes(65 << 20)),
    ):
        zipped.write_bytes(content)
        with raised(InputError):
            session.declared.import_values(zipped)


def test_a_bomb_takes_no_more_memory_than_the_largest_table(session: Session, tmp_path: Path) -> None:
    """256 MiB of NUL in 256 kB."""
    squeezed = zlib.compressobj(wbits=31)
    block = bytes(1 << 20)
    (bomb := tmp_path / "table.csv.gz").write_bytes(
        b"".join([*(squeezed.compress(block) for _ in range(1 << 8)), squeezed.flush()])
    )
    tracemalloc.start()
    try:
        with raised(InputError):
            session.declared.import_values(bomb)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_options_fill_what_the_file_does_not_say(session: Session, tmp_path: Path) -> None:
    text = "name,corepower,benchmark\nA,10.5,\nB,11.5,HS23\n"
    options = {"benchmark": "HS06", "level": "cpu_model", "valid_from": "2018-01-01"}
    rows = imported(session, tmp_path, text, **options)
    assert rows["benchmark"].to_dict() == {"A": "HS06", "B": "HS23"}
    assert set(rows["level"]) == {"cpu_model"}
    assert set(rows["valid_from"]) == {pd.Timestamp("2018-01-01", tz="UTC")}
    with raised(UsageError):
        imported(session, tmp_path, text, benchmark="HS17")


def test_importing_again_replaces_its_own_rows_only(session: Session, tmp_path: Path) -> None:
    first = "queue,corepower,benchmark\nA,10.5,HS06\n"
    imported(session, tmp_path, first)
    imported(session, tmp_path, "queue,corepower,benchmark\nB,11.5,HS06\n")
    rows = imported(session, tmp_path, first)
    assert sorted(rows.index) == ["A", "B"]


def grid_of(session: Session, folder: Path, records: np.ndarray | None = None, **options: Any) -> None:
    """Twelve sites as fast as they declare; Job records imply ``records``, or nothing."""
    speed = DECLARED * options.pop("factor", 1.0)
    load(session, grid_jobs(np.random.default_rng(1), speed, records, tasks=4, **options), folder)


def table_of(values: Mapping[str, Any], columns: str = "benchmark", rest: str = "HS06") -> str:
    return f"queue,corepower,{columns}\n" + "".join(f"{n},{value},{rest}\n" for n, value in values.items())


def site_flags(session: Session) -> pd.DataFrame:
    session.run()
    return (
        session.tables.flags(level="queue", type="all", method="gamma")
        .to_pandas()
        .set_index("name")
        .sort_index()
    )


HONEST = dict(zip(site_names(12), DECLARED, strict=True))


def test_the_newest_value_valid_at_the_end_of_the_window_counts(session: Session, tmp_path: Path) -> None:
    """Jobs end on the 10th and the 11th: the window ends at midnight of the 12th."""
    grid_of(session, tmp_path)
    for moment, factor in (("2017-01-01", 0.5), ("2018-08-11T23:59", 1.0), ("2018-08-12", 2.0)):
        values = {name: value * factor for name, value in HONEST.items()}
        imported(session, tmp_path, table_of(values), valid_from=moment)
    assert len(session.tables.corepower().to_pandas()) == 36
    flags = site_flags(session)
    np.testing.assert_allclose(flags["corepower"], DECLARED)
    assert set(flags["verdict"]) == {"ok"}
    session.run(day := "2018-08-10/2018-08-11")
    earlier = session.tables.flags(level="queue", type="all", method="gamma", window=day).to_pandas()
    earlier = earlier.set_index("name").sort_index()
    np.testing.assert_allclose(earlier["corepower"], DECLARED / 2)


def test_of_two_imports_valid_from_the_same_day_the_later_counts(tmp_path: Path) -> None:
    values = itertools.chain(
        pd.date_range("2026-01-01", periods=2, tz="UTC"),
        itertools.repeat(pd.Timestamp("2026-02-01", tz="UTC")),
    )
    with esjobs.open("duckdb::memory:", clock=lambda: next(values).to_pydatetime()) as session:
        for value in (10.5, 11.5):
            imported(session, tmp_path, table_of({"SITE00": value}))
        grid_of(session, tmp_path)
        assert site_flags(session).loc["SITE00", "corepower"] == 11.5


def test_lines_of_two_benchmarks_are_never_mixed(session: Session, tmp_path: Path) -> None:
    """HS23 values at twice the scale would wreck a common line; apart, both are exact."""
    rng = np.random.default_rng(2)
    load(session, grid_jobs(rng, np.tile(DECLARED, 2), tasks=4), tmp_path)
    halves = site_names(24)[:12], site_names(24)[12:]
    for names, benchmark, scale in zip(halves, ("HS06", "HS23"), (1.0, 2.0), strict=True):
        values = dict(zip(names, DECLARED * scale, strict=True))
        imported(session, tmp_path, table_of(values, rest=benchmark))
    flags = site_flags(session)
    assert set(flags["verdict"]) == {"ok"}
    lines = session.tables.lines(level="queue", type="all", method="gamma").to_pandas().set_index("benchmark")
    assert sorted(lines.index) == ["HS06", "HS23"]
    assert set(lines["n_names"]) == {12}
    slopes = lines["slope"].astype(float).to_dict()
    assert slopes["HS06"] / slopes["HS23"] == pytest.approx(2, rel=0.05)
    assert str(flags.loc["SITE20", "sentence"]).count("HS23") == 1


@pytest.mark.parametrize(("off", "shown"), [(1.009, False), (1.011, True), (1 / 1.3, True)])
def test_both_values_are_shown_when_they_differ(
    session: Session, tmp_path: Path, off: float, shown: bool
) -> None:
    grid_of(session, tmp_path, DECLARED * off)
    imported(session, tmp_path, table_of(HONEST))
    flags = site_flags(session)
    np.testing.assert_allclose(flags["corepower"], DECLARED)
    if shown:
        np.testing.assert_allclose(flags["corepower_from_records"], DECLARED * off, rtol=1e-6)
        assert flags["sentence"].str.contains("Job records imply").all()
    else:
        assert flags["corepower_from_records"].isna().all()
        assert not flags["sentence"].str.contains("Job records imply").any()


def test_a_named_queue_without_a_value_takes_that_of_its_records(session: Session, tmp_path: Path) -> None:
    grid_of(session, tmp_path, DECLARED)
    imported(session, tmp_path, table_of(dict.fromkeys(HONEST, "")))
    flags = site_flags(session)
    np.testing.assert_allclose(flags["corepower"], DECLARED, rtol=1e-6)
    assert flags["corepower_from_records"].isna().all()


def test_origins(session: Session, tmp_path: Path) -> None:
    """Own, inherited from the site behind the queue, a default of two systems, changed, none."""
    records = DECLARED.copy()
    records[4] = np.nan
    jobs = grid_jobs(np.random.default_rng(1), DECLARED, records, tasks=4)
    second_day = (jobs["queue"] == "SITE06") & (jobs["end_time"] == jobs["end_time"].max())
    jobs.loc[second_day, "hs06_s"] *= 1.05
    load(session, jobs, tmp_path)
    text = (
        "queue,corepower,benchmark,site,parent_corepower\n"
        "SITE00,9,HS06,RC0,16.9\nSITE01,10.0,HS06,RC1,16.886\nSITE02,12.0,HS06,RC2,\nSITE03,12.0101,HS06,,\n"
        "SITE05,14,HS06,RC5,14.001\n"
    )
    imported(session, tmp_path, text)
    flags = site_flags(session)
    expected = {"SITE00": "own", "SITE01": "default", "SITE02": "default", "SITE03": "default"}
    expected |= {"SITE04": "none", "SITE05": "inherited", "SITE06": "changed", "SITE07": "own"}
    assert flags["origin"].loc[list(expected)].to_dict() == expected
    assert set(flags.loc[["SITE01", "SITE02", "SITE03", "SITE04"], "verdict"]) == {"undeclared"}
    assert flags.loc["SITE01", "corepower_parent"] == 16.886
    assert "The site declares 16.886" in str(flags.loc["SITE01", "sentence"])
    assert flags.loc["SITE00", "site"] == "RC0"
    assert flags.loc["SITE06", "corepower"] == pytest.approx(15.3 * 1.025, rel=1e-2)
    line = session.tables.lines(level="queue", type="all", method="gamma").to_pandas().iloc[0]
    assert line["n_names"] == 8  # defaults are drawn, never fitted


def cern(shared_data: Path) -> Path:
    return shared_data / "panda-queue" / "queuedata_CERN.json"


def test_cric_serves_a_default_and_the_parent_is_never_substituted(
    session: Session, tmp_path: Path, shared_data: Path
) -> None:
    """A real queue: 10.0 is served, 10.01 stands in it, its site declares 16.886."""
    names = [*site_names(11), "CERN"]
    jobs = grid_jobs(np.random.default_rng(1), DECLARED, names=names, tasks=4)
    load(session, jobs.assign(end_time=jobs["end_time"] + pd.DateOffset(years=5)), tmp_path)
    imported(session, tmp_path, table_of(dict(list(HONEST.items())[:11])))
    session.declared.import_values(cern(shared_data), form="cric")
    row = session.tables.corepower(name="CERN").to_pandas().iloc[0]
    assert row[["corepower", "parent_corepower", "served_corepower"]].tolist() == [10.0, 16.886, 10.0]
    assert (row["site"], row["benchmark"], row["source"]) == ("CERN-PROD", "HS06", "CRIC")
    assert row["valid_from"] == pd.Timestamp("2022-09-14T15:55:19.332736Z")
    flag: dict[Any, Any] = site_flags(session).loc[["CERN"]].iloc[0].to_dict()
    assert (flag["verdict"], flag["origin"]) == ("undeclared", "default")
    assert (flag["corepower"], flag["corepower_parent"]) == (10.0, 16.886)
    assert (row["country"], flag["country"]) == ("Switzerland", "Switzerland")
    assert np.isnan(flag["deviation"])
    assert np.isnan(flag["proposed_corepower"])
    assert "default" in flag["sentence"]
    assert "16.886" in flag["sentence"]


def test_a_later_table_without_countries_takes_none_away(session: Session, tmp_path: Path) -> None:
    load(session, grid_jobs(np.random.default_rng(1), DECLARED, tasks=4), tmp_path)
    text = table_of(HONEST).splitlines()
    told = [f"{text[0]},country", f"{text[1]},Norway", *(f"{line}," for line in text[2:])]
    imported(session, tmp_path, "\n".join(told), valid_from="2018-01-01")
    imported(session, tmp_path, "\n".join(text), valid_from="2018-01-02")
    countries = site_flags(session)["country"]
    assert countries[countries.notna()].to_dict() == {text[1].partition(",")[0]: "Norway"}


def test_cric_dates_hold_for_older_jobs_unless_another_is_given(
    session: Session, tmp_path: Path, shared_data: Path
) -> None:
    """The description was last changed in 2022; jobs of 2018 know nothing of it."""
    names = [*site_names(11), "CERN"]
    load(session, grid_jobs(np.random.default_rng(1), DECLARED, names=names, tasks=4), tmp_path)
    imported(session, tmp_path, table_of(dict(list(HONEST.items())[:11])))
    session.declared.import_values(cern(shared_data), form="cric")
    assert site_flags(session).loc["CERN", "origin"] == "none"
    session.declared.import_values(cern(shared_data), form="cric", valid_from="2018-01-01")
    assert site_flags(session).loc["CERN", "origin"] == "default"


def test_cric_gives_one_queue_a_list_or_a_mapping(
    session: Session, tmp_path: Path, shared_data: Path
) -> None:
    queue = json.loads(cern(shared_data).read_text("utf-8"))
    other = {**queue, "name": "CERN_2", "corepower": 17.5}
    for document in ([queue, other], {"CERN": queue, "CERN_2": other}):
        (file := tmp_path / "queues.json").write_text(json.dumps(document))
        assert session.declared.import_values(file, form="cric").rows_in == 2
    rows = session.tables.corepower().to_pandas().drop_duplicates("name").set_index("name")
    assert rows["corepower"].to_dict() == {"CERN": 10.0, "CERN_2": 17.5}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "3",
        '"CERN"',
        "{}",
        '{"corepower": 10.0}',
        '[{"name": "CERN", "corepower": "ten"}]',
        '[{"name": "CERN", "corepower": NaN}]',
        '[{"name": "CERN", "corepower": {"a": 1}}]',
        '[{"name": "CERN", "corepower": 10, "last_modified": "soon"}]',
        '{"name": "CERN", "corepower": 10',
        "[" * 100_000,
    ],
    ids=range(12),
)
def test_other_json_is_refused_in_one_line(session: Session, tmp_path: Path, text: str) -> None:
    (file := tmp_path / "queues.json").write_text(text)
    with raised(InputError) as caught:
        session.declared.import_values(file, form="cric")
    assert len(str(caught.value)) < 400
    assert session.tables.corepower().to_pandas().empty
