"""APEL's summaries: real months against a second reader, every version, and a gallery of broken records."""

import gzip
from collections import Counter, defaultdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from esjobs.core.errors import InputError, UsageError
from esjobs.publish.publication import read_table
from esjobs.records.ingest.base import Parsed, Reject, parse_fill, settable
from esjobs.records.ingest.formats.apel import APEL
from esjobs.records.jobs.ingest import ingest
from esjobs.schema.accounting import ABOVE_WALL, ACCOUNTING, NO_WALL
from esjobs.schema.catalogue import TABLES
from esjobs.schema.declared import COREPOWER
from esjobs.store.duck.store import DuckStore
from tests.messages import raised

MONTHS = {"2015-02": (279, 90), "2015-09": (279, 100), "2016-08": (329, 128)}
"""Records, and those of sites that declared nothing."""


def parsed(
    path: Path, *fill: str
) -> tuple[list[dict[str, Any]], list[Reject], list[str], list[dict[str, Any]]]:
    """Rows of accounting, refused records, notes, and rows of corepower."""
    pieces: list[Parsed] = list(APEL.parse(path, parse_fill(fill, settable(APEL))))
    rejects = [reject for piece in pieces for reject in piece.rejects]
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for piece in pieces:
        assert piece.table is not None
        rows[piece.table.name] += piece.batch.to_pylist()
    n_refused = sum(reject.n_rows for reject in rejects)
    assert sum(piece.rows_in for piece in pieces) == sum(map(len, rows.values())) + n_refused
    notes = [note for piece in pieces for note in piece.notes]
    return rows[ACCOUNTING.name], rejects, notes, rows[COREPOWER.name]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "month.apel"
    path.write_text(text)
    return path


def records(path: Path) -> list[dict[str, str]]:
    """The records of a real file, by splitting."""
    return [
        dict(line.split(": ", 1) for line in block.strip().splitlines() if not line.startswith("APEL"))
        for block in path.read_text().split("%%")
        if block.strip()
    ]


@pytest.mark.parametrize("month", MONTHS)
def test_a_real_month_is_read_as_a_second_reader_reads_it(shared_data: Path, month: str) -> None:
    path = shared_data / "osg-apel" / f"{month}.apel"
    rows, rejects, _, _ = parsed(path)
    expected = records(path)
    assert rejects == []
    assert (len(rows), sum(row["declared"] is False for row in rows)) == MONTHS[month]
    whole = {
        "processors": "Processors",
        "n_jobs": "NumberOfJobs",
        "wall_s": "WallDuration",
        "cpu_s": "CpuDuration",
        "hs06_wall_s": "NormalisedWallDuration",
        "hs06_cpu_s": "NormalisedCpuDuration",
    }
    for row, cells in zip(rows, expected, strict=True):
        assert {name: row[name] for name in whole} == {name: int(cells[key]) for name, key in whole.items()}
        assert (row["site"] or "None", row["vo"], row["user"]) == (
            cells["Site"],
            cells["VO"],
            cells["GlobalUserName"],
        )
        assert row["month"] == date.fromisoformat(f"{month}-01")
        assert row["last_end"] == datetime.fromtimestamp(int(cells["LatestEndTime"]), UTC)
        assert row["core_s"] == row["wall_s"] * row["processors"]
        assert row["hs23_wall_s"] is None


def test_what_is_wrong_with_real_sums_is_said(shared_data: Path) -> None:
    odd = Counter[tuple[str, str]]()
    for month in MONTHS:
        rows, _, _, _ = parsed(shared_data / "osg-apel" / f"{month}.apel")
        odd.update((row["site"], row["remark"]) for row in rows if row["remark"])
        assert all((row["efficiency"] is None) == (row["remark"] is not None) for row in rows)
        assert all(0 <= row["efficiency"] <= 1 for row in rows if row["efficiency"] is not None)
    assert odd == {
        ("UCSDT2", ABOVE_WALL): 1,
        ("WT2", ABOVE_WALL): 1,
        ("SWT2_CPB", NO_WALL): 1,
        ("uprm-cms", NO_WALL): 1,
        ("UTA_SWT2", NO_WALL): 1,
        ("UColorado_HEP", NO_WALL): 1,
    }
    _, _, notes, _ = parsed(shared_data / "osg-apel" / "2015-02.apel")
    assert "2015-02.apel: sums with no site (their jobs could not be assigned): 1" in notes
    assert [note for note in notes if note.startswith("2015-02.apel: 90 of 279 sums use 12 HS06")]


