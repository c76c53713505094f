"""Samples as bytes: 32-bit floats, or smaller where that loses nothing more.

A packed series is one byte that names the form, then the samples:

| form | after the first byte |
|---|---|
| 0 | nothing: every sample is missing |
| 1 | one 32-bit float: every sample is this value |
| 2 | 32-bit floats, NaN where a sample is missing |
| 3 | whole numbers of 8 bits, 255 where a sample is missing |
| 4 | whole numbers of 16 bits, 65535 where a sample is missing |

All little-endian. The number of samples stands in the row. A sample is rounded once, to the nearest 32-bit
float (24 bits, 6e-8 relative): 0 stays 0, order is kept, so that minimum and maximum are those of the
samples, and a sample comes to no other side of a threshold that is rounded alike (NumPy does that when an
array of 32-bit floats is compared with a Python number). Forms 3 and 4 are chosen only where they give the
same 32-bit floats.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.errors import StoreError

Samples = npt.NDArray[np.float32]

ALL_MISSING, CONSTANT, FLOATS, BYTES, SHORTS = range(5)
_INTEGERS: dict[int, np.dtype[Any]] = {BYTES: np.dtype("u1"), SHORTS: np.dtype("<u2")}
_GAP = {BYTES: 255, SHORTS: 65535}
_FLOAT = np.dtype("<f4")

LARGEST = float(np.finfo(np.float32).max)
"""The largest sample; one beyond it counts as missing."""

SLOTS = 4096
"""Into how many parts the jobs of a day fall, so that they can be read a part at a time."""


def slot(source: str, job_id: str) -> int:
    """The part that a job falls into.

    >>> slot("emmy", "1403244")
    3630
    """
    return zlib.crc32(f"{source}\0{job_id}".encode()) % SLOTS


def pack(samples: npt.ArrayLike) -> bytes:
    """Pack the samples of one series; NaN and what is no finite 32-bit float is a gap.

    >>> pack([1.0, 2.0, float("nan")]).hex()
    '030102ff'
    >>> pack([0.25, 0.25]).hex()
    '010000803e'
    """
    doubles = np.asarray(samples, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        values = doubles.astype(_FLOAT)
    finite = np.isfinite(values)
    if not finite.any():
        return bytes([ALL_MISSING])
    # numpy has two zeros, and one of them is enough
    values = np.where(finite, values + _FLOAT.type(0), _FLOAT.type(np.nan))
    some = values[finite]
    low, high = some.min(), some.max()
    if low == high and finite.all():
        return bytes([CONSTANT]) + some[:1].tobytes()
    if low >= 0 and high < _GAP[SHORTS] and not np.any(some % 1):
        form = BYTES if high < _GAP[BYTES] else SHORTS
        return bytes([form]) + np.where(finite, values, _GAP[form]).astype(_INTEGERS[form]).tobytes()
    return bytes([FLOATS]) + values.tobytes()


def unpack(packed: bytes, n_samples: int) -> Samples:
    """Return the samples of one series, NaN where missing; :class:`StoreError` for another length."""
    samples: Samples = unpack_equal(pa.array([packed], pa.binary()), n_samples)[0]
    return samples


@dataclass(frozen=True)
class Spans:
    """Packed series as bytes: where each begins in ``data``, and how long it is."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    def take(self, rows: npt.NDArray[np.int64]) -> "Spans":
        """Some of them; no byte is copied."""
        return Spans(self.data, self.starts[rows], self.lengths[rows])


def spans(packed: pa.BinaryArray) -> Spans:
    """The bytes of stored series; :class:`StoreError` where one is null."""
    if packed.null_count:
        raise StoreError("a stored series has no samples; undo its load and read it again")
    _, ends, data = packed.buffers()
    offsets = np.frombuffer(ends, np.int32)[packed.offset : packed.offset + len(packed) + 1].astype(np.int64)
    buffer = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Spans(buffer, offsets[:-1], np.diff(offsets))


def unpack_equal(packed: pa.BinaryArray | Spans, n_samples: int) -> Samples:
    """Return series of one length as rows: (series, samples), NaN where missing; errors as in ``unpack``."""
    found = packed if isinstance(packed, Spans) else spans(packed)
    data, starts, lengths = found.data, found.starts, found.lengths
    rows = np.empty((len(starts), n_samples), np.float32)
    if not (lengths > 0).all():
        raise _broken(n_samples)
    forms = data[starts] if len(starts) else np.empty(0, np.uint8)
    for form, chosen in _by_form(forms):
        size = _length(form, n_samples)
        if size is None or not (lengths[chosen] == size).all():
            raise _broken(n_samples)
        body = _bodies(data, starts[chosen] + 1, size - 1)
        if form == ALL_MISSING:
            rows[chosen] = np.nan
            continue
        if form in (CONSTANT, FLOATS):
            values = body.view(_FLOAT)
        else:
            integers = body.view(_INTEGERS[form])
            values = integers.astype(np.float32)
            values[integers == _GAP[form]] = np.nan
        if values.shape == rows.shape:
            # all of one form: they are not written a second time
            return values.astype(np.float32, copy=False)
        rows[chosen] = values
    return rows


def _by_form(forms: npt.NDArray[np.uint8]) -> Iterator[tuple[int, slice | npt.NDArray[np.int64]]]:
    counts = np.bincount(forms)
    for form in np.flatnonzero(counts).tolist():
        yield form, slice(None) if counts[form] == len(forms) else np.flatnonzero(forms == form)


def _length(form: int, n_samples: int) -> int | None:
    bodies = {ALL_MISSING: 0, CONSTANT: _FLOAT.itemsize, FLOATS: _FLOAT.itemsize * n_samples}
    bodies |= {each: kind.itemsize * n_samples for each, kind in _INTEGERS.items()}
    return 1 + bodies[form] if form in bodies else None


def _bodies(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.uint8]:
    if not size or not len(starts):
        return np.empty((len(starts), size), np.uint8)
    # every window of that many bytes is a row of a view, of which the rows wanted are copied
    windows = np.lib.stride_tricks.sliding_window_view(data, size)
    return windows[starts]


def _broken(n_samples: int) -> StoreError:
    return StoreError(
        f"a stored series is not a packed series of {n_samples:,} samples; undo its load and read it again"
    )
