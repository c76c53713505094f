"""Identifiers derived from content: the same question has the same run id on every machine."""

import hashlib
import json
from collections.abc import Mapping


def content_id(content: Mapping[str, object], length: int = 12) -> str:
    """Hash plain data to a short hexadecimal name, independent of key order, machine and Python version.

    >>> content_id({"a": 1, "b": "x"}) == content_id({"b": "x", "a": 1})
    True
    """
    # sorted and ASCII: the same bytes on every machine
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(canonical.encode(), digest_size=32).hexdigest()[:length]