def test_a_month_whose_wall_times_are_multiplied_by_cores_is_told(shared_data: Path) -> None:
    told = {
        month: [
            note for note in parsed(shared_data / "osg-apel" / f"{month}.apel")[2] if "multiplied" in note
        ]
        for month in MONTHS
    }
    assert {month: len(notes) for month, notes in told.items()} == {"2015-02": 1, "2015-09": 0, "2016-08": 0}
    assert "efficiency is 0.083 for multi-core jobs and 0.723 for single-core jobs" in told["2015-02"][0]


def test_the_corepower_of_sites_is_that_of_their_sums(shared_data: Path) -> None:
    """The table that was in use names the same values, where it is not older than the month."""
    _, _, _, rows = parsed(shared_data / "osg-apel" / "2015-02.apel", "corepower=true")
    declared = {row["name"]: row["corepower"] for row in rows}
    assert len(rows) == len(declared) == 23
    assert declared["AGLT2"] == 9.67
    assert declared["BU_ATLAS_Tier2"] == 9.32
    assert {row["valid_from"] for row in rows} == {datetime(2015, 2, 1, tzinfo=UTC)}
    assert 12.0 not in declared.values()
    in_use = {}
    for line in (shared_data / "osg-apel" / "normal_hepspec.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, value = line.split()[:2]
            in_use[name] = float(value)
    shared = [name for name in declared if name in in_use]
    agreeing = [name for name in shared if abs(declared[name] - in_use[name]) < 0.006 * in_use[name]]
    assert (len(shared), len(agreeing)) == (SHARED, AGREEING)


SHARED, AGREEING = 23, 22
"""Sites in both, and those with the same value; that of USCMS-FNAL-WC1 had changed."""

RECORD = {
    "Site": "A",
    "VO": "atlas",
    "Month": "7",
    "Year": "2018",
    "Processors": "2",
    "NodeCount": "1",
    "WallDuration": "100",
    "CpuDuration": "150",
    "NumberOfJobs": "3",
}


def message(version: str = "APEL-summary-job-message: v0.3", **cells: str | None) -> str:
    lines = [f"{key}: {value}" for key, value in (RECORD | cells).items() if value is not None]
    return "\n".join([version, *lines, "%%", ""])


def one(
    tmp_path: Path, version: str = "APEL-summary-job-message: v0.3", **cells: str | None
) -> dict[str, Any]:
    (row,), rejects, _, _ = parsed(written(tmp_path, message(version, **cells)))
    assert rejects == []
    return row


def test_two_benchmarks_in_one_record(tmp_path: Path) -> None:
    row = one(tmp_path, "APEL-summary-job-message: v0.4", ServiceLevel="{hepspec: 11.4, HEPscore23: 15.3}")
    assert (row["hs06_per_core"], row["hs23_per_core"], row["declared"]) == (11.4, 15.3, True)
    assert (row["hs06_wall_s"], row["hs06_cpu_s"]) == (1140.0, 1710.0)
    assert (row["hs23_wall_s"], row["hs23_cpu_s"]) == pytest.approx((1530.0, 2295.0))
    row = one(
        tmp_path,
        "APEL-normalised-summary-message: v0.4",
        NormalisedWallDuration="{hepspec: 1100, HEPscore23: 1500}",
        NormalisedCpuDuration="{hepspec: 1650, HEPscore23: 2250}",
    )
    assert (row["hs06_per_core"], row["hs23_per_core"], row["hs23_cpu_s"]) == (11.0, 15.0, 2250.0)
    row = one(tmp_path, NormalisedWallDuration="1200", ServiceLevel="{HEPscore23: 15.0}")
    assert (row["hs06_per_core"], row["hs23_per_core"], row["declared"]) == (12.0, 15.0, True)


def test_older_versions(tmp_path: Path) -> None:
    row = one(tmp_path, "APEL-summary-job-message: v0.2", ServiceLevelType="HEPSPEC", ServiceLevel="9.5")
    assert (row["hs06_per_core"], row["efficiency"]) == (9.5, 0.75)
    text = message("APEL-summary-job-message: v0.2", ServiceLevelType="Si2k", ServiceLevel="2400")
    (row,), _, notes, _ = parsed(written(tmp_path, text))
    assert (row["hs06_per_core"], row["declared"]) == (None, None)
    assert "month.apel: ignored scores of Si2k; only HS06 and HEPscore23 are read" in notes


def test_what_a_message_leaves_open_is_missing(tmp_path: Path) -> None:
    row = one(tmp_path, Processors="0", NodeCount="None", VO="None", GlobalUserName="")
    assert (row["processors"], row["nodes"], row["vo"], row["user"]) == (None, None, None, None)
    assert (row["core_s"], row["efficiency"], row["remark"]) == (None, None, "no cores")


def test_a_key_without_a_blank_and_a_last_record_without_an_end(tmp_path: Path) -> None:
    text = message(GlobalUserName="x").replace("GlobalUserName: x", "GlobalUserName:/DC=ch/CN=a: b")
    (row,), _, _, _ = parsed(written(tmp_path, text.removesuffix("%%\n")))
    assert row["user"] == "/DC=ch/CN=a: b"


@pytest.mark.parametrize(
    ("cells", "reason", "field"),
    [
        ({"Site": None}, "missing site", "site"),
        ({"WallDuration": None}, "missing wallduration", "wallduration"),
        ({"NumberOfJobs": "None"}, "missing numberofjobs", "numberofjobs"),
        ({"WallDuration": "-1"}, "out of range", "wallduration"),
        ({"WallDuration": "1e19"}, "out of range", "wallduration"),
        ({"CpuDuration": "nan"}, "not a number", "cpuduration"),
        ({"CpuDuration": "many"}, "not a number", "cpuduration"),
        ({"NumberOfJobs": "1.5"}, "not a number", "numberofjobs"),
        ({"Month": "13"}, "out of range", "month"),
        ({"Year": "15"}, "out of range", "year"),
        ({"LatestEndTime": "1e15"}, "out of range", "latestendtime"),
        ({"ServiceLevel": "{hepspec: 11"}, "not a number", "servicelevel"),
        ({"ServiceLevel": "{hepspec: }"}, "missing servicelevel", "servicelevel"),
        ({"Site": "A\nSite: B"}, "bad record", ""),
        ({"Site": "A\nnonsense"}, "bad record", ""),
    ],
)
def test_broken_records_cost_themselves(
    tmp_path: Path, cells: dict[str, str | None], reason: str, field: str
) -> None:
    text = message() + message("", **cells) + message("")
    rows, (reject,), _, _ = parsed(written(tmp_path, text))
    assert len(rows) == 2
    assert (reject.reason, reject.field) == (reason, field)
    assert reject.line == 13


def test_a_record_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "month.apel"
    path.write_bytes(message(Site="SITE").encode().replace(b"SITE", b"\xff\xfeA"))
    rows, (reject,), _, _ = parsed(path)
    assert (rows, reject.reason) == ([], "bad record")


@pytest.mark.parametrize(
    "text",
    [
        "APEL-individual-job-message: v0.3\nSite: A\n%%\n",
        "site,vo\nA,atlas\n",
        '{"Site": "A"}\n',
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str) -> None:
    with raised(InputError):
        parsed(written(tmp_path, text))


def test_an_empty_message_is_no_rows(tmp_path: Path) -> None:
    rows, rejects, notes, _ = parsed(written(tmp_path, "APEL-summary-job-message: v0.3\n"))
    assert (rows, rejects, notes) == ([], [], ["month.apel: no rows"])


def test_packed_messages(tmp_path: Path) -> None:
    path = tmp_path / "month.apel.gz"
    path.write_bytes(gzip.compress(message().encode()))
    assert len(parsed(path)[0]) == 1


def test_a_load_of_sums_is_no_load_of_jobs(shared_data: Path) -> None:
    store = DuckStore(None, tables=TABLES)
    files = [shared_data / "osg-apel" / "2015-02.apel"]
    now = datetime(2026, 3, 1, tzinfo=UTC)
    fill = parse_fill(["corepower=yes"], settable(APEL))
    report = ingest(lambda: store, APEL, files, fill, now=now)
    assert (report.counts["accounting stored"], report.counts["corepower stored"]) == (279, 23)
    assert store.span().jobs == 0
    assert read_table(store, ACCOUNTING).num_rows == 279
    with raised(UsageError):
        parse_fill(["site=A"], settable(APEL))
    store.close()
