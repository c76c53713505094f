"""Bytes and texts that attack a reader: a good one, damaged at random places."""

import random
from collections.abc import Sequence

TOKENS = (
    *(b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"\\", b"\n", b"\r\n", b"\t", b",", b"|", b";"),
    *(b"[" * 3000, b"{" * 3000, b'{"a":' * 2000, b"]" * 50, b"(" * 3000, b"\x1b[2J", "\u202e".encode()),
    *(b"NaN", b"-inf", b"1e999", b"-1", b"0", b"9" * 5000, b"0x10", b"1e-400", b"18446744073709551616"),
    *(b"null", b"true", b"[]", b"{}", b"2018-02-30", b"9999-12-31T23:59:59.999999999Z", b"<script>", b"=1+1"),
    *(b"%00", b"%ff", b"../" * 20, b"and", b"or", b"not", b"in", b"*", b"?", "ü".encode(), b"\xed\xa0\x80"),
)


def damaged(rng: random.Random, content: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return the content after one to six damages; ``others`` are good contents to splice from."""
    for _ in range(rng.randint(1, 6)):
        content = rng.choice(_DAMAGES)(rng, content, others)
    return content


def _place(rng: random.Random, content: bytes) -> tuple[int, int]:
    start = rng.randint(0, len(content))
    return start, min(len(content), start + rng.choice((0, 1, 2, 8, 100, 5000)))


def _replaced(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    del others
    start, end = _place(rng, content)
    return content[:start] + rng.choice(TOKENS) + content[end:]


def _flipped(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    del others
    changed = bytearray(content)
    for _ in range(rng.randint(1, 20) if changed else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _cut(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    del others
    start, end = _place(rng, content)
    return rng.choice((content[:start], content[start:], content[:start] + content[end:]))


def _repeated(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    del others
    start, end = _place(rng, content)
    return content[:end] + content[start:end] * rng.randint(1, 30) + content[end:]


def _spliced(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others) if others else content
    start, end = _place(rng, other)
    here = rng.randint(0, len(content))
    return content[:here] + other[start:end] + content[here:]


def _words_swapped(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    del others
    separator = rng.choice((b",", b"\n", b'"', b" ", b"|", b"="))
    parts = content.split(separator)
    if len(parts) > 1:
        left, right = rng.randrange(len(parts)), rng.randrange(len(parts))
        parts[left], parts[right] = parts[right], parts[left]
    return separator.join(parts)


_DAMAGES = (_replaced, _replaced, _flipped, _cut, _repeated, _spliced, _words_swapped)
