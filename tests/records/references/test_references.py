"""Reference tables: real ones, made-up ones with every oddity, broken ones, and what is said of a model."""

from pathlib import Path

import pandas as pd
import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoResultError, UsageError
from esjobs.records.ingest.formats.sources import REFERENCE_SOURCES
from esjobs.records.references.values import reference_scores
from tests.messages import raised

HS23 = """CPU,SMT enabled,Threads/core,Ncores,Power Policy,# Meas,Score,Spread,Site,first_date,last_date
AMD EPYC 7302 16-Core Processor,0,1,32,performance,642,768.0,0.8,CERN,2023-03-23 16:00:01,2023-08-09 06:00:02
AMD EPYC 7302 16-Core Processor,1.0,2.0,64.0,-,3,960.0,-,PIC,2023-03-23T16:00:01Z,-
Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz,1,1,56,,1,700,,X,,
Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz,1,2,56,,1,705,,X,,
QEMU Virtual CPU version 2.5+,0,1,8,,1,80,,Y,,
UNKNOWN,1,2,56,,1,700,,X,,
AMD EPYC 7452 32-Core Processor,1,2,-1,,1,700,,X,,
AMD EPYC 7452 32-Core Processor,1,2,64,,1,,,X,,
AMD EPYC 7452 32-Core Processor,1,2,64,,1,many,,X,,
AMD EPYC 7452 32-Core Processor,1,2,64,,1,7000,,X,,
AMD EPYC 7452 32-Core Processor,1,2,64,,1,-5,,X,,
AMD EPYC 7452 32-Core Processor,1,2,64,,1,640,,X,yesterday,
Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz,1,2,56,,1,705,,X,,
"""
HS06 = """# Results
| Compiler | gcc |
|---|---|
|  CPU  | HS06 |  Clock speed (MHz)  |  Cores (runs)  |  Memory (GB)  |  Mainboard type  |  Site  |
|------|-----|-----|-----|----|----|----|
|  Intel Xeon E5-2630v3  |  278 |  2400 |  16 (HT off)  |  96  | Intel S2600KP  | GridKa |
|  Intel Xeon E5-2630v3  |  352 |  2400 |  32 HT on  |  96  | Intel S2600KP  | (GridKa) |
|  Intel Xeon E5520  |  91 |  2261 |  8 TB off  |  16  | DELL R410  | Australia-ATLAS |
|  Intel Xeon E5520  |  91 |  2261 |  all  |  16  | DELL R410  | Australia-ATLAS |
|  Intel Xeon E5520  |  91 |
|   |   |   |    |    |   |  |
"""
LINES = """Six-Core AMD Opteron(tm) Processor 2435
Intel(R) Xeon(R) CPU           E5540  @ 2.53GHz137.,16
Intel(R) Xeon(R) CPU           E5540  @ 2.53GHz,137.,16,on
Intel(R) Xeon(R) CPU           E5540  @ 2.53GHz,99.,8,off
Intel(R) Xeon(R) CPU           E5420  @ 2.50GHz,72.,8,perhaps
AMD Opteron(TM) Processor 6234,402.,48,na
"""


def written(folder: Path, text: str, name: str = "table.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_hs23_rows_keep_their_machine_and_say_the_range_of_their_model(
    session: Session, tmp_path: Path
) -> None:
    report = session.declared.import_references(written(tmp_path, HS23), form="hepix-hs23")
    assert (report.rows_in, report.rows_out) == (13, 5)
    assert report.dropped == {
        "no CPU model": 1,
        "no score": 2,
        "not a number": 2,
        "out of range": 2,
        "repeated": 1,
    }
    rows = session.tables.references().to_pandas()
    epyc = rows[rows.cpu_model == "AMD EPYC 7302"].set_index("cores")
    assert epyc.value_per_core.to_dict() == {32: 24.0, 64: 15.0}
    assert epyc.smt.to_dict() == {32: False, 64: True}
    assert epyc.ambiguous.all()
    assert set(epyc.value_per_core_low) == {15.0}
    assert set(epyc.value_per_core_high) == {24.0}
    assert set(epyc.differ_in) == {"smt, cores, settings, site"}
    xeon = rows[rows.cpu_model == "Intel Xeon E5-2680 v4"]
    assert not xeon.ambiguous.any(), "705 and 700 on 56 cores are one score"
    assert xeon.smt.isna().sum() == 1, "SMT on with one thread a core is no statement"
    assert rows[rows.cpu_model.str.startswith("QEMU")].ambiguous.all(), "a made-up name is no machine"


