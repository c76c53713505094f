"""Verdicts stand in one order wherever they are read: confirmed first, then the largest deviation."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.verdict_order import verdict_order


@pytest.fixture(scope="module")
def demo(demo_folder: Path) -> Iterator[Session]:
    with esjobs.open(f"duckdb:{demo_folder / 'demo.duckdb'}", read_only=True) as session:
        yield session


def test_ranks_are_a_total_order_of_the_run(demo: Session) -> None:
    """Whatever is chosen of the rows of a run, its ranks sort it; sites come after their queues."""
    rows = demo.tables.flags().rows.to_pylist()
    by_rank = sorted(rows, key=lambda row: row["rank"])
    assert [row["rank"] for row in by_rank] == list(range(1, len(rows) + 1))
    keys = [(row["level"] == "site", *verdict_order(row)) for row in by_rank]
    assert keys == sorted(keys)
    confirmed = [row["confirmed"] is True for row in by_rank if row["level"] != "site"]
    assert confirmed == sorted(confirmed, reverse=True)
    assert 0 < sum(confirmed) < len(rows)


def test_shown_flags_and_verdicts_have_that_order(demo: Session) -> None:
    shown = demo.tables.flags(level="queue", type="all", method="gamma").rows.to_pylist()
    assert shown == sorted(shown, key=verdict_order)
    assert [row["deviation"] > 0 for row in shown[:6]].count(False) == 3
    assert demo.flags.verdicts().rows.to_pylist() == shown


def test_the_queues_of_a_site_have_it_too(demo: Session) -> None:
    """Of some sites, at least, the order of names is another."""
    shown = demo.tables.flags(level="queue", type="all", method="gamma").rows.to_pylist()
    several = [site for site, n in Counter(row["site"] for row in shown).items() if n > 1]
    found = {site: [row["name"] for row in demo.site(site).flags] for site in several}
    for site, names in found.items():
        assert names == [row["name"] for row in shown if row["site"] == site]
    assert any(names != sorted(names) for names in found.values())
