"""A browser that opens reports from disk, and what it takes note of."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import pytest

from dashboards.targets.html.report import ReportData, render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

DRAWN = """() => [...document.querySelectorAll('.chart')]
    .filter((chart) => !chart.parentElement.closest('details:not([open])'))
    .every((chart) => ['drawn', 'failed'].includes(chart.dataset.state))"""
"""Whether every chart in sight is drawn."""


@dataclass
class Opened:
    """A page that was opened from disk, and everything it did that it should not do."""

    page: "Page"
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def without(message: str) -> NoReturn:
    """Skip for want of a tool; on CI nothing may be skipped."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def open_page(
    browser: "Browser",
    data: ReportData,
    folder: Path,
    scheme: Literal["light", "dark"] = "light",
    *,
    width: int = 1280,
    scripts: bool = True,
) -> Opened:
    """Write the report, open it with the network cut, and wait until every chart in sight is drawn."""
    file = folder / "report.html"
    file.write_text(render(data), encoding="utf-8")
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        offline=True,
        reduced_motion="reduce",
        java_script_enabled=scripts,
    )
    page = context.new_page()
    opened = Opened(page)
    page.on("request", lambda request: opened.requests.append(request.url))
    page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: opened.complaints.append(str(error)))

    def refuse(dialog: "Dialog") -> None:
        opened.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", refuse)
    page.route(
        "**/*", lambda route: route.continue_() if route.request.url == file.as_uri() else route.abort()
    )
    page.goto(file.as_uri())
    if scripts:
        page.wait_for_function(DRAWN, timeout=20_000)
    return opened
