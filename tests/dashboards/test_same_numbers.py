"""One number everywhere: lost and wasted core-hours, failure rates, tasks, beside SQL written by hand."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import esjobs
from dashboards.pages import HEADLINE
from dashboards.pages.efficiency import ENDS, LOST_HOURS, WAITING, WASTED, WASTED_BY_USER
from dashboards.pages.people import PEOPLE
from dashboards.pages.site import BY_TYPE
from dashboards.panels import REPORT
from dashboards.spec import Panel, table
from dashboards.targets.vegalite.charts import from_rows
from dashboards.view.ask import query_rows as asked_of_store
from esjobs.api.session import Session
from tests.dashboards.drawn import svg, written

FAILED = "('failed', 'timeout', 'out_of_memory', 'node_fail')"
LOST = f"coalesce(sum(wall_s * cores) filter (state in {FAILED}), 0) / 3600"
WASTE = "sum(wall_s * cores - cpu_s) / 3600"


@pytest.fixture(scope="module")
def demo(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The demo."""
    copied = shutil.copy(demo_folder / "demo.duckdb", tmp_path_factory.mktemp("same"))
    with esjobs.open(f"duckdb:{copied}") as session:
        yield session


def by_hand(demo: Session, key: str, number: str) -> dict[str, float]:
    """A number of jobs per name, by SQL."""
    rows = demo.sql(f"select {key} as name, {number} as number from jobs group by all").to_pandas()  # noqa: S608 - ours
    return dict(zip(rows["name"], rows["number"], strict=True))


def asked(demo: Session, by: str, metric: str) -> dict[str, float]:
    rows = demo.query([by], [metric]).to_pandas()
    return dict(zip(rows[by], rows[metric], strict=True))


def drawn(demo: Session, panel: Panel) -> dict[str, str]:
    """What stands behind the marks of a panel, by the name of each."""
    rows = [
        {name: value for name, value in row.items() if isinstance(value, str | int | float | None)}
        for row in asked_of_store(demo.store, panel.view, method=HEADLINE)
    ]
    picture = svg({**from_rows(panel), "datasets": {"rows": rows}})
    axes = [group for group in picture.iter() if "role-axis-label" in group.get("class", "").split()]
    names = {text.text for group in axes for text in group.iter() if text.text}
    known = [name for name in names if name in {row[panel.entry("label").column] for row in rows}]
    heights = {name: _height(picture, name) for name in known}
    numbers = written(picture, "numbers")
    assert len(numbers) == len(known)
    places = sorted(_heights_of(picture))
    return dict(zip(sorted(known, key=lambda name: heights[name]), [text for _, text in places], strict=True))


def _height(picture: Any, name: str) -> float:
    (found,) = [_place(each) for each in picture.iter() if each.text == name and each.get("transform")]
    return found


def _heights_of(picture: Any) -> Iterator[tuple[float, str]]:
    for group in picture.iter():
        if "numbers_marks" in group.get("class", "").split():
            for each in group.iter():
                if each.tag.endswith("text"):
                    yield _place(each), "".join(each.itertext())


def _place(text: Any) -> float:
    return float(text.get("transform").split("translate(")[1].split(")")[0].split(",")[1])


def test_core_hours_lost(demo: Session) -> None:
    of_queues, of_sites = by_hand(demo, "queue", LOST), asked(demo, "site", "lost_core_h")
    assert asked(demo, "queue", "lost_core_h") == pytest.approx(of_queues)
    losses = demo.provisioning.lost("queue").rows.to_pylist()
    found = {name: sum(row["lost_core_h"] for row in losses if row["name"] == name) for name in of_queues}
    assert found == pytest.approx(of_queues)
    assert sum(of_sites.values()) == pytest.approx(sum(of_queues.values()))
    shown = drawn(demo, LOST_HOURS)
    assert len(shown) == LOST_HOURS.most[0]
    cancelled = by_hand(demo, "queue", LOST.replace(FAILED, "('cancelled')"))
    assert shown == {
        name: f"{of_queues[name]:,.0f}"
        + (f" + {cancelled[name]:,.0f} cancelled" if cancelled[name] >= 0.5 else "")
        for name in shown
    }
    assert set(shown) == set(sorted(of_queues, key=lambda name: -of_queues[name])[: len(shown)])
    assert sum(cancelled.values()) > 0


