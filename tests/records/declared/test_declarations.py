"""Where a declared value comes from, and whether it is a measurement."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.records.declared.origin import (
    Declaration,
    Declared,
    RecordedValue,
    declare,
    declare_site,
    is_default,
    newest_valid,
)
from esjobs.records.names.sites import Site


def recorded(values: list[float], core_s: list[float]) -> RecordedValue:
    """Sums over jobs with these corepowers, the normalised work rounded as PanDA does."""
    x = np.array(core_s)
    work = np.round(np.array(values) * x)
    return RecordedValue(
        len(x),
        float(work.sum()),
        float(x.sum()),
        float((work**2).sum()),
        float((work * x).sum()),
        float((x**2).sum()),
    )


def settle(imported: Declaration | None, found: RecordedValue | None, **sites: float) -> Declared:
    named = imported.site if imported else None
    site = Site(named or "Q", guessed=named is None)
    return declare("Q_UCORE", imported, found, site=site, site_values=sites)


def row(
    value: float | None, when: str = "2018-01-01", parent: float | None = None, site: str | None = None
) -> Declaration:
    moment = datetime.fromisoformat(when).replace(tzinfo=UTC)
    return Declaration("Q_UCORE", value, "HS23", moment, site, parent, "table")


@given(
    st.floats(4.0, 30.0),
    st.lists(st.integers(600, 900_000), min_size=2, max_size=300),
)
def test_a_constant_value_is_found_and_not_called_changed(value: float, core_s: list[int]) -> None:
    found = recorded([value] * len(core_s), [float(x) for x in core_s])
    assert found.value == pytest.approx(value, rel=1e-3)
    declared = settle(None, found)
    assert declared.origin == ("default" if is_default(found.value, float(np.mean(core_s))) else "own")


@pytest.mark.parametrize(
    ("before", "replaced"), [(None, None), (14.001, None), (14.0, None), (10.0, None), (11.0, 11.0)]
)
def test_an_imported_value_that_replaced_another_in_the_window_has_changed(
    before: float | None, replaced: float | None
) -> None:
    site = Site("S", guessed=False)
    earlier = None if before is None else row(before)
    found = declare("Q_UCORE", row(14.0, "2026-03-16"), None, site=site, site_values={}, before=earlier)
    assert (found.origin, found.before, found.changed) == ("own", replaced, replaced is not None)
    of_site = declare_site("S", [(found, 10.0), (replace(found, before=None), 10.0)], guessed=False)
    assert of_site.changed is found.changed


def test_two_values_in_the_window_are_changed() -> None:
    found = recorded([10.672] * 2 + [10.874] * 500, [4000.0] * 502)
    assert found.spread < 0.002
    found = recorded([10.672] * 100 + [10.874] * 400, [4000.0] * 500)
    assert settle(None, found).origin == "changed"


@pytest.mark.parametrize("value", [10.0, 10.01, 9.98, 12.0, 12.02])
def test_imported_defaults_declare_nothing(value: float) -> None:
    assert settle(row(value), None).origin == "default"


@pytest.mark.parametrize(
    ("value", "core_s", "origin"),
    [
        (10.0, 9000.0, "default"),
        (10.01, 9000.0, "default"),
        (12.0, 333.0, "default"),
        (9.98, 9000.0, "own"),
        (12.02, 9000.0, "own"),
        (9.98, 30.0, "default"),
        (10.05, 20.0, "default"),
    ],
)
def test_what_records_allow_decides_whether_they_carry_a_default(
    value: float, core_s: float, origin: str
) -> None:
    assert settle(None, recorded([value] * 92, [core_s] * 92)).origin == origin


@given(st.lists(st.integers(20, 900_000), min_size=1, max_size=200), st.sampled_from([np.round, np.floor]))
def test_a_default_in_records_is_one_however_its_work_was_rounded(
    core_s: list[int], rounding: np.ufunc
) -> None:
    x = np.array(core_s, float)
    for value in (10.0, 10.01, 12.0):
        assert is_default(float(rounding(value * x).sum() / x.sum()), float(x.mean()))


def test_the_imported_value_wins_and_both_are_shown_beyond_one_percent() -> None:
    found = recorded([11.0] * 50, [9000.0] * 50)
    declared = settle(row(14.0), found)
    assert (declared.corepower, declared.benchmark, declared.origin) == (14.0, "HS23", "own")
    assert declared.from_records == pytest.approx(11.0, rel=1e-3)
    assert settle(row(11.05), found).from_records is None


def test_a_parent_is_shown_beside_a_default_and_never_takes_its_place() -> None:
    declared = settle(row(10.0, parent=16.886, site="CERN-PROD"), None)
    assert (declared.corepower, declared.origin, declared.parent) == (10.0, "default", 16.886)
    assert (declared.site, declared.site_guessed) == ("CERN-PROD", False)


def test_a_value_equal_to_the_sites_is_inherited() -> None:
    found = recorded([16.88] * 50, [9000.0] * 50)
    assert settle(None, found, Q=16.886).origin == "inherited"
    assert settle(None, found, Q=15.0).origin == "own"
    assert settle(row(16.886, parent=16.886), None).origin == "inherited"


def test_nothing_at_all_is_none() -> None:
    declared = settle(None, None)
    assert (declared.corepower, declared.benchmark, declared.origin) == (None, None, "none")
    assert settle(row(None, site="Q"), None).origin == "none"


def test_the_newest_value_valid_at_the_end_of_the_window_counts() -> None:
    rows = [row(11.0, "2018-01-01"), row(12.5, "2018-07-01"), row(13.0, "2018-09-01")]
    at = datetime(2018, 9, 1, tzinfo=UTC)
    found = newest_valid(rows, at)
    assert found is not None
    assert found.corepower == 12.5
    assert newest_valid(rows, datetime(2017, 1, 1, tzinfo=UTC)) is None


def queue(
    value: float | None, origin: str = "own", benchmark: str = "HS06", parent: float | None = None
) -> Declared:
    return Declared("Q", value, benchmark if value else None, origin, "S", site_guessed=False, parent=parent)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("queues", "value", "origin"),
    [
        ([(queue(10.5), 1.0)], 10.5, "own"),
        ([(queue(10.5), 1.0), (queue(10.5, "inherited"), 3.0)], 10.5, "own"),
        ([(queue(8.0), 1.0), (queue(16.0), 3.0)], 14.0, "mean"),
        ([(queue(8.0), 1.0), (queue(16.0, "changed"), 3.0)], 14.0, "changed"),
        ([(queue(8.0), 1.0), (queue(16.0), 0.0)], 8.0, "mean"),
        # a default declares nothing; of two benchmarks that of most core time counts
        ([(queue(8.0), 3.0), (queue(10.0, "default"), 2.0)], 8.0, "own"),
        ([(queue(8.0), 1.0), (queue(10.0, "default"), 2.0)], 10.0, "default"),
        ([(queue(8.0), 1.0), (queue(16.0, benchmark="HS23"), 3.0)], 16.0, "own"),
        # for less than half of the core time nothing is said of the site
        ([(queue(8.0), 1.0), (queue(None, "none"), 1.1)], None, "none"),
        ([(queue(8.0), 1.1), (queue(None, "none"), 1.0)], 8.0, "own"),
        ([(queue(None, "none", parent=11.0), 1.0)], None, "none"),
        ([(queue(8.0), 0.0)], None, "none"),
        ([], None, "none"),
    ],
)
def test_a_site_declares_what_its_queues_do(
    queues: list[tuple[Declared, float]], value: float | None, origin: str
) -> None:
    declared = declare_site("S", queues, guessed=True)
    assert (declared.name, declared.site, declared.site_guessed) == ("S", "S", True)
    assert declared.corepower == (None if value is None else pytest.approx(value))
    assert declared.origin == origin
    assert declared.parent == (11.0 if queues and queues[0][0].parent else None)
