"""Names that follow from content: the same question has the same run id, on every machine."""

import hashlib
import json
from collections.abc import Mapping


def content_id(content: Mapping[str, object], length: int = 12) -> str:
    """Hash plain data (strings, numbers, lists, mappings) to a short hexadecimal name.

    Independent of the order of keys, of the machine and of the Python version.

    >>> content_id({"a": 1, "b": "x"}) == content_id({"b": "x", "a": 1})
    True
    """
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(canonical.encode(), digest_size=32).hexdigest()[:length]