def test_failures_and_waiting(demo: Session) -> None:
    failed, finished = (f"count(*) filter (state in {each})" for each in (FAILED, "('finished')"))
    rates = by_hand(demo, "queue", f"{failed} / nullif({failed} + {finished}, 0)")
    assert asked(demo, "queue", "failure_rate") == pytest.approx(rates, nan_ok=True)
    shown = drawn(demo, ENDS)
    assert {name: float(text.rstrip("%")) for name, text in shown.items()} == pytest.approx(
        {name: 100 * rates[name] for name in shown}, abs=0.051
    )
    waits = by_hand(demo, "queue", "avg(queue_s) / 3600")
    waited = drawn(demo, WAITING)
    assert {name: float(text) for name, text in waited.items()} == pytest.approx(
        {name: waits[name] for name in waited}, abs=0.051
    )


def test_core_hours_without_cpu_time(demo: Session) -> None:
    for by, panel in (("queue", WASTED), ("user", WASTED_BY_USER)):
        expected = by_hand(demo, by, WASTE)
        assert asked(demo, by, "idle_core_h") == pytest.approx(expected)
        shown = drawn(demo, panel)
        assert shown == {name: f"{expected[name]:,.0f}" for name in shown}
    ranked = demo.scores.rank("user", "cpu_efficiency").to_pandas()
    assert dict(zip(ranked["name"], ranked["idle_core_h"], strict=True)) == pytest.approx(expected)
    (panel,) = [each.panel for each in PEOPLE.places if each.panel.id == "people-wasted-by-user"]
    rows = asked_of_store(demo.store, panel.view)
    assert {row["user"]: row["idle_core_h"] for row in rows} == pytest.approx(expected)
    above = demo.sql("select count(*) as n from jobs where cpu_s > wall_s * cores").to_pandas()["n"][0]
    assert above > 0


def test_tasks_are_distinct_wherever_they_are_called_tasks(demo: Session) -> None:
    """Units of the fit (task x core class x type) are more, and never called tasks."""
    flags = demo.tables.flags().to_pandas()
    chosen = flags[(flags["processing_type"] == "all") & (flags["level"] == "queue") & flags["k"].notna()]
    assert (chosen["n_units"] >= chosen["n_tasks"]).all()
    assert (chosen["n_units"] > chosen["n_tasks"]).any()
    for panel in (*REPORT, BY_TYPE):
        for entry in panel.fields:
            if entry.title == "Tasks":
                assert entry.column == "n_tasks", panel.id
                assert "n_tasks" in table(panel.view.table).column_names
    name = str(chosen.sort_values("n_units").iloc[-1]["name"])
    page = str(demo.site(name))
    row = chosen[chosen["name"] == name].iloc[0]
    assert str(row["n_tasks"]) in page


def test_factors_of_cpu_models_have_the_scale_of_what_they_predict(demo: Session) -> None:
    mixes = [
        row
        for row in demo.tables.cpu_mix().to_pandas().to_dict("records")
        if row["share"] > 0.999 and row["k"] > 0
    ]
    factors = [row for row in demo.tables.factors().to_pandas().to_dict("records") if row["mix_k"] > 0]
    predicted = {row["name"]: row["mix_k"] for row in factors if row["processing_type"] == "all"}
    alone = {str(row["queue"]): row["k"] for row in mixes}
    assert alone
    assert {name: predicted[name] for name in alone} == pytest.approx(alone, rel=1e-3)