def test_a_page_of_hs06_is_read_with_what_its_cells_say_beside_numbers(
    session: Session, tmp_path: Path
) -> None:
    report = session.declared.import_references(written(tmp_path, HS06), form="hepix-hs06")
    assert (report.rows_in, report.rows_out, report.dropped) == (5, 3, {"no score": 2})
    rows = session.tables.references().to_pandas()
    xeon = rows[rows.cpu_model == "Intel Xeon E5-2630 v3"].set_index("cores")
    assert xeon.smt.to_dict() == {16: False, 32: True}
    assert set(xeon.measured_by) == {"GridKa"}
    assert set(xeon.board) == {"Intel S2600KP"}
    (old,) = rows[rows.cpu_model == "Intel Xeon E5520"].to_dict("records")
    assert pd.isna(old["smt"]), "nobody says"
    assert "TB off" in old["remark"]
    assert old["clock_mhz"] == 2261


def test_lines_of_hs06_and_columns_of_factors(session: Session, tmp_path: Path) -> None:
    report = session.declared.import_references(written(tmp_path, LINES), form="atlas-hs06")
    assert (report.rows_in, report.rows_out) == (6, 3)
    assert report.dropped == {"no score": 1, "not a number": 2}
    table = "cputype\tfit a\tfit b\ns+Intel(R) Xeon(R) CPU E5-2670 v2 @ 2.50GHz 25600 KB\t1.0\t0.8\n"
    report = session.declared.import_references(written(tmp_path, table, "f.tsv"), form="atlas-factors")
    assert report.rows_out == 2
    rows = session.tables.references().to_pandas()
    factors = rows[rows.benchmark == "factor"]
    assert set(factors.source) == {"f.tsv: fit a", "f.tsv: fit b"}
    assert not factors.ambiguous.any(), "factors of two fits have no common scale to differ in"


def test_what_is_said_of_a_model_are_ranges_by_smt(session: Session, tmp_path: Path) -> None:
    session.declared.import_references(written(tmp_path, HS06), form="hepix-hs06")
    session.declared.import_references(written(tmp_path, LINES, "lines"), form="atlas-hs06")
    scores = reference_scores(session.store, ["hs06"])
    xeon = scores["hs06", "Intel Xeon E5-2630 v3"]
    assert xeon.by_smt == {False: (17.375, 17.375), True: (11.0, 11.0)}
    assert xeon.ambiguous
    assert xeon.range == (11.0, 17.375)
    assert xeon.smt_gain == pytest.approx((11 / 17.375, 11 / 17.375))
    assert not scores["hs06", "AMD Opteron 6234"].ambiguous
    assert scores["hs06", "AMD Opteron 6234"].smt_gain is None


def test_importing_again_changes_nothing_and_an_import_can_be_taken_back(
    session: Session, tmp_path: Path
) -> None:
    first = session.declared.import_references(written(tmp_path, HS23), form="hepix-hs23")
    rows = session.tables.references().to_pandas()
    again = session.declared.import_references(written(tmp_path, HS23, "renamed"), form="hepix-hs23")
    assert again.run == first.run
    assert session.tables.references().to_pandas().drop(columns="source").equals(rows.drop(columns="source"))
    session.declared.remove_references(first.run)
    assert session.tables.references().to_pandas().empty
    with pytest.raises(NoResultError):
        session.declared.remove_references(first.run)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("hepix-hs23", ""),
        ("hepix-hs23", "a,b\n1,2\n"),
        ("hepix-hs23", "CPU,SMT enabled,Ncores,Score\n"),
        ("hepix-hs23", 'CPU,SMT enabled,Ncores,Score\n"x,1,2,3\n'),
        ("hepix-hs06", HS23),
        ("hepix-hs06", "| CPU | Score |\n"),
        ("atlas-hs06", "one\ntwo\n"),
        ("atlas-factors", "cputype\nx\n"),
        ("atlas-factors", HS06),
    ],
)
def test_a_file_of_another_form_is_refused_as_a_whole(
    session: Session, tmp_path: Path, form: str, text: str
) -> None:
    with raised(InputError):
        session.declared.import_references(written(tmp_path, text), form=form)
    assert session.tables.references().to_pandas().empty


