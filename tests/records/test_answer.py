"""Answers: rows, notes, and the forms that they take."""

import pyarrow as pa
import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import UsageError
from esjobs.records.answer import Answer

ROWS = pa.table({"name": ["a", "b"], "k": [1.5, None], "n": [1, None]})


class Streams:
    """Counts how often a stream is opened."""

    def __init__(self) -> None:
        self.opened = 0

    def __call__(self) -> pa.RecordBatchReader:
        self.opened += 1
        return ROWS.to_reader(max_chunksize=1)


def test_rows_in_every_form() -> None:
    answer = Answer(ROWS, ("one note",), title="two rows")
    assert answer.to_arrow().equals(ROWS)
    assert list(answer) == ROWS.to_pylist()
    assert len(answer) == 2
    frame = answer.to_pandas()
    assert frame.attrs["notes"] == ["one note"]
    assert str(frame.dtypes["n"]) == "Int64"
    html = answer._repr_html_()
    assert "<table" in html
    assert "one note" in html
    assert "two rows" in repr(answer)


def test_a_stream_is_opened_at_once_and_read_when_used() -> None:
    streams = Streams()
    answer = Answer(streams)
    assert streams.opened == 1
    assert [batch.num_rows for batch in answer.batches()] == [1, 1]
    assert streams.opened == 1
    assert answer.batches().read_all().equals(ROWS)
    assert streams.opened == 2
    assert answer.rows.num_rows == len(answer) == 2
    assert answer.batches().read_all().num_rows == 2
    assert streams.opened == 3, "rows that were read once are not read again"


def test_an_answer_without_a_chart_says_so() -> None:
    with pytest.raises(UsageError):
        Answer(ROWS).plot()


def test_html_of_hostile_text_is_escaped() -> None:
    html = Answer(pa.table({"a": ["<script>"]}), ("<b>",), title="<i>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;b&gt;" in html


def test_a_session_completes_to_at_most_thirty_names() -> None:
    assert len([name for name in dir(Session) if not name.startswith("_")]) <= 30


def test_tables_are_found_by_name_attribute_and_completion(session: esjobs.Session) -> None:
    assert "flags" in dir(session.tables)
    assert "flags" in list(session.tables)
    assert session.tables["loads"].rows.equals(session.tables.loads().rows)
    with pytest.raises(AttributeError, match="flagz"):
        _ = session.tables.flagz
    with pytest.raises(AttributeError):
        _ = session.weather  # type: ignore[attr-defined]
