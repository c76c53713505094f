"""Stories of many jobs at once, and their pages in a folder: as of each alone, whatever its name."""

import re
from pathlib import Path

import esjobs
from esjobs.issues.one_job import job_stories
from esjobs.render.job_pages import FOLDER
from tests.issues.conftest import HOSTILE


def test_stories_together_are_those_of_each(detected: esjobs.Session) -> None:
    jobs = [("c", job) for job in ("stops", "lazy", "nope", "short")]
    told = {story.job_id: story for story in job_stories(detected.store, jobs, points=60)}
    assert "nope" not in told
    assert len(told) >= 2
    for name, story in told.items():
        alone = detected.job(name)
        assert (story.record, story.issues) == (alone.record, alone.issues)
        # nothing is stored: the page of one job computes its scores
        assert story.scores is None
        assert story.footprints == alone.footprints
        assert sorted(map(str, story.measures)) == sorted(map(str, alone.measures))
        assert [plot.metric for plot in story.plots] == [plot.metric for plot in alone.plots]
    assert max(len(plot.mean) for plot in told["stops"].plots) <= 60


def test_hostile_names_stay_in_the_folder(hostile: esjobs.Session, tmp_path: Path) -> None:
    folder = hostile.export.html(tmp_path / "out").parent
    names = {path.name for path in (folder / FOLDER).iterdir()}
    assert names
    assert all(re.fullmatch(r"[A-Za-z0-9-]+\.html", name) for name in names)
    (page,) = [path for path in (folder / FOLDER).iterdir() if "&lt;script&gt;" in path.read_text()]
    assert "<script" not in page.read_text()
    assert HOSTILE not in page.read_text()
