"""Declared corepower as CRIC describes queues: one queue, a list of them, or a mapping by name, in JSON."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError
from esjobs.records.ingest.formats.declared_values import (
    DeclaredValues,
    Options,
    moment,
    require_no_nul,
    score,
)
from esjobs.records.ingest.formats.entered_tables import document


def _cric(text: str, path: Path, options: Options) -> Iterator[dict[str, Any]]:
    queues = content = document(text, path, "CRIC queues")
    if isinstance(content, dict):
        # one queue has its facts at the top, a mapping has queues by name
        queues = [content] if "corepower" in content else list(content.values())
    if not isinstance(queues, list):
        raise InputError(f"{path}: expected a CRIC queue, a list of them, or a mapping by name")
    for number, queue in enumerate(queues, 1):
        if not isinstance(queue, dict) or not (queue.get("name") or queue.get("nickname")):
            raise InputError(f"{path}, queue {number}: no name; expected a CRIC queue description")
        yield _queue(f"{path}, queue {queue.get('name') or queue.get('nickname')}", queue, options)


def _parent(data: object) -> str:
    details: Mapping[str, object] = data if isinstance(data, dict) else {}
    parents = (
        details.get(key) for key in ("parent_rc_site_corepower", "parent_site_corepower", "parent_corepower")
    )
    return next((str(value) for value in parents if value is not None), "")


def _queue(where: str, queue: Mapping[str, object], options: Options) -> dict[str, Any]:
    # CRIC serves ``corepower`` to jobs; values of parents are shown beside it, never substituted
    for key in ("name", "nickname", "rc_site", "country"):
        require_no_nul(where, key, _text(queue, key))
    served = score(where, "corepower", _text(queue, "corepower"))
    return {
        "level": "queue",
        "name": _text(queue, "name") or _text(queue, "nickname"),
        "corepower": served,
        "benchmark": options.benchmark or "HS06",
        "valid_from": moment(where, "last_modified", options.valid_from or _text(queue, "last_modified")),
        "site": _text(queue, "rc_site") or None,
        "parent_corepower": score(where, "parent corepower", _parent(queue.get("corepower_data"))),
        "served_corepower": served,
        "source": "CRIC",
        "country": _text(queue, "country") or None,
    }


def _text(queue: Mapping[str, object], key: str) -> str:
    return str(queue.get(key) or "")


CRIC_QUEUES = DeclaredValues("cric", "cric", _cric)
"""The format ``cric``."""
