"""Nightly step: issues of the night's jobs, and of earlier days that changed."""

from esjobs.core.identity import content_id
from esjobs.core.query import Days
from esjobs.issues.detect import detect, fingerprints_of
from esjobs.issues.in_force import in_force
from esjobs.issues.settings import DetectSettings
from esjobs.publish.publication import read_table
from esjobs.records.night import NightAccount, NightStep, NightWork, late_days, left_out, with_backfill
from esjobs.schema.issues import ISSUE_DAYS


def detect_night(work: NightWork) -> NightAccount:
    """Judge jobs of the night of earlier days with late records or series, and of the backfill."""
    windows = with_backfill(work, late_days(work))
    # what stands there, however much of it was made now: a night that is run again has the same account
    columns = ["n_jobs", "n_with_series", "n_issues"]
    days: list[dict[str, int | None]] = []
    for window in windows:
        detect(work.store, in_force(work.settings), window)
        days += read_table(work.store, ISSUE_DAYS, [Days.of_window(window)], columns).to_pylist()
    jobs, watched, issues = (sum(day[name] or 0 for day in days) for name in columns)
    named = ", ".join(map(str, windows))
    return NightAccount(jobs, issues, (f"days {named}", f"{watched} jobs with series"))


def detect_inputs(work: NightWork) -> str:
    """Return a digest of jobs, series and rules of the night's days."""
    judging = in_force(work.settings)
    marks: dict[str, str] = {}
    for window in with_backfill(work, late_days(work)):
        marks |= {str(day): mark for day, mark in fingerprints_of(work.store, judging, window).items()}
    return content_id(marks)


def _left_out(work: NightWork) -> tuple[str, ...]:
    return left_out(work, work.settings.section(DetectSettings).nightly, "issues")


DETECT = NightStep("detect", detect_night, inputs=detect_inputs, off=_left_out, idle=True)
