"""The map of flagged queues by night, and the page for a wall, over planted nights."""

import re
import shutil
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import esjobs
from esjobs.core.query import In
from esjobs.publish.publication import read_table
from esjobs.schema.flags import FLAG_HISTORY
from tests.web.client import Client
from tests.web.conftest import Opened, settings_of

N_BEFORE = 4
GAP = 2


@pytest.fixture(scope="module")
def lived(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo with flags of earlier nights: a tenth faster each night before, one night missing."""
    file = Path(shutil.copy(store, tmp_path_factory.mktemp("lived") / "lived.duckdb"))
    with esjobs.open(settings=settings_of(file)) as session:
        stored = read_table(session.store, FLAG_HISTORY)
        rows = stored.to_pylist()
        last = max(row["night"] for row in rows)
        new = []
        for before in set(range(1, N_BEFORE + 1)) - {GAP}:
            night = last - timedelta(days=before)
            earlier = [
                row | {"night": night, "compared_on": night, "deviation": row["deviation"] + 0.1 * before}
                for row in rows
            ]
            batch = pa.RecordBatch.from_pylist(earlier, schema=stored.schema)
            new.append(session.store.replace(FLAG_HISTORY, str(night), [batch]))
        session.store.publish(new)
    return file


@pytest.fixture(scope="module")
def client(open_web: Opened, lived: Path) -> Client:
    return open_web(lived)


def expected(file: Path) -> tuple[date, dict[str, dict[date, float]]]:
    """The last night, and deviations of the queues that were flagged, by night."""
    with esjobs.open(settings=settings_of(file), read_only=True) as session:
        where = [In("level", ("queue",)), In("processing_type", ("all",))]
        rows = read_table(session.store, FLAG_HISTORY, where).to_pylist()
    found: dict[str, dict[date, float]] = {}
    for row in rows:
        if row["state"] != "new":
            found.setdefault(row["name"], {})[row["night"]] = row["deviation"]
    return max(row["night"] for row in rows), found


def cells(html: str) -> dict[str, list[tuple[str, str]]]:
    """Classes and labels of the squares of each queue."""
    table = html.partition('<table class="nights">')[2].partition("</table>")[0]
    rows = re.findall(r'<tr><th scope="row"><a href="/queue/[^"]*">([^<]*)</a></th>(.*?)</tr>', table)
    return {name: re.findall(r'<td class="([^"]*)" title="([^"]*)"', row) for name, row in rows}


def test_each_square_has_the_step_of_its_night(client: Client, lived: Path) -> None:
    last, planted = expected(lived)
    drawn = cells(client.get("/").text)
    assert drawn.keys() == planted.keys()
    assert list(drawn) == sorted(planted, key=lambda name: -abs(planted[name][last]))
    for name, squares in drawn.items():
        assert len(squares) == N_BEFORE + 1
        for before, (look, label) in zip(range(N_BEFORE, -1, -1), squares, strict=True):
            night = last - timedelta(days=before)
            if before == GAP:
                assert look == "none"
                assert str(night) in label
                continue
            value = planted[name][night]
            step = sum((value > -0.2, value > -0.1, value > 0.1, value > 0.2))
            assert look.split()[0] == f"step-{step}"
            assert label.startswith(f"{name}, {night}: ")


def test_the_legend_has_what_occurs(client: Client, lived: Path) -> None:
    html = client.get("/").text
    legend = re.findall(r'<i><span class="step-0 ([^"]*)"></span>([^<]*)</i>', html)
    drawn = {look for row in cells(html).values() for each, _ in row for look in each.split()}
    assert {look for look, _ in legend} == drawn
    assert ("none", "not compared") in legend


def test_a_square_leads_to_the_jobs_of_its_night(client: Client) -> None:
    html = client.get("/").text
    address = re.findall(r'<td class="step[^>]*><a href="([^"]*)"', html)[-1].replace("&amp;", "&")
    got = client.get(address)
    assert got.status == 200
    assert re.search(r"<h1>[1-9][\d,]* jobs?</h1>", got.text)


def test_one_night_is_no_map(open_web: Opened, store: Path) -> None:
    assert 'class="nights"' not in open_web(store).get("/").text


def test_the_wall_is_one_screen_without_choices(client: Client, lived: Path) -> None:
    got = client.get("/?wall")
    _, planted = expected(lived)
    assert got.status == 200
    assert "<form" not in got.text
    assert "<nav" not in got.text
    assert len(cells(got.text)) == min(8, len(planted))
    assert f"<b>{len(planted)}</b>open: queues" in got.text
    assert "Not to be used: newest day with jobs 2025-06-30" in got.text
    script = re.search(r'<script src="([^"]*)"', got.text)
    assert script
    assert client.get(script[1]).headers["content-type"].startswith("text/javascript")
    assert client.get("/?wall&wall").status == 400
