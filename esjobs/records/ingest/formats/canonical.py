"""The format ``jobs``: the catalogue's own columns and units, as ``esjobs export jobs`` writes them.

An empty cell is missing, and so is text of nothing but blanks; all other text is kept to the letter.
"""

from esjobs.core.fields import JOB_FIELDS
from esjobs.core.words import COUNTER_COLUMN
from esjobs.records.ingest.reading.batches import LayoutSource
from esjobs.records.ingest.reading.layout import Column, Layout

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

JOBS = LayoutSource(LAYOUT, "jobs", with_events=None)
"""The format ``jobs``; columns that are computed or unknown are ignored."""
