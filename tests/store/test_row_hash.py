"""The identity hash: pinned values, because stored files depend on them."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from esjobs.store.row_hash import identity_hash


def hashed(*pairs: tuple[str | None, str]) -> list[int]:
    """Hashes of (source, job_id) pairs."""
    sources, ids = zip(*pairs, strict=True)
    return [int(h) for h in identity_hash(pa.array(sources, pa.string()), pa.array(ids, pa.string()))]


def test_the_hash_never_changes() -> None:
    assert hashed(("panda", "4012345678"), (None, "1"), ("", ""), ("panda", "x" * 1000), ("日本", "é")) == [
        4434750236044755543,
        1338997502420931082,
        7175312947680778460,
        9732270353451087950,
        15842354430997047906,
    ]


def test_missing_is_the_empty_string_and_parts_do_not_run_together() -> None:
    assert hashed((None, "1")) == hashed(("", "1"))
    assert len(set(hashed(("a", "b"), ("ab", ""), ("", "ab"), ("b", "a"), ("a", "b\0"), ("a\0", "b")))) == 6


def test_a_million_ids_do_not_collide() -> None:
    ids = pa.array(np.arange(4_000_000_000, 4_001_000_000)).cast(pa.string())
    source = pa.array(["panda"]).take(pa.array(np.zeros(len(ids), np.int32)))
    assert len(np.unique(identity_hash(source, ids))) == len(ids)


_PAIRS = st.lists(st.tuples(st.text(max_size=40), st.text(max_size=200)), min_size=1, max_size=20)


@given(_PAIRS, st.integers(0, 20))
def test_a_row_hashes_alike_alone_in_a_column_and_in_a_slice(
    pairs: list[tuple[str, str]], start: int
) -> None:
    whole = hashed(*pairs)
    assert whole == [hashed(pair)[0] for pair in pairs]
    sources, ids = (pa.array(column, pa.string()) for column in zip(*pairs, strict=True))
    assert list(identity_hash(sources[start:], ids[start:])) == whole[start:]
