"""Words and limits stand in one place: the numerical library and the settings agree with it."""

from pathlib import Path

import fitters
from esjobs.core import words
from esjobs.speed.settings import FitSettings
from fitters.line.deviations import SURE
from fitters.line.line import USUAL_LIMIT

ROOT = Path(__file__).parents[2]


def test_the_library_judges_by_the_same_limits() -> None:
    """It stands alone and imports nothing of esjobs, so that its numbers are its own."""
    assert SURE == words.SURE
    assert USUAL_LIMIT == words.DEVIATION_LIMIT == FitSettings().deviation_limit
    many = fitters.fit_line([1.0] * 12, [0.01] * 11 + [0.2], [1.0] * 12)
    assert many.points.verdict[0] == "ok"


def test_the_limits_of_verdicts_are_written_once() -> None:
    for folder in ("esjobs", "dashboards"):
        for file in (ROOT / folder).rglob("*.py"):
            if file.name != "words.py":
                assert "1.645" not in file.read_text("utf-8"), file


def test_people_read_one_word_for_each_verdict() -> None:
    assert [words.status_shown(verdict, None) for verdict in words.VERDICTS] == [
        words.CANDIDATE,
        *words.VERDICTS[1:],
    ]
    assert words.status_shown("deviates", True) == words.CONFIRMED
    assert set(words.JUDGED) < set(words.VERDICTS)
