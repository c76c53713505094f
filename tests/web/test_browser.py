"""Pages in a browser: no violation of the policy, light and dark, on a phone."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvicorn

from esjobs.web.app import Web
from esjobs.web.source import Source
from tests.dashboards.browser import DRAWN
from tests.dashboards.conftest import browser  # noqa: F401
from tests.web.conftest import settings_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

PAGES = ("/", "/jobs", "/ask?by=queue", "/pages/sites.html", "/pages/site.html")


@pytest.fixture(scope="module")
def base(store: Path) -> Iterator[str]:
    """The address of a server over the demo."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    application = Web(Source(settings_of(store))).application({"127.0.0.1"})
    server = uvicorn.Server(uvicorn.Config(application, port=port, log_level="error"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


@pytest.mark.parametrize("where", PAGES)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 400)])
def test_pages_keep_the_policy_and_fit(
    browser: "Browser",  # noqa: F811
    base: str,
    where: str,
    scheme: str,
    width: int,
) -> None:
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": 900}
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.add_init_script(
        "addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective))"
    )
    page.goto(base + where)
    page.wait_for_function(DRAWN, timeout=20_000)
    assert complaints == []
    element = "document.documentElement"
    assert page.evaluate(f"{element}.scrollWidth <= {element}.clientWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red = int(ground.removeprefix("rgb(").partition(",")[0])
    assert (red > 200) == (scheme == "light")
    context.close()
