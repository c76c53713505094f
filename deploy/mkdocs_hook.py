"""Pages of the repository beside ``docs``: the README as first page; others that pages need in ``more``."""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PATTERNS = ("*.md", "LICENSE", "benchmarks/*.md", "benchmarks/results/*.md")
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def _page(path: str) -> str:
    """Return where a file of the repository is on the site."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"more/{path}" if path.endswith(".md") else f"more/{path}.md"


def _moved(text: str, path: str) -> str:
    """Return a page with links that hold where it is on the site."""
    folder = PurePosixPath(path).parent
    here = PurePosixPath(_page(path)).parent

    def moved(match: re.Match[str]) -> str:
        target = os.path.normpath(folder / match[1])
        if target.startswith("..") or not (ROOT / target).is_file():
            return match[0]
        return f"]({os.path.relpath(_page(target), here)}"

    return LINK.sub(moved, text)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the other pages."""
    for path in sorted(found for pattern in PATTERNS for found in ROOT.glob(pattern)):
        name = path.relative_to(ROOT).as_posix()
        text = _moved(path.read_text(encoding="utf-8"), name)
        files.append(File.generated(config, _page(name), content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Point links that leave ``docs`` to the other pages."""
    path = page.file.src_uri
    if page.file.generated_by is not None:
        return markdown
    return _moved(markdown, f"docs/{path}")
