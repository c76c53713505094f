"""What the tests of this room share: read bytes as a file and check its books on the way."""

from collections.abc import Callable
from pathlib import Path

import pytest

from esjobs.records.ingest.base import Reject
from esjobs.records.ingest.formats.sources import source
from esjobs.testing.sources import pieces

Rows = tuple[list[dict[str, object]], list[Reject]]


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Rows]:
    """Parse bytes under a file name: ``read(name, data, form="panda", **fill)`` gives rows and rejects."""

    def parse(name: str, data: bytes, form: str = "panda", **fill: object) -> Rows:
        path = tmp_path / name
        path.write_bytes(data)
        rows: list[dict[str, object]] = []
        rejects: list[Reject] = []
        for piece in pieces(source(form), path, fill):
            assert piece.table is None
            rows += piece.batch.to_pylist()
            rejects += piece.rejects
        return rows, rejects

    return parse
