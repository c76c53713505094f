"""Answer of a session: rows with the notes that belong to them."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.extras import require
from esjobs.core.frames import frame_of
from esjobs.publish.stored import StoredRun

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


class Answer:
    """Rows of an answer with their notes; iterating yields one dictionary per row, missing values are None.

    ``notes``: one sentence each. ``run``: the run of the rows, None if they belong to none. ``details``: the
    object behind the rows, where it holds more. ``rows`` may be a function that opens a stream: rows are then
    read when used, and :meth:`batches` holds one batch at a time.
    """

    def __init__(
        self,
        rows: "pa.Table | Callable[[], pa.RecordBatchReader]",
        notes: tuple[str, ...] = (),
        *,
        title: str = "",
        run: StoredRun | None = None,
        details: Any = None,
        chart: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self._rows = rows
        # opened now, so that a wrong question fails in the call that asks it
        self._first = None if isinstance(rows, pa.Table) else rows()
        self.notes = notes
        self.title = title
        self.run = run
        self.details = details
        self._chart = chart

    @cached_property
    def rows(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self._rows if isinstance(self._rows, pa.Table) else self.batches().read_all()

    def batches(self) -> pa.RecordBatchReader:
        """Stream the rows as Arrow batches; each call reads them anew."""
        if isinstance(self._rows, pa.Table):
            return self._rows.to_reader()
        # read once already, by the cached property
        if "rows" in vars(self):
            return self.rows.to_reader()
        # the stream that was opened for its errors serves the first reading
        first, self._first = self._first, None
        return self._rows() if first is None else first

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self.rows

    def to_pandas(self) -> "pd.DataFrame":
        """All rows as a typed frame; ``attrs`` has the notes. Missing numbers are NaN or ``pd.NA``."""
        frame = frame_of(self.rows)
        frame.attrs["notes"] = list(self.notes)
        return frame

    def plot(self) -> "alt.TopLevelMixin":
        """Draw the answer for a notebook. Raises :class:`UsageError` for an answer without a chart."""
        if self._chart is None:
            raise UsageError("this answer has no chart; plot its rows yourself: answer.to_pandas()")
        altair: Any = require("altair", extra="plots", needed_by="a chart in a notebook")
        chart: alt.TopLevelMixin = altair.Chart.from_dict(dict(self._chart()))
        return chart

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            yield from batch.to_pylist()

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __repr__(self) -> str:
        lines = filter(None, [self.title, repr(self.to_pandas()), *self.notes])
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        caption = f"<p><b>{escape(self.title)}</b></p>" if self.title else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"{caption}{frame_of(self.rows)._repr_html_()}{notes}"  # type: ignore[operator]