def test_bytes_that_are_no_text_and_unknown_forms(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "latin"
    path.write_bytes(b"CPU,SMT enabled,Ncores,Score\n\xff\xfe,1,2,3\n")
    with raised(InputError):
        session.declared.import_references(path, form="hepix-hs23")
    with raised(UsageError):
        session.declared.import_references(path, form="hs23")


REAL = [
    ("hepix-hs23", "hepix-scores/HS23scores.csv", 285, 285),
    ("hepix-hs23", "hepix-scores/jobprobes_withHS23.csv", 762, 761),
    ("hepix-hs06", "hepix-scores/HS06_sl6_x86_64_gcc44.md", 128, 128),
    ("atlas-hs06", "atlas-speed-factors/HS06.txt", 81, 30),
    ("atlas-hs06", "atlas-speed-factors/HS06_ref.txt", 92, 43),
    ("atlas-factors", "atlas-speed-factors/cpu_speed_factors_evgen.tsv", 81, 81),
    ("atlas-factors", "atlas-speed-factors/cpu_speed_factors_two_fits.tsv", 154, 154),
]


@pytest.mark.parametrize(("form", "file", "rows_in", "rows_out"), REAL, ids=[real[1] for real in REAL])
def test_real_tables(
    session: Session, shared_data: Path, form: str, file: str, rows_in: int, rows_out: int
) -> None:
    report = session.declared.import_references(shared_data / file, form=form)
    assert (report.rows_in, report.rows_out) == (rows_in, rows_out)
    assert report.rows_in == report.rows_out + sum(report.dropped.values())
    rows = session.tables.references().to_pandas()
    assert rows.cpu_model.notna().all()
    assert (rows.value_per_core_low <= rows.value_per_core).all()
    assert (rows.value_per_core <= rows.value_per_core_high).all()


def test_the_score_per_core_is_the_one_that_hepix_prints(session: Session, shared_data: Path) -> None:
    file = shared_data / "hepix-scores/HS23scores.csv"
    session.declared.import_references(file, form="hepix-hs23")
    printed = sorted(pd.read_csv(file)["Score/Ncores"])
    ours = sorted(session.tables.references().to_pandas().value_per_core)
    assert ours == pytest.approx(printed, abs=0.06)
    gains = [score.smt_gain for score in reference_scores(session.store, ["hs23"]).values() if score.smt_gain]
    assert len(gains) > 20
    assert all(low < 1 for low, _ in gains), "a thread with SMT is slower than a core"


def test_every_form_is_named_on_the_command_line() -> None:
    from esjobs.cli.declared import REFERENCE_FORMS

    assert tuple(source.name for source in REFERENCE_SOURCES) == REFERENCE_FORMS


@pytest.mark.parametrize(
    ("there", "instead"), [("HS06", "CPU"), ("Cores (runs)", "HS06"), (" |  Cores (runs)", "")]
)
def test_a_page_whose_header_lacks_or_repeats_a_column_is_refused(
    tmp_path: Path, there: str, instead: str
) -> None:
    header = "|  CPU  | HS06 |  Cores (runs)  |"
    page = tmp_path / "page.md"
    page.write_text(
        f"{header.replace(there, instead)}\n| --- | --- | --- |\n| E5-2650 | 300 | 16 (HT on) |\n"
    )
    with esjobs.open("duckdb::memory:") as session, pytest.raises(InputError):
        session.declared.import_references(page, form="hepix-hs06")


def test_cores_beyond_any_machine_are_refused_by_row(tmp_path: Path) -> None:
    rows = f"| Intel Xeon E5-2650v2 | 300 | 16 |\n| Intel Xeon E5-2650v2 | 300 | {'9' * 20} |\n"
    page = tmp_path / "page.md"
    page.write_text("|  CPU  | HS06 |  Cores (runs)  |\n| --- | --- | --- |\n" + rows)
    with esjobs.open("duckdb::memory:") as session:
        report = session.declared.import_references(page, form="hepix-hs06")
    assert (report.rows_out, report.dropped) == (1, {"out of range": 1})
