"""The script in the package is what the converter of the tests bundles, to the byte."""

from tests.dashboards.library import FOLDER, bundle


def test_the_library_is_that_of_the_converter() -> None:
    """After an upgrade: ``python -m tests.dashboards.library``, and a look at every picture."""
    assert (FOLDER / "vega.js").read_text(encoding="utf-8") == bundle()


def test_its_authors_are_named() -> None:
    assert "University of Washington Interactive Data Lab" in (FOLDER / "LICENSE.txt").read_text("utf-8")
