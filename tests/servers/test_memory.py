"""Servers keep their data in memory where there is room, and programs may be run."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.servers.memory import in_memory


def test_only_a_folder_with_room_from_which_programs_run_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_memory(tmp_path, 1) == tmp_path
    assert in_memory(tmp_path, 2**60) is None
    assert in_memory(tmp_path / "missing", 1) is None
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    assert in_memory(tmp_path, 1) is None
