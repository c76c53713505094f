"""Stable 64-bit hashes of rows, independent of machine and libraries.

Duplicates are looked up by this narrow column: an index over the natural key loads eight times slower. The
store compares natural keys as well.
"""

import hashlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# the golden ratio as a 64-bit fraction, and the constants of MurmurHash3's finaliser
_START = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xFF51AFD7ED558CCD)
_STIR = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)
_NOTHING = np.uint64(0)
# Strings of more than 16 words of 8 bytes are rare and hashed one by one
_WORDS = 16

# Rows hashed at a time: small enough that every intermediate array stays in the processor's cache
_BLOCK = 16_384

Hashes = npt.NDArray[np.uint64]


def identity_hash(source: pa.Array, job_id: pa.Array) -> Hashes:
    """Hash (source, job_id) by row; missing counts as empty.

    >>> identity_hash(pa.array(["panda", None]), pa.array(["4012345678", "1"]))
    array([4434750236044755543, 1338997502420931082], dtype=uint64)
    """
    hashes = np.full(len(job_id), _START, np.uint64)
    for start in range(0, len(job_id), _BLOCK):
        block = slice(start, start + _BLOCK)
        hashes[block] = _absorb(source[block], hashes[block])
        hashes[block] = _absorb(job_id[block], hashes[block])
    return hashes


def content_hash(rows: pa.RecordBatch) -> Hashes:
    """Hash rows: name and value of all non-null columns, in any order.

    >>> content_hash(pa.record_batch({"queue": ["A", None], "cores": [8, 1]}))
    array([  85010468065696683, 4771339169651259608], dtype=uint64)
    """
    total = np.zeros(rows.num_rows, np.uint64)
    for start in range(0, rows.num_rows, _BLOCK):
        block = slice(start, start + _BLOCK)
        for item in rows.schema:
            column = rows.column(item.name)[block]
            if column.null_count == len(column):
                continue
            name = int.from_bytes(hashlib.blake2b(item.name.encode(), digest_size=8).digest(), "little")
            # by name, so that columns may come in any order and new ones change nothing while they are null
            state = np.full(len(column), name, np.uint64)
            if pa.types.is_nested(item.type):
                # few rows carry any, and their numbers must count bit by bit
                column = pa.array([None if v is None else repr(v) for v in column.to_pylist()], pa.string())
            text = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
            state = _absorb(column, state) if text else _stir(state ^ _bits(column))
            if column.null_count:
                state = np.where(column.is_valid().to_numpy(zero_copy_only=False), state, _NOTHING)
            total[block] += state
        # rows that exchange a value must not have the same sum of hashes as before
        total[block] = _stir(total[block])
    return total


def _bits(column: pa.Array) -> Hashes:
    """Return numbers, times or truth values as bits; arbitrary where null."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    if not pa.types.is_floating(column.type):
        column = column.cast(pa.int64())
    bits: Hashes = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).view(np.uint64)
    return bits


def _absorb(strings: pa.Array, state: Hashes) -> Hashes:
    """Mix strings or bytes into the row states, 8 bytes at a time over all rows."""
    text = pc.fill_null(strings.cast(pa.large_binary()), b"")
    _, offsets_buffer, data = text.buffers()
    first = text.offset
    offsets = np.frombuffer(offsets_buffer, np.int64)[first : first + len(text) + 1]
    low = int(offsets[0]) if len(text) else 0
    high = int(offsets[-1]) if len(text) else 0
    # eight zero bytes behind the last string: every word can be read whole
    padded = np.zeros(high - low + 8, np.uint8)
    if high > low:
        padded[:-8] = np.frombuffer(data, np.uint8)[low:high]
    starts = offsets[:-1] - low
    lengths = np.diff(offsets)
    # the length goes in first: "a" and "a\0" have equal words
    state = _stir(state ^ lengths.astype(np.uint64))
    # a view with a word at every byte offset, so that strings need no alignment
    at_byte = np.lib.stride_tricks.as_strided(padded[:8].view("<u8"), (len(padded) - 7,), (1,))
    for word in range(_WORDS):
        left = lengths - 8 * word
        rows = np.flatnonzero((left > 0) & (lengths <= 8 * _WORDS))
        if not len(rows):
            break
        if len(rows) == len(state):
            state = _stir(state ^ _words(at_byte, starts + 8 * word, left))
        else:
            state[rows] = _stir(state[rows] ^ _words(at_byte, starts[rows] + 8 * word, left[rows]))
    for row in np.flatnonzero(lengths > 8 * _WORDS):
        long = padded[starts[row] : starts[row] + lengths[row]].tobytes()
        # little-endian everywhere: hashes are stored
        digest = hashlib.blake2b(long, digest_size=8).digest()
        state[row] = _stir(state[row : row + 1] ^ np.frombuffer(digest, "<u8"))[0]
    return state


def _words(at_byte: Hashes, positions: npt.NDArray[np.int64], left: npt.NDArray[np.int64]) -> Hashes:
    """Return little-endian words at positions, bytes beyond the string cleared."""
    # shifted up and down again: what belongs to the next string falls off the top
    spare = (8 * (8 - np.minimum(left, 8))).astype(np.uint64)
    kept: Hashes = (at_byte[positions].astype(np.uint64) << spare) >> spare
    return kept


def _stir(state: Hashes) -> Hashes:
    """Apply the finaliser of MurmurHash3."""
    state = (state ^ (state >> _SHIFT)) * _STEP
    state = (state ^ (state >> _SHIFT)) * _STIR
    return state ^ (state >> _SHIFT)
