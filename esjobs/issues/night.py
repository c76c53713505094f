"""Tags and issues of the day's jobs, as a step of the night; also of days before it whose jobs changed."""

from esjobs.core.identity import content_id
from esjobs.core.query import Days
from esjobs.issues.detect import detect, marks_of
from esjobs.issues.in_force import in_force
from esjobs.issues.settings import DetectSettings
from esjobs.publish.publication import read_table
from esjobs.records.night import NightAccount, NightStep, NightWork, late_days
from esjobs.schema.issues import ISSUE_DAYS


def detect_night(work: NightWork) -> NightAccount:
    """Judge the jobs of the night, and those of the days before it with late records or series."""
    if not work.settings.section(DetectSettings).nightly:
        return NightAccount(notes=("left out: [issues] nightly = false",))
    window = late_days(work)
    detect(work.store, in_force(work.settings), window)
    # what stands there, however much of it was made now: a night that is run again has the same account
    columns = ["n_jobs", "n_with_series", "n_issues"]
    days = read_table(work.store, ISSUE_DAYS, [Days.of_window(window)], columns).to_pylist()
    jobs, watched, issues = (sum(day[name] or 0 for day in days) for name in columns)
    return NightAccount(jobs, issues, (f"days {window}", f"{watched} jobs with series"))


def detect_inputs(work: NightWork) -> str:
    """A digest of the jobs and series of these days, and of what they are judged by."""
    if not work.settings.section(DetectSettings).nightly:
        return "left out"
    marks = marks_of(work.store, in_force(work.settings), late_days(work))
    return content_id({str(day): mark for day, mark in marks.items()})


DETECT = NightStep("detect", detect_night, inputs=detect_inputs, idle=True)
