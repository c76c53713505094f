"""Which earlier run is compared with the latest one: windows of equal length, and calendar months."""

from typing import Any
from unittest.mock import patch

import pytest

from esjobs.core.errors import NoResultError
from esjobs.core.window import Window
from esjobs.publish.finding import run_before
from esjobs.publish.stored import StoredRun
from esjobs.schema.speed import SPEED

STEP = SPEED.steps[0]


def run_of(window: str) -> StoredRun:
    span = Window.parse(window)
    return StoredRun(SPEED, window, span, {}, {STEP: span.end}, span.end)


@pytest.mark.parametrize(
    ("latest", "others", "found"),
    [
        ("2026-11", ["2026-10", "2026-09"], "2026-10"),
        ("2026-03", ["2026-02", "2026-01-01/2026-01-31"], "2026-02"),
        ("2026-11-02/2026-12-01", ["2026-10"], None),
        ("2026-11-08/2026-11-15", ["2026-11-01/2026-11-08", "2026-10"], "2026-11-01/2026-11-08"),
        # a month is as long as 31 days before it, too
        ("2026-10", ["2026-08-31/2026-10-01"], "2026-08-31/2026-10-01"),
    ],
)
def test_the_run_before(latest: str, others: list[str], found: str | None) -> None:
    store: Any = None
    runs = [run_of(each) for each in (latest, *others)]
    with patch("esjobs.publish.finding.stored_runs", return_value=runs):
        if found is None:
            with pytest.raises(NoResultError):
                run_before(store, SPEED, runs[0])
        else:
            assert run_before(store, SPEED, runs[0]).run == found
