"""Import the bundles into a real Kibana or OpenSearch Dashboards, open every dashboard, say what is seen.

    python -m tests.live.look --url http://127.0.0.1:5601 --store http://127.0.0.1:9200 --out FOLDER
    python -m tests.live.look --tree TREE --start SCRIPT --store http://127.0.0.1:9200 --out FOLDER

The cluster holds results of esjobs (``esjobs --store URL demo``). SCRIPT starts a server from an unpacked
TREE: ``SCRIPT kibana|osd TREE ENGINE`` prints ``URL=... DIR=...``, ``SCRIPT stop DIR`` ends it. Not a part of
``make test``: no server of dashboards can be had from where tests get theirs. Exit code 1 when a panel
shows an error or nothing, or a dashboard does not open.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from playwright.sync_api import Page, sync_playwright

from esjobs import Settings
from esjobs.api.dashboard_servers import import_dashboards

PANELS = """() => [...document.querySelectorAll(
    '[data-test-subj="embeddablePanel"],[data-test-subj="dashboardPanel"]')]
    .filter(panel => !panel.parentElement.closest(
      '[data-test-subj="embeddablePanel"],[data-test-subj="dashboardPanel"]')).map(panel => ({
  title: (panel.querySelector('[data-test-subj="dashboardPanelTitle"],.embPanel__title,figcaption,h2')
    ?.textContent || '').trim(),
  done: !!panel.querySelector('[data-render-complete="true"]')
    || panel.getAttribute('data-render-complete') === 'true'
    || Number(panel.querySelector('[data-rendering-count]')?.getAttribute('data-rendering-count') || 0) > 0
    || !!panel.querySelector('[data-test-subj="markdownBody"],.kbnMarkdown__body,.linksPanelLink'),
  canvases: panel.querySelectorAll('canvas').length,
  rows: panel.querySelectorAll('tbody tr,[role=row]').length,
  error: (panel.querySelector(
    '.embPanel__error,[data-test-subj*="embeddableError"],[data-test-subj*="errorMessage"],.visError,'
    + '.vgaVis__error,.vgaVis__message--err')?.textContent || '').trim(),
  text: panel.innerText.replace(/\\s+/g, ' ')}))"""

NOTHING = re.compile(
    r"no results? found|no data|EsError|could not|unable to|is not a valid|failed to"
    r"|cannot (read|set) propert",
    re.IGNORECASE,
)


@contextmanager
def _running(options: argparse.Namespace) -> Iterator[str]:
    """The address of the server, started from a tree if one is named."""
    if options.url:
        yield options.url
        return
    command = ["bash", options.start, options.kind, options.tree, options.store]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"URL=(\S+).*DIR=(\S+)", answer.stdout)
    if not found:
        sys.exit(f"the server did not start: {answer.stderr[-2000:]}")
    try:
        yield found[1]
    finally:
        subprocess.run(["bash", options.start, "stop", found[2]], check=False)


def _import(url: str, options: argparse.Namespace) -> tuple[str, list[str]]:
    """What the server is, and the ids of its dashboards."""
    settings = Settings(store=options.store)
    server, outcomes = import_dashboards(settings, url, target=options.target)
    failed = [f"{one.object}: {one.reason}" for one in outcomes if one.state == "failed"]
    if failed:
        sys.exit("\n".join(failed))
    print(f"{server}: {len(outcomes)} objects")
    if options.without_scripts and server.startswith("Kibana"):
        view = f"{url}/api/saved_objects/index-pattern/{settings.cluster.prefix}-data-jobs"
        body = {"attributes": {"runtimeFieldMap": "{}"}}
        requests.put(view, json=body, headers={"kbn-xsrf": "look"}, timeout=60).raise_for_status()
    return server, [one.object.id for one in outcomes if one.object.type == "dashboard"]


def _look(page: Page, url: str, id_: str, wait_s: float, picture: Path) -> list[dict[str, Any]]:
    """Open a dashboard, wait until all panels are drawn, take its picture; what its panels are."""
    page.goto(f"{url}/app/dashboards#/view/{id_}", wait_until="domcontentloaded", timeout=120_000)
    end = time.monotonic() + wait_s
    panels: list[dict[str, Any]] = []
    while time.monotonic() < end:
        page.wait_for_timeout(1500)
        panels = page.evaluate(PANELS)
        if panels and all(panel["done"] or panel["error"] for panel in panels):
            break
    page.wait_for_timeout(4000)
    panels = page.evaluate(PANELS)
    height = page.evaluate(
        "() => Math.max(900, ...[...document.querySelectorAll('.react-grid-layout')]"
        ".map(grid => grid.getBoundingClientRect().bottom + 40))"
    )
    page.set_viewport_size({"width": page.viewport_size["width"], "height": int(min(height, 6000))})  # type: ignore[index]
    page.wait_for_timeout(3000)
    page.screenshot(path=str(picture))
    panels = page.evaluate(PANELS)
    page.set_viewport_size({"width": page.viewport_size["width"], "height": 1200})  # type: ignore[index]
    return panels


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="address of a running server")
    parser.add_argument("--tree", help="an unpacked server to start")
    parser.add_argument("--start", help="the script that starts it")
    parser.add_argument("--kind", choices=["kibana", "osd"], default="kibana")
    parser.add_argument("--store", required=True, help="address of the cluster with results")
    parser.add_argument("--target", default="auto", choices=["auto", "portable", "kibana"])
    parser.add_argument("--out", type=Path, required=True, help="folder for pictures and panels.json")
    parser.add_argument("--only", help="id of one dashboard")
    parser.add_argument(
        "--without-scripts",
        action="store_true",
        help="the engine is a minimal distribution: Kibana sends the runtime fields of a data view with "
        "every question to its index, so that of the jobs goes without them",
    )
    parser.add_argument("--dark", action="store_true", help="ask for Kibana's dark theme first")
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--wait", type=float, default=60.0, help="seconds for a dashboard to be drawn")
    options = parser.parse_args()
    if not options.url and not (options.tree and options.start):
        parser.error("name --url, or --tree and --start")
    options.out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    found: dict[str, Any] = {}
    with _running(options) as url, sync_playwright() as playwright:
        server, ids = _import(url, options)
        if options.dark:
            theme = {"changes": {"theme:darkMode": True}}
            headers = {"kbn-xsrf": "look", "osd-xsrf": "look"}
            place = (
                "api/kibana/settings" if server.startswith("Kibana") else "api/opensearch-dashboards/settings"
            )
            requests.post(f"{url}/{place}", json=theme, headers=headers, timeout=60)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": options.width, "height": 1200})
        complaints: list[str] = []
        context.on("weberror", lambda error: complaints.append(str(error.error)[:300]))
        for id_ in ids:
            if options.only not in (None, id_):
                continue
            complaints.clear()
            began = time.monotonic()
            page = context.new_page()  # in a page of before, a changed fragment alone loads nothing anew
            panels = _look(page, url, id_, options.wait, options.out / f"{id_}.png")
            page.close()
            found[id_] = panels
            print(f"\n{id_}: {len(panels)} panels, {time.monotonic() - began:.0f} s")
            for panel in panels:
                bad = panel["error"] or not panel["done"] or NOTHING.search(panel["text"])
                wrong += bool(bad)
                seen = panel["error"] or panel["text"][:150]
                print(f"  {'!!' if bad else 'ok'} {panel['title'][:70]!r}: {seen}")
            for complaint in complaints:
                print(f"  page error: {complaint}")
            wrong += not panels
        browser.close()
    (options.out / "panels.json").write_text(json.dumps({"server": server, "panels": found}, indent=1))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
