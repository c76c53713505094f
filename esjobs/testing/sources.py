"""Contract of sources; the fixtures ``source`` and ``sample`` name one and its file (:mod:`esjobs.testing`).

``sample`` is a file that the source reads without refusing a row.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

import esjobs
from esjobs.core.arrow import PUT_SCHEMA, given_schema
from esjobs.core.errors import InputError
from esjobs.records.ingest.base import Parsed, Source, require_source, settable
from esjobs.records.ingest.reading.inputs import Input


def pieces(source: Source, file: Input, fill: Mapping[str, object] | None = None) -> Iterator[Parsed]:
    """Yield the pieces of a file, each checked: its schema, its bytes, and that it accounts for every row."""
    for piece in source.parse(file, fill or {}):
        assert piece.batch.schema == (PUT_SCHEMA if piece.table is None else given_schema(piece.table))
        piece.batch.validate(full=True)
        # every row is read or rejected with a reason
        assert piece.rows_in == piece.batch.num_rows + sum(reject.n_rows for reject in piece.rejects)
        assert all(reject.reason and reject.file == file.name for reject in piece.rejects)
        yield piece


def tables(parsed: Iterator[Parsed]) -> dict[str, list[dict[str, object]]]:
    """Return the rows of pieces by table."""
    rows: dict[str, list[dict[str, object]]] = {}
    for piece in parsed:
        rows.setdefault("jobs" if piece.table is None else piece.table.name, []).extend(
            piece.batch.to_pylist()
        )
    return rows


def test_it_has_the_members_of_a_source(source: Source) -> None:
    assert require_source(source) is source
    assert re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", source.name)


def test_the_sample_is_read_without_refusals(source: Source, sample: Path) -> None:
    parsed = list(pieces(source, sample))
    assert sum(piece.batch.num_rows for piece in parsed) > 0
    assert [reject for piece in parsed for reject in piece.rejects] == []


def test_reading_again_gives_the_same_rows(source: Source, sample: Path) -> None:
    assert tables(pieces(source, sample)) == tables(pieces(source, sample))


def test_jobs_name_their_origin_and_source(source: Source, sample: Path) -> None:
    jobs = tables(pieces(source, sample)).get("jobs", [])
    assert {row["origin_file"] for row in jobs} <= {sample.name}
    assert all(
        row[name] is not None for row in jobs for name in ("source", "job_id", "end_time", "origin_line")
    )


def test_a_fill_fills_what_is_missing_and_nothing_else(source: Source, sample: Path) -> None:
    if "user" not in {field.name for field in settable(source)}:
        pytest.skip("the field 'user' cannot be set")
    plain = tables(pieces(source, sample)).get("jobs", [])
    filled = tables(pieces(source, sample, {"user": "filled"})).get("jobs", [])
    assert filled == [row | {"user": row["user"] or "filled"} for row in plain]


def test_a_load_is_stored_once_and_taken_back(source: Source, sample: Path) -> None:
    """Every row of the sample is stored, reading again stores none, undoing the load leaves nothing."""
    n_rows = sum(piece.rows_in for piece in pieces(source, sample))
    with esjobs.open("duckdb::memory:") as session:
        first = session.ingest(source=source, files=[sample])
        assert (first.rows_in, first.n_dropped) == (n_rows, 0)
        again = session.ingest(source=source, files=[sample])
        # the id of a load is a hash of its content: the same file is the same load
        assert (again.run, again.counts.get("stored", 0)) == (first.run, 0)
        session.undo(first.run)
        assert session.store.span().jobs == 0


@pytest.mark.parametrize("damage", ["empty", "cut", "binary", "other text"])
def test_a_damaged_file_is_refused_or_its_rows_are(
    source: Source, sample: Path, tmp_path: Path, damage: str
) -> None:
    """Whatever is in a file costs an :class:`InputError` or refused rows, never another exception."""
    content = sample.read_bytes()
    damaged = {
        "empty": b"",
        # in the middle of a line, a block, or a compressed stream
        "cut": content[: len(content) // 2],
        "binary": bytes(range(256)) * 8,
        "other text": "ein anderer Text: ü\n\n,;|\t{[<\n".encode(),
    }
    folder = tmp_path / "damaged"
    folder.mkdir()
    file = folder / sample.name
    file.write_bytes(damaged[damage])
    with suppress(InputError):
        list(pieces(source, file))
