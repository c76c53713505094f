"""Task keys are numbers in the order of the keys, whatever characters their parts hold."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.records.tasks.keys import KEY, TaskKeys

part = st.one_of(st.none(), st.sampled_from(["", "a", "a|b", "|", "b", "\x1f", "a\x1fb", "ä"]))
rows = st.lists(
    st.tuples(st.sampled_from(["1", "10", "2|", "|2"]), part, part, part), min_size=1, max_size=12
)


def table_of(keys: list[tuple[str | None, ...]]) -> pa.Table:
    columns = zip(*keys, strict=True)
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip(KEY, columns, strict=True)})


@settings(deadline=None)
@given(rows)
def test_numbers_stand_for_parts(given_keys: list[tuple[str | None, ...]]) -> None:
    keys, numbers = TaskKeys.of(given_keys)
    assert [keys.parts(number) for number in numbers] == [
        tuple(part or None for part in key) for key in given_keys
    ]
    assert len(set(keys.listed())) == len(keys)
    assert keys.numbers(table_of(given_keys)).tolist() == numbers.tolist()


@settings(deadline=None)
@given(rows, rows)
def test_more_keys_leave_the_order_of_the_others(
    first: list[tuple[str | None, ...]], second: list[tuple[str | None, ...]]
) -> None:
    keys, _ = TaskKeys.of(first)
    more, numbers = keys.extended(second)
    assert [more.parts(number) for number in numbers[: len(keys)]] == keys.listed()
    assert sorted(numbers[: len(keys)]) == numbers[: len(keys)].tolist()


def test_a_row_of_an_unknown_key_has_none() -> None:
    keys, _ = TaskKeys.of([("1", "single", None, None)])
    unknown = [("1", "single", "simul", None), ("1", None, None, None), ("2", "single", None, None)]
    assert keys.numbers(table_of([*unknown, ("1", "single", "", "")])).tolist() == [-1, -1, -1, 0]
