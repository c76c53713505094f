"""The script in the package is what was bundled, to the byte."""

from hashlib import sha256

from tests.dashboards.drawn import NEWEST
from tests.dashboards.library import FOLDER, PACKAGES, SHA256


def test_the_library_was_not_edited() -> None:
    """After an upgrade: ``python -m tests.dashboards.library``, and a look at every picture."""
    assert sha256((FOLDER / "vega.js").read_bytes()).hexdigest() == SHA256


def test_the_library_is_of_the_version_that_the_tests_draw_with() -> None:
    assert any(each.startswith(f"vega-lite@{NEWEST}.") for each in PACKAGES)


def test_its_authors_are_named() -> None:
    assert "University of Washington Interactive Data Lab" in (FOLDER / "LICENSE.txt").read_text("utf-8")
