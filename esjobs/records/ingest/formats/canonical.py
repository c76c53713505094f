"""The format ``jobs``: the catalogue's own columns and units, as ``esjobs export jobs`` writes them.

An empty cell is missing, and so is text of nothing but blanks; all other text is kept to the letter.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from esjobs.core.fields import JOB_FIELDS
from esjobs.core.words import COUNTER_COLUMN
from esjobs.records.ingest.base import Parsed
from esjobs.records.ingest.reading.batches import parse_file
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.layout import Column, Layout
from esjobs.records.ingest.reading.opening import OfText
from esjobs.records.ingest.validate import Context

LAYOUT = Layout(
    "jobs",
    tuple(
        Column(
            each.name,
            (each.name,),
            each.type,
            bounded=each.bounded,
            members=COUNTER_COLUMN if each.name == "counters" else "",
        )
        for each in JOB_FIELDS
    ),
)


@dataclass(frozen=True)
class JobsSource(OfText):
    """CSV, JSON lines or Parquet with canonical columns; columns that are computed or unknown are ignored."""

    name: str = "jobs"
    default_source: str = "jobs"
    with_events: ClassVar[None] = None

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        return parse_file(file, LAYOUT, Context(file.name, self.default_source, fill))
