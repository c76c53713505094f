"""Everything that users of a store can see, and whether two such views are the same."""

import pandas as pd

from esjobs.api.session import Session
from esjobs.core.errors import NoResultError

RESULTS = ("factors", "fits", "components", "lines", "flags", "fit_summaries")
_CLOCK = {"at", "seconds", "loaded_at", "imported_at"}
_COUNTS = {"stored", "updated", "jobs_changed"}
"""A load that was cut off after its jobs were stored counts them as updated the next time, without knowing
which of them it had changed."""

Contents = dict[str, pd.DataFrame]


def contents(session: Session) -> Contents:
    """Everything that can be seen, without what the clock says."""
    found = {"jobs": session.jobs().to_pandas().sort_values("job_id", ignore_index=True)}
    for name in ("buckets", "day_books", "loads", "rejects", "runs", *RESULTS):
        try:
            frame = session.tables.read(name).to_pandas()
        except NoResultError:
            frame = pd.DataFrame()
        order = [column for column in frame.columns if column not in _CLOCK | _COUNTS]
        found[name] = frame[order].sort_values(order[:6], ignore_index=True)
    found["steps"] = (
        found["runs"][found["runs"]["step"] != "aggregate"] if len(found["runs"]) else found["runs"]
    )
    return found


def same(left: pd.DataFrame, right: pd.DataFrame) -> bool:
    """Equal up to the order in which floats are summed."""
    try:
        pd.testing.assert_frame_equal(
            left.reset_index(drop=True), right.reset_index(drop=True), rtol=1e-9, check_like=True
        )
    except AssertionError:
        return False
    return True


def at(found: Contents, before: Contents, after: Contents, names: tuple[str, ...]) -> str:
    """Whether these tables are all as before or all as after; where both hold, ``before``."""
    for word, expected in (("before", before), ("after", after)):
        if all(same(found[name], expected[name]) for name in names):
            return word
    raise AssertionError(f"neither before nor after: {', '.join(names)}")
