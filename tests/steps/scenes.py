"""Stores before an action, what they show before and after it, and whether a disturbed one is whole."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import esjobs
from esjobs.api.session import Session
from tests.steps.victims import Action, finish, start
from tests.steps.visible import RESULTS, Contents, at, contents, same


def opened(store: Path) -> Session:
    """A session on the embedded store."""
    return esjobs.open(f"duckdb:{store}")


@dataclass(frozen=True)
class Scene:
    """A store before an action, and what it holds before and after it."""

    store: Path
    action: Action
    before: Contents
    after: Contents
    seconds: float

    def copy(self, folder: Path) -> Path:
        return Path(shutil.copy(self.store, folder / "jobs.duckdb"))


def scene(store: Path, action: Action, folder: Path) -> Scene:
    with opened(store) as session:
        before = contents(session)
    undisturbed = Path(shutil.copy(store, folder / f"{action[0]}.duckdb"))
    process = start(undisturbed, action)
    began = time.perf_counter()
    assert finish(process) == 0
    seconds = time.perf_counter() - began
    with opened(undisturbed) as session:
        after = contents(session)
    undisturbed.unlink()
    return Scene(store, action, before, after, seconds)


def assert_whole(scene: Scene, found: Contents) -> str:
    """Every group of tables that changes together is as before or as after; where the jobs stand."""
    before, after = scene.before, scene.after
    jobs = at(found, before, after, ("jobs",))
    at(found, before, after, ("buckets", "day_books"))
    at(found, before, after, (*RESULTS, "steps"))
    if scene.action[0] == "ingest":
        complete = found["loads"][found["loads"]["state"] == "complete"].reset_index(drop=True)
        if at({"loads": complete}, before, after, ("loads",)) == "after":
            assert jobs == "after"
            assert same(found["rejects"], after["rejects"])
        else:
            assert same(found["rejects"], before["rejects"])
            assert len(found["loads"]) - len(complete) in (0, 1)
    elif scene.action[0] == "undo":
        at(found, before, after, ("loads", "rejects"))
    else:
        assert same(found["loads"], before["loads"])
    return jobs


def assert_again_completes(scene: Scene, store: Path) -> None:
    """The same action once more gives what an undisturbed one gives, and leaves nothing behind."""
    process = start(store, scene.action)
    code = finish(process)
    with opened(store) as session:
        found = contents(session)
        if scene.action[0] == "undo" and code != 0:  # it was done before the kill: there is no such load
            code = 0
            assert same(found["loads"], scene.after["loads"])
        assert code == 0
        for name, frame in scene.after.items():
            # rows that the first attempt had put are unchanged for the second
            left_out = ["unchanged"] if name == "loads" else []
            assert same(found[name].drop(columns=left_out), frame.drop(columns=left_out)), name
        session.store.sweep()
        assert session.store.sweep() == 0
