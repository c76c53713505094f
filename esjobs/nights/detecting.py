"""Tags and issues of the day's jobs, as a step of the night; also of days before it whose jobs changed."""

from datetime import timedelta

from esjobs.core.identity import content_id
from esjobs.core.window import Window
from esjobs.detect.detect import detect, marks_of
from esjobs.detect.in_force import in_force
from esjobs.nights.work import NightAccount, NightWork


def detect_night(work: NightWork) -> NightAccount:
    """Judge the jobs of the night, and those of the days before it with late records or series."""
    if not work.settings.detect.nightly:
        return NightAccount(notes=("left out: [detect] nightly = false",))
    report = detect(work.store, in_force(work.settings), _days(work))
    told = tuple(f"{count} {name}" for name, count in report.counts.items())
    return NightAccount(report.rows_in, report.rows_out, told)


def detect_inputs(work: NightWork) -> str:
    """A digest of the jobs and series of these days, and of what they are judged by."""
    if not work.settings.detect.nightly:
        return "left out"
    marks = marks_of(work.store, in_force(work.settings), _days(work))
    return content_id({str(day): mark for day, mark in marks.items()})


def _days(work: NightWork) -> Window:
    return Window.of_days(work.night - timedelta(days=work.settings.nights.late_days), work.night)
