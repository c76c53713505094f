"""Rows that panels of a page share: read once, and no more of them than a browser should hold."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dashboards.pages import PAGES
from dashboards.spec import OWN, IndexFields, JobsIndex, Page, Panel, View, stacked
from dashboards.targets.html.pages import pools
from dashboards.targets.html.pages.pools import fields_of, pools_of
from dashboards.view.rows import Row
from esjobs.core.query import Sum

EFFICIENCY = next(page for page in PAGES if page.id == "efficiency")


class Counting:
    """A store of so many groups, one for each value of each key."""

    def __init__(self, values: int) -> None:
        self.values = values
        self.asked: list[View] = []

    def rows(self, view: View, columns: Sequence[str]) -> list[Row]:
        """No rows."""
        del view, columns
        return []

    def groups(self, view: View, most: int | None = None) -> list[Row] | None:
        """As many groups as the keys have values together."""
        self.asked.append(view)
        number = self.values ** len(view.by)
        if most is not None and number > most:
            return None
        names = [metric.name for metric in view.metrics]
        columns = [*view.by, *([view.over] if view.over else []), *names]
        return [dict.fromkeys(columns, place) for place in range(number)]


def test_panels_about_the_same_jobs_share_their_groups() -> None:
    store = Counting(2)
    found, of_panel = pools_of(EFFICIENCY, store, OWN)
    assert of_panel["efficiency-by-queue"] is of_panel["efficiency-wasted"] is of_panel["efficiency-by-user"]
    assert dict(of_panel["efficiency-by-queue"].choices) == {
        name: name for name in ("queue", "processing_type", "project", "user", "state")
    }
    assert len({pool.name for pool in found}) == len(found)


def test_of_too_many_groups_a_panel_gives_up_the_last_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "MOST_GROUPS", 1000)
    found, of_panel = pools_of(EFFICIENCY, Counting(10), OWN)
    assert [name for name, _ in of_panel["efficiency-by-queue"].choices] == [
        "queue",
        "processing_type",
        "project",
    ]
    assert [name for name, _ in of_panel["efficiency-by-user"].choices] == ["queue", "processing_type"]
    assert all(len(pool.rows) <= 1000 for pool in found)


def test_names_alone_are_kept_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "MOST_GROUPS", 5)
    _, of_panel = pools_of(EFFICIENCY, Counting(10), OWN)
    assert of_panel["efficiency-by-queue"].view.by == ("queue",)
    assert len(of_panel["efficiency-by-queue"].rows) == 10


def test_a_panel_that_jobs_cannot_answer_asks_nothing() -> None:
    lacking = JobsIndex(
        "archive", "end_time", {name: known for name, known in OWN.columns.items() if name != "queue_s"}
    )
    store = Counting(2)
    _, of_panel = pools_of(EFFICIENCY, store, lacking)
    assert "efficiency-waiting" not in of_panel
    summed = {field for view in store.asked for each in view.metrics for field in fields_of(each)}
    assert "cpu_s" in summed
    assert "queue_s" not in summed


def test_a_filter_that_jobs_do_not_know_is_none() -> None:
    lacking = JobsIndex("archive", "end_time", {**OWN.columns, "project": IndexFields(())})
    _, of_panel = pools_of(EFFICIENCY, Counting(2), lacking)
    assert "project" not in dict(of_panel["efficiency-by-queue"].choices)


def test_one_name_of_two_sums_is_refused_not_mixed_up() -> None:
    """Panels that share their groups share the sums in them, by name."""
    panel = Panel("a", "", "weighted", "", View("scores", by=("user",), metrics=(Sum("node_h", "n"),)))
    other = replace(panel, id="b", view=replace(panel.view, metrics=(Sum("core_h", "n"),)))
    page = Page("p", "", "", stacked((4, ((panel, 24), (other, 24)))))
    with pytest.raises(ValueError, match="two metrics 'n'"):
        pools_of(page, Counting(2), OWN)
