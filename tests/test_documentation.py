"""Pages that are generated from the code say what the code says; links in the others lead somewhere."""

import re
from pathlib import Path

import pytest

from docs.generate import pages

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("name", "text"), pages().items())
def test_generated_pages_are_current(name: str, text: str) -> None:
    committed = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert committed == text, f"docs/{name} is stale: make docs"


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_modules_that_the_architecture_names_exist() -> None:
    """A path is told from the root, from a package, or from the room that the text is about."""
    files = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    named = re.findall(r"[\w/]+\.py\b", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(named) > 40
    assert [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)] == []
