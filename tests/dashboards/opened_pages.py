"""The pages opened from disk in a browser, with the network cut, and what they did that they should not."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dashboards.targets.html.pages.files import Site, files_of
from tests.dashboards.browser import Opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog

READY = "() => document.body.dataset.drawn !== undefined"
"""Whether every chart of what is chosen is drawn."""


def write(site: Site, folder: Path) -> Path:
    """The files of pages in a folder."""
    for name, text in files_of(site):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def open_file(
    browser: "Browser",
    folder: Path,
    page: str = "index",
    *,
    width: int = 1400,
    scheme: Literal["light", "dark"] = "light",
) -> Opened:
    """Open a page, with what is chosen behind ``#``, and wait until it is drawn."""
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, offline=True, reduced_motion="reduce"
    )
    tab = context.new_page()
    opened = Opened(tab)
    tab.on("request", lambda request: opened.requests.append(request.url))
    tab.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: opened.complaints.append(str(error)))

    def refuse(dialog: "Dialog") -> None:
        opened.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    tab.on("dialog", refuse)
    name, mark, chosen = page.partition("#")
    tab.goto(f"{(folder / name).as_uri()}.html{mark}{chosen}")
    tab.wait_for_function(READY, timeout=20_000)
    return opened


def again(opened: Opened) -> None:
    """Wait until the page has drawn what was just chosen."""
    opened.page.wait_for_function(
        "() => document.body.dataset.drawn === document.body.dataset.wanted", timeout=20_000
    )
