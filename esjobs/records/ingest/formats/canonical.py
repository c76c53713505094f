"""The format ``jobs``: the catalogue's own columns and units, as ``esjobs export jobs`` writes them.

An empty cell is missing, and so is text of nothing but blanks; all other text is kept to the letter.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from esjobs.core.fields import JOB_FIELDS
from esjobs.core.words import COUNTER_COLUMN
from esjobs.records.ingest.base import Parsed
from esjobs.records.ingest.reading.batches import parse_file
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.layout import Column, Layout
from esjobs.records.ingest.reading.opening import require_readable
from esjobs.records.ingest.validate import Context

LAYOUT = Layout(
    "jobs",
    tuple(
        Column(
            known.name,
            (known.name,),
            known.type,
            bounded=known.bounded,
            members=COUNTER_COLUMN if known.name == "counters" else "",
        )
        for known in JOB_FIELDS
    ),
)


@dataclass(frozen=True)
class JobsSource:
    """CSV, JSON lines or Parquet with canonical columns; columns that are computed or unknown are ignored."""

    name: str = "jobs"
    default_source: str = "jobs"

    def accept(self, file: Input) -> None:
        """Raise unless the common readers can read what begins like this."""
        require_readable(file)

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Stream one file; see :class:`esjobs.records.ingest.base.Source`."""
        return parse_file(file, LAYOUT, Context(file.name, self.default_source, fill))
