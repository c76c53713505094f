"""The method note: the sections that it names, printed by a browser."""

import re
import subprocess
from pathlib import Path

import pytest

from docs.note import SECTIONS, coverage, note, sections
from esjobs.render.printing import printed

METHOD = (Path(__file__).parents[1] / "docs" / "method.md").read_text()


def test_every_section_is_there_and_not_empty() -> None:
    found = sections(METHOD)
    assert all(len(found[name].split()) > 50 for name in SECTIONS)
    html = note()
    assert not re.search(r'(?:src|href)="(?!data:|https?:)', html)
    assert html.count("<h2>") + html.count("<h3>") == len(SECTIONS) + 4


def test_the_table_of_coverage_has_all_cases() -> None:
    rows = [line for line in coverage().splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {7}
    assert len(rows) > 30


@pytest.mark.browser
def test_it_prints_on_six_to_eight_pages(tmp_path: Path) -> None:
    file = tmp_path / "note.pdf"
    file.write_bytes(printed(note()))
    shown = subprocess.run(["pdfinfo", file], check=True, capture_output=True, text=True).stdout
    pages = re.search(r"^Pages: +(\d+)$", shown, re.MULTILINE)
    assert pages is not None
    assert 6 <= int(pages[1]) <= 8
