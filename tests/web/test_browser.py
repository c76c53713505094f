"""Pages in a browser: no violation of the policy, light and dark, on a phone."""

import asyncio
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
import uvicorn

from esjobs.entry import load
from esjobs.flags.answering.links import links_of
from esjobs.flags.answering.settings import WebSettings
from esjobs.web.app import Web
from esjobs.web.server import web_of
from esjobs.web.source import Source
from tests.dashboards.browser import DRAWN
from tests.dashboards.conftest import browser  # noqa: F401
from tests.web.conftest import settings_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

PAPER_PX = 703  # A4 between its margins
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


@pytest.mark.parametrize("where", ["/", "/jobs", "/queue/CHERRY-T2_UCORE", "/delivered"])
def test_tables_fit_on_paper_without_the_way_to_other_pages(
    browser: "Browser",  # noqa: F811
    base: str,
    where: str,
) -> None:
    page = browser.new_context(viewport={"width": PAPER_PX, "height": 1000}).new_page()
    page.emulate_media(media="print")
    page.goto(base + where)
    ends = page.evaluate(
        "[...document.querySelectorAll('table')].map((it) => it.getBoundingClientRect().right)"
    )
    assert ends
    assert max(ends) <= PAPER_PX + 1
    shown = (
        "[...document.querySelectorAll('nav, .links, .question')].filter((it) => it.getClientRects().length)"
    )
    assert page.evaluate(f"{shown}.length") == 0
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_site_answers_on_a_phone_without_scripts(
    browser: "Browser",  # noqa: F811
    store: Path,
    tmp_path: Path,
    scheme: Literal["light", "dark"],
) -> None:
    key, config = tmp_path / "keys", tmp_path / "esjobs.toml"
    key.write_text("k" * 40)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config.write_text(f'[web]\nbase_url = "http://127.0.0.1:{port}"\nkey_file = "{key}"\n')
    file = shutil.copy(store, tmp_path / "jobs.duckdb")
    settings = load(config, f"duckdb:{file}")
    web = web_of(settings, public=False)
    links = links_of(settings.section(WebSettings), settings.location)
    assert links is not None
    link = links.address("queue", "all", "CHERRY-T2_UCORE", ["1"], datetime.now(UTC))
    server = uvicorn.Server(uvicorn.Config(web.application({"127.0.0.1"}), port=port, log_level="error"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": 400, "height": 900}, java_script_enabled=False
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(link)
    form = page.locator("form", has=page.locator('input[value="hardware"]'))
    form.get_by_role("button").click()
    assert "Thank you" not in page.content()
    form.locator("textarea").fill("2 x EPYC 7302\nSMT <b>on</b>")
    form.get_by_role("button").click()
    # a click ends before the page that it leads to is there
    page.get_by_text("Thank you").first.wait_for()
    assert page.get_by_text("2 x EPYC 7302; SMT <b>on</b>").count() == 1
    assert complaints == []
    element = "document.documentElement"
    assert page.evaluate(f"{element}.scrollWidth <= {element}.clientWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(ground.removeprefix("rgb(").partition(",")[0]) > 200) == (scheme == "light")
    context.close()
    server.should_exit = True
    thread.join(10)


def test_the_wall_says_that_it_is_old_and_not_reached(browser: "Browser", base: str) -> None:  # noqa: F811
    """Hours later, with the server away: the age goes on, both warnings stand, and what was shown stays."""
    page = browser.new_context(viewport={"width": 1920, "height": 1080}).new_page()
    page.goto(f"{base}/?wall")
    ended = datetime.fromisoformat(page.get_attribute("#ended", "datetime") or "")
    sections = page.locator("section").count()
    page.clock.install(time=ended + timedelta(hours=25, minutes=59))
    page.reload()
    assert page.locator("#warning").is_hidden()
    assert page.inner_text("#ended") == "26 h old"
    page.route("**/*", lambda route: route.abort())
    page.clock.run_for(5 * 60_000)
    page.wait_for_selector("#warning:visible")
    warning = page.inner_text("#warning")
    assert re.match(r"Not reached since \d\d:\d\d UTC\. No night ended in 26 hours\.$", warning)
    assert page.locator(".strip.alarm").count() == 1
    assert page.locator("section").count() == sections
    page.unroute("**/*")
    page.clock.run_for(2 * 60_000)
    page.locator("#warning", has_text=re.compile("^No night")).wait_for()
    assert page.inner_text("#warning") == "No night ended in 26 hours."


def test_panels_appear_with_their_heights_and_also_without_scripts(
    browser: "Browser",  # noqa: F811
    base: str,
) -> None:
    for scripts in (True, False):
        context = browser.new_context(java_script_enabled=scripts)
        page = context.new_page()
        page.goto(f"{base}/pages/sites.html")
        page.locator("main").wait_for(state="visible", timeout=20_000)
        page.locator("body > footer").wait_for(state="visible", timeout=20_000)
        if scripts:
            page.wait_for_function(DRAWN, timeout=20_000)
            moving = "() => getComputedStyle(document.querySelector('main')).animationName"
            assert page.evaluate(moving) == "none"
        context.close()
