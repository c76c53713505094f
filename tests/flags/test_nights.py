"""Nights through a store: which jobs are apart, what a night that is run again leaves, what people enter."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st

from esjobs.core.errors import NoResultError, UsageError
from esjobs.flags.nights import read_notes
from esjobs.flags.notes import acknowledge, answer
from esjobs.publish.publication import read_table, rows_table
from esjobs.publish.retention import prune
from esjobs.schema.catalogue import KINDS
from esjobs.schema.declared import COREPOWER
from esjobs.schema.flags import FLAG_EVENTS, FLAG_HISTORY, FLAG_NOTES, FLAG_STATES, TABLES
from esjobs.store.base import Hide, JobStore
from tests.conftest import memory_session
from tests.flags.verdict_nights import LONG, SETTINGS, SHORT, VerdictNights, folded, night, verdict
from tests.messages import raised

NOW = datetime(2025, 3, 1, 9, tzinfo=UTC)
BAD, GOOD = -0.35, 0.01


@pytest.fixture
def nights() -> Iterator[VerdictNights]:
    with memory_session() as session:
        yield VerdictNights(session.store)


def told(store: JobStore) -> dict[str, list[dict[str, Any]]]:
    """All that is remembered, in an order that follows from the rows."""
    return {
        table.name: sorted(read_table(store, table).to_pylist(), key=lambda row: str(list(row.values())))
        for table in TABLES
    }


def states(store: JobStore) -> dict[str, str]:
    return {
        f"{row['name']} {row['processing_type']}": row["state"]
        for row in read_table(store, FLAG_STATES).to_pylist()
    }


def kinds(store: JobStore, number: int | None = None) -> list[str]:
    rows = sorted(read_table(store, FLAG_EVENTS).to_pylist(), key=lambda row: (row["night"], row["position"]))
    return [row["kind"] for row in rows if number is None or row["night"] == night(number)]


def sorted_events(store: JobStore) -> list[dict[str, Any]]:
    rows = read_table(store, FLAG_EVENTS).to_pylist()
    return sorted(rows, key=lambda row: (row["night"], row["name"], row["position"]))


def both(number: int, rows: Sequence[Mapping[str, Any]], nights: VerdictNights) -> None:
    nights.publish(number, rows, rows)


def test_an_earlier_window_of_the_same_length_is_apart(nights: VerdictNights) -> None:
    for number in range(LONG + 1):
        nights.publish(number, [verdict("A", 0.0)], [verdict("A", BAD)])
        nights.watch(number)
        assert states(nights.store)["A all"] == ("open" if number == LONG else "new")
    assert kinds(nights.store) == ["noticed", "opened"]
    (row,) = read_table(nights.store, FLAG_STATES).to_pylist()
    assert (
        row["evidence"]
        == "confirmed in 2025-01-02 to 2025-01-10 and, on disjoint jobs, in 2024-12-24 to 2025-01-01"
    )
    assert (row["since"], row["nights"], row["opened_on"]) == (night(0), LONG + 1, night(LONG))


def test_two_short_windows_are_apart(nights: VerdictNights) -> None:
    for number in range(SHORT + 1):
        both(number, [verdict("A", BAD)], nights)
        nights.watch(number)
        assert states(nights.store)["A all"] == ("open" if number == SHORT else "new")


def test_short_windows_do_not_count_unless_both_are_confirmed(nights: VerdictNights) -> None:
    for number in range(SHORT + 1):
        short = verdict("A", BAD, confirmed=number > 0)
        nights.publish(number, [short], [verdict("A", BAD)])
        nights.watch(number)
    assert states(nights.store) == {"A all": "new"}


def test_nor_when_they_lie_on_two_sides(nights: VerdictNights) -> None:
    for number in range(SHORT + 1):
        nights.publish(number, [verdict("A", BAD if number else -BAD)], [verdict("A", BAD)])
        nights.watch(number)
    assert states(nights.store) == {"A all": "new"}


def test_two_kinds_of_work_are_apart(nights: VerdictNights) -> None:
    types = [verdict("A", BAD, kind=kind) for kind in ("simul", "pile")]
    both(0, [verdict("A", BAD), *types], nights)
    nights.watch(0)
    assert states(nights.store) == {"A all": "open", "A pile": "new", "A simul": "new"}
    both(1, [verdict("B", BAD), verdict("B", BAD, kind="simul"), verdict("B", GOOD, kind="pile")], nights)
    nights.watch(1)
    assert states(nights.store)["B all"] == "new"


def test_of_one_kind_of_work_another_one_says_nothing(nights: VerdictNights) -> None:
    both(0, [verdict("A", 0.1), *(verdict("A", BAD, kind=kind) for kind in ("simul", "pile"))], nights)
    nights.watch(0)
    assert states(nights.store) == {"A pile": "new", "A simul": "new"}


def test_what_the_followed_window_cannot_compare_is_followed_in_a_shorter_one(nights: VerdictNights) -> None:
    """A queue whose speed changed scatters in the window that holds jobs before and after."""
    odd: dict[str, Any] = {"verdict": "implausible", "confirmed": None}
    for number, deviation in enumerate((GOOD, BAD, BAD, BAD, BAD, GOOD, GOOD, GOOD)):
        long = odd if number else {}
        nights.publish(number, [verdict("A", deviation)], [verdict("A", deviation, **long)])
        nights.watch(number)
    assert [(row["kind"], row["night"], row["window_days"]) for row in sorted_events(nights.store)] == [
        ("noticed", night(1), SHORT),
        ("opened", night(4), SHORT),
        ("closed", night(7), SHORT),
    ]


def test_a_missing_night_between_windows_is_bridged(nights: VerdictNights) -> None:
    both(0, [verdict("A", BAD)], nights)
    both(SHORT + 2, [verdict("A", BAD)], nights)
    nights.watch(0)
    nights.watch(SHORT + 2)
    assert states(nights.store) == {"A all": "open"}


def test_an_old_window_is_no_evidence(nights: VerdictNights) -> None:
    both(0, [verdict("A", BAD)], nights)
    both(40, [verdict("A", BAD)], nights)
    nights.watch(0)
    nights.watch(40)
    assert states(nights.store) == {"A all": "new"}


def test_it_closes_by_the_short_window_after_those_that_opened_it(nights: VerdictNights) -> None:
    for number in range(12):
        now = verdict("A", BAD if number <= 4 else GOOD)
        both(number, [now], nights)
        nights.watch(number)
    assert kinds(nights.store) == ["noticed", "opened", "closed"]
    # opened on night 3: the short window of nights 4 to 6 is the first after it
    assert kinds(nights.store, 6) == ["closed"]
    assert states(nights.store) == {"A all": "resolved"}


def test_within_the_limit_but_not_by_the_margin(nights: VerdictNights) -> None:
    for number in range(30):
        both(number, [verdict("A", BAD if number <= 4 else 0.14)], nights)
        nights.watch(number)
    assert verdict("A", 0.14)["verdict"] == "ok"
    assert states(nights.store) == {"A all": "open"}
    nights.watch(29, margin=0.02)
    assert states(nights.store) == {"A all": "resolved"}


def test_a_night_that_is_watched_again_gives_equal_rows(nights: VerdictNights) -> None:
    for number in range(6):
        both(number, [verdict("A", BAD), verdict("B", BAD if number % 2 else GOOD)], nights)
        nights.watch(number)
        before = told(nights.store)
        nights.watch(number)
        assert told(nights.store) == before
        nights.watch(0)
        assert told(nights.store) == before


def test_a_rerun_of_an_old_night_moves_what_follows_and_removes_nothing_else(nights: VerdictNights) -> None:
    for number in range(8):
        both(number, [verdict("A", BAD if number > 3 else GOOD), verdict("B", BAD)], nights)
        nights.watch(number)
    others = [row for row in told(nights.store)["flag_events"] if row["name"] == "B"]
    assert kinds(nights.store).count("opened") == 2
    nights.replace(1, [verdict("A", BAD), verdict("B", BAD)], [verdict("A", BAD), verdict("B", BAD)])
    nights.watch(1)
    events = sorted(told(nights.store)["flag_events"], key=lambda row: (row["night"], row["position"]))
    assert [row for row in told(nights.store)["flag_events"] if row["name"] == "B"] == others
    assert [(row["night"], row["kind"]) for row in events if row["name"] == "A"] == [
        (night(1), "noticed"),
        (night(2), "withdrawn"),
        (night(4), "opened"),
    ]


NIGHTS = 6
NAMES = ("A", "B")
DEVIATIONS = (BAD, -0.3, 0.4, GOOD, 0.18, None)

worlds = st.lists(
    st.tuples(*(st.tuples(st.sampled_from(DEVIATIONS), st.sampled_from(DEVIATIONS)) for _ in NAMES)),
    min_size=NIGHTS,
    max_size=NIGHTS,
)
World = Sequence[Sequence[tuple[float | None, float | None]]]


def rows_of(world: World, number: int, place: int) -> list[dict[str, Any]]:
    return [verdict(name, world[number][n][place]) for n, name in enumerate(NAMES)]


@pytest.fixture(scope="module")
def published() -> Iterator[VerdictNights]:
    with memory_session() as session:
        nights = VerdictNights(session.store)
        for number in range(NIGHTS):
            both(number, [], nights)
        yield nights


def forget(nights: VerdictNights) -> None:
    """As if no night had been watched and nobody had entered anything."""
    changes = []
    for table in TABLES:
        column = read_table(nights.store, table, columns=[table.partition]).column(0).to_pylist()
        changes += [Hide(table, str(value)) for value in sorted(set(column), key=str)]
    nights.store.publish(changes)


@tried(max_examples=8, deadline=None)
@given(world=worlds, late=worlds, data=st.data())
def test_any_order_of_reruns_gives_equal_tables(
    published: VerdictNights, world: World, late: World, data: st.DataObject
) -> None:
    """Nights in order, with late records for some of them; against all of them at once in any order."""
    store = published.store
    moved = data.draw(st.sets(st.integers(0, NIGHTS - 1), max_size=2), label="late for")
    order = data.draw(st.permutations(range(NIGHTS)), label="order")
    noted = data.draw(st.integers(0, NIGHTS - 1), label="acknowledged on")
    final = [late[number] if number in moved else world[number] for number in range(NIGHTS)]
    forget(published)
    for number in range(NIGHTS):
        published.replace(number, rows_of(world, number, 0), rows_of(world, number, 1))
    for number in range(NIGHTS):
        published.watch(number)
    ack = {
        "note_id": "n", "level": "queue", "name": "A", "kind": "ack", "entered_by": "ann", "text": "",
        "until": night(noted + 2), "entered_at": NOW, "night": night(noted),
    }  # fmt: skip
    entered = rows_table(FLAG_NOTES, [ack])
    store.publish([store.replace(FLAG_NOTES, "n", entered.to_batches())])
    published.watch(noted)
    for number in sorted(moved, key=order.index):
        published.replace(number, rows_of(late, number, 0), rows_of(late, number, 1))
        published.watch(number)
    in_order = told(store)
    forget(published)
    store.publish([store.replace(FLAG_NOTES, "n", entered.to_batches())])
    for number in range(NIGHTS):
        published.replace(number, rows_of(final, number, 0), rows_of(final, number, 1))
    for number in order:
        published.watch(number)
    assert told(store) == in_order
    told_states = {(r["level"], r["processing_type"], r["name"]): r["state"] for r in in_order["flag_states"]}
    assert folded(in_order["flag_events"]) == told_states


def test_what_is_remembered_night_by_night_is_bounded(nights: VerdictNights) -> None:
    for number in range(14):
        both(number, [verdict("A", BAD)], nights)
        nights.watch(number, replay_nights=5)
    kept = set(read_table(nights.store, FLAG_HISTORY).column("night").to_pylist())
    assert kept == {night(number) for number in range(8, 14)}
    before = told(nights.store)
    for settled in (4, 8):
        report = nights.watch(settled, replay_nights=5)
        assert told(nights.store) == before
        assert "are final" in report.notes[0]
    nights.watch(9, replay_nights=5)
    assert told(nights.store) == before


def test_the_memory_survives_a_long_silence(nights: VerdictNights) -> None:
    for number in (0, 1, 2, 3, 20):
        both(number, [verdict("A", BAD)], nights)
        nights.watch(number, replay_nights=5)
    before = told(nights.store)
    assert [(row["since"], row["nights"]) for row in before["flag_states"]] == [(night(0), 5)]
    nights.watch(20, replay_nights=5)
    assert told(nights.store) == before


def test_nights_whose_runs_are_gone_stay(nights: VerdictNights) -> None:
    for number in range(6):
        both(number, [verdict("A", BAD)], nights)
        nights.watch(number)
    before = told(nights.store)
    prune(nights.store, KINDS, 1)
    report = nights.watch(3)
    assert told(nights.store) == before
    assert len(report.notes) == 2
    nights.watch(5)
    assert states(nights.store) == {"A all": "open"}
    (row,) = read_table(nights.store, FLAG_STATES).to_pylist()
    assert (row["since"], row["nights"]) == (night(0), 6)


def test_without_verdicts_it_says_so(nights: VerdictNights) -> None:
    with raised(NoResultError):
        nights.watch()
    both(0, [verdict("A", BAD)], nights)
    with raised(NoResultError):
        nights.watch(5)
    assert told(nights.store)["flag_states"] == []
    assert nights.watch().window == "2025-01-01"


@pytest.fixture
def flagged(nights: VerdictNights) -> VerdictNights:
    """A is open on night 3, B a candidate."""
    for number in range(4):
        both(number, [verdict("A", BAD), verdict("B", BAD if number == 3 else GOOD)], nights)
        nights.watch(number)
    assert states(nights.store) == {"A all": "open", "B all": "new"}
    return nights


def test_an_acknowledgement_holds_at_once_and_survives_everything(flagged: VerdictNights) -> None:
    store = flagged.store
    acknowledge(store, "a", SETTINGS, LONG, until=night(6), by="ann", text="known", now=NOW)
    assert states(store)["A all"] == "acknowledged"
    assert [row["entered_by"] for row in told(store)["flag_events"] if row["kind"] == "acknowledged"] == [
        "ann"
    ]
    before = told(store)
    for number in (3, 0, 2):
        flagged.watch(number)
        assert told(store) == before
    for number in range(4, 8):
        both(number, [verdict("A", BAD), verdict("B", GOOD)], flagged)
        flagged.watch(number)
        assert states(store)["A all"] == ("acknowledged" if number < 6 else "open")
    (note,) = read_notes(store)
    assert (note.entered_by, note.until, note.text, note.night) == ("ann", night(6), "known", night(3))


def test_answers_are_kept_with_who_gave_them(flagged: VerdictNights) -> None:
    answer(flagged.store, "A", SETTINGS, LONG, text="SMT was off", now=NOW)
    later = NOW + timedelta(seconds=1)
    answer(flagged.store, "A", SETTINGS, LONG, text="benchmarked again", by="bob", now=later)
    rows = [row for row in told(flagged.store)["flag_events"] if row["kind"] == "answered"]
    assert [(row["entered_by"], row["text"], row["from_state"]) for row in rows] == [
        ("bob", "SMT was off\nbenchmarked again", "open")
    ]
    assert len(read_notes(flagged.store, ["A"])) == 2


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("B", {}, NoResultError),
        ("C", {}, UsageError),
        ("A", {"until": night(3)}, UsageError),
        ("A", {"by": "  "}, UsageError),
        ("A", {"text": "x" * 4001}, UsageError),
        ("A", {"text": "\ud800"}, UsageError),
        ("A", {"level": "cpu_model"}, NoResultError),
        ("A", {"processing_type": "simul"}, UsageError),
        ("A", {"until": date(9999, 1, 1)}, UsageError),
    ],
)
def test_what_cannot_be_acknowledged_is_refused(
    flagged: VerdictNights, name: str, options: dict[str, Any], error: type[Exception]
) -> None:
    before = told(flagged.store)
    with raised(error):
        acknowledge(
            flagged.store, name, SETTINGS, LONG, **{"until": night(9), "by": "ann", "now": NOW, **options}
        )
    assert told(flagged.store) == before


def test_a_declaration_is_told_with_the_day_from_which_it_holds(nights: VerdictNights) -> None:
    for number in range(5):
        both(number, [verdict("A", BAD), verdict("B", BAD)], nights)
        nights.watch(number)
    row = {
        "import_id": "i", "level": "queue", "name": "A", "corepower": 12.3, "benchmark": "HS06",
        "valid_from": datetime(2025, 1, 3, tzinfo=UTC), "imported_at": NOW,
    }  # fmt: skip
    table = rows_table(COREPOWER, [row])
    nights.store.publish([nights.store.replace(COREPOWER, "i", table.to_batches())])
    now = [verdict("A", GOOD, corepower=12.3), verdict("B", BAD, corepower=10.45)]
    both(5, now, nights)
    nights.watch(5)
    (event,) = [row for row in told(nights.store)["flag_events"] if row["kind"] == "declaration_changed"]
    assert (event["name"], event["corepower_before"], event["corepower"]) == ("A", 10.4, 12.3)
    assert event["changed_on"] == night(2)


def test_a_value_that_moves_with_the_window_is_told_once_it_is_settled(nights: VerdictNights) -> None:
    for number in range(8):
        value = min(10.4 + 0.3 * number, 11.6)
        moving = 0 < number < 4
        both(number, [verdict("A", BAD, corepower=value, origin="changed" if moving else "own")], nights)
        nights.watch(number)
    rows = [row for row in told(nights.store)["flag_events"] if row["kind"] == "declaration_changed"]
    assert [(row["night"], row["corepower_before"], row["corepower"]) for row in rows] == [
        (night(4), 10.4, 11.6)
    ]
    assert rows[0]["changed_on"] == night(4)
