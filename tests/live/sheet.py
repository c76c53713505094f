"""A contact sheet: every page in light and dark, at three widths and on paper, with what is wrong in sight.

    python -m tests.live.sheet --out FOLDER http://127.0.0.1:8080 [pages/index.html] [report.html]
    python -m tests.live.sheet --out FOLDER --axe node_modules/axe-core/axe.min.js http://127.0.0.1:8080

An address of ``esjobs web`` stands for all its pages, names taken from what it holds; ``index.html`` for
all files of its folder. FOLDER/index.html shows the pictures. Exit code 1 when a page is wider than its
window, complains, cuts texts, has labels on labels, or axe-core finds something serious.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import requests
from playwright.sync_api import Browser, Page, sync_playwright

from tests.dashboards.browser import DRAWN

LOOKS = [(width, scheme) for width in (1400, 1000, 400) for scheme in ("light", "dark")]
_MOST_HEIGHT = 8000

SEEN = """() => {
  const room = document.documentElement;
  const name = (node) => `${node.tagName.toLowerCase()}.${node.className?.baseVal ?? node.className}`;
  const hidden = (node) => getComputedStyle(node).overflowX === 'hidden' && !node.closest('.vega-tooltip');
  const shows = (node) => node.getClientRects().length > 0 && node.clientWidth > 2;
  const cut = [...document.querySelectorAll('body *:not(svg *)')].filter((node) => shows(node) && hidden(node)
    && node.scrollWidth > node.clientWidth + 1)
    .map((node) => `${name(node)}: ${node.textContent.slice(0, 60)}`);
  const apart = [];
  for (const figure of document.querySelectorAll('svg')) {
    const texts = [...figure.querySelectorAll('text')].filter((text) => text.textContent.trim()
      && getComputedStyle(text).opacity !== '0' && text.getClientRects().length);
    const boxes = texts.map((text) => text.getBoundingClientRect());
    for (let one = 0; one < boxes.length && one < 300; one += 1) {
      for (let two = one + 1; two < boxes.length && two < 300; two += 1) {
        const [a, b] = [boxes[one], boxes[two]];
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 3 && high > 4) apart.push(`${texts[one].textContent} | ${texts[two].textContent}`);
      }
    }
  }
  return {wide: Math.max(0, room.scrollWidth - room.clientWidth), cut: [...new Set(cut)].slice(0, 8),
    overlap: apart.slice(0, 8), height: room.scrollHeight};
}"""


def addresses(base: str) -> Iterator[tuple[str, str]]:
    """Yield name and address of every page of a running ``esjobs web``."""

    def rows(path: str, **values: Any) -> list[dict[str, Any]]:
        answer = requests.get(f"{base}/api/v1/{path}", params=values, timeout=120)
        answer.raise_for_status()
        return list(answer.json()["rows"])

    def first(by: str) -> str:
        found = [row[by] for row in rows("query", by=by, metric="jobs", limit=20) if row[by]]
        return str(found[0]) if found else ""

    flags = rows("flags", level="queue", type="all", limit=1000)
    worst = max(flags, key=lambda row: (bool(row["significant"]), abs(row["deviation"] or 0)))
    job = rows("jobs", where=f"queue={worst['name']}", limit=1)[0]
    incidents = rows("incidents", limit=50)
    yield from (("today", "/"), ("wall", "/?wall"), ("jobs", "/jobs"), ("ask", "/ask"))
    yield "jobs-queue", "/jobs?" + urlencode({"where": f"queue={worst['name']}"})
    yield "ask-answer", "/ask?by=queue&metric=jobs&metric=efficiency&top=10"
    yield "queue", f"/queue/{quote(worst['name'], safe='')}"
    yield "site", f"/site/{quote(worst['site'] or '', safe='')}"
    yield "cpu", f"/cpu/{quote(first('cpu_model'), safe='')}"
    yield "job", f"/job/{quote(job['job_id'], safe='')}"
    for kind, by in (("task", "task_id"), ("user", "user"), ("project", "project")):
        if found := first(by):
            yield kind, f"/{kind}/{quote(found, safe='')}"
    for row in [each for each in incidents if each["site"] not in (None, "everywhere")][:1]:
        yield "incident", "/incident?" + urlencode({"site": row["site"]})
    yield from (("delivered", "/delivered"), ("energy", "/energy"), ("similar", "/similar"))
    yield from (
        (f"what-if-{each}", f"/what-if/{each}") for each in ("move", "place", "finish", "declare", "drain")
    )
    yield from (("issues", "/issues"), ("missing", "/queue/NO-SUCH"))
    text = requests.get(base, timeout=120).text
    for each in sorted(set(re.findall(r'href="/pages/([a-z_-]+\.html)"', text))):
        yield f"pages-{each.removesuffix('.html')}", f"/pages/{each}"


def places(named: str) -> Iterator[tuple[str, str]]:
    """Yield name and whole address of what an argument stands for."""
    if named.startswith("http"):
        yield from ((name, named.rstrip("/") + path) for name, path in addresses(named.rstrip("/")))
        return
    file = Path(named).resolve()
    files = sorted(file.parent.glob("*.html")) if file.name == "index.html" else [file]
    yield from ((f"{each.parent.name}-{each.stem}", each.as_uri()) for each in files)


def look(browser: Browser, address: str, picture: Path, width: int, scheme: Any, axe: str) -> dict[str, Any]:
    """Open a page, take its picture; return what is wrong with it and the bytes it took."""
    height = 1080 if "?wall" in address else 900
    width = 1920 if "?wall" in address else width
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
    page, complaints, n_bytes = context.new_page(), list[str](), [0]
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: n_bytes.append(int(event["encodedDataLength"])))
    page.goto(address, timeout=120_000)
    page.wait_for_function(DRAWN, timeout=60_000)
    page.wait_for_timeout(300)
    seen: dict[str, Any] = page.evaluate(SEEN)
    seen |= {"complaints": complaints, "kB": round(sum(n_bytes) / 1000)}
    if axe:
        seen["axe"] = violations(page, axe)
    if "?wall" not in address:
        page.set_viewport_size({"width": width, "height": min(max(height, seen["height"]), _MOST_HEIGHT)})
        page.wait_for_timeout(200)
    page.screenshot(path=str(picture))
    context.close()
    return seen


def violations(page: Page, axe: str) -> list[str]:
    """Return the serious findings of axe-core: rule, and the first of their places."""
    page.evaluate(axe)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [
        f"{each['id']} at {[node['target'] for node in each['nodes'][:3]]}: {each['help']}"
        for each in found
        if each["impact"] in {"serious", "critical"}
    ]


def on_paper(browser: Browser, address: str, picture: Path) -> None:
    """Print a page and take pictures of its sheets."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address, timeout=120_000)
    page.wait_for_function(DRAWN, timeout=60_000)
    page.emulate_media(media="print")
    paper = picture.with_suffix(".pdf")
    page.pdf(path=str(paper), prefer_css_page_size=True)
    command = ["pdftoppm", "-png", "-r", "50", "-l", "6", str(paper), str(picture.with_suffix(""))]
    subprocess.run(command, check=True)
    paper.unlink()
    context.close()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="+", help="address of esjobs web, index.html of a folder, or a file")
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures")
    parser.add_argument("--axe", type=Path, help="axe.min.js of the npm package axe-core")
    parser.add_argument("--only", default="", help="pages whose name matches")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    axe = options.axe.read_text() if options.axe else ""
    wrong, found, html = (
        0,
        {},
        [
            "<!doctype html><meta charset='utf-8'><style>img{width:19%;vertical-align:top;"
            "border:1px solid #999}</style>"
        ],
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, address in [each for place in options.places for each in places(place)]:
            if not re.search(options.only, name):
                continue
            html.append(f"<h2>{name}</h2>")
            for width, scheme in LOOKS:
                picture = options.out / f"{name}-{width}-{scheme}.png"
                seen = look(browser, address, picture, width, scheme, axe)
                expected = [each for each in seen["complaints"] if not (name == "missing" and "404" in each)]
                bad = {
                    key: value
                    for key, value in (seen | {"complaints": expected}).items()
                    if value and key in {"wide", "cut", "overlap", "complaints", "axe"}
                }
                wrong += bool(bad)
                found[picture.name] = seen
                told = f"!! {json.dumps(bad)}" if bad else "ok"
                print(f"{picture.stem} {seen['kB']} kB {told}", flush=True)
                html.append(f"<img src='{picture.name}' title='{picture.stem}'>")
                if "?wall" in address:
                    break
            if "?wall" not in address:
                on_paper(browser, address, options.out / f"{name}-print.png")
                html += [
                    f"<img src='{each.name}'>" for each in sorted(options.out.glob(f"{name}-print-*.png"))
                ]
        browser.close()
    (options.out / "index.html").write_text("\n".join(html))
    (options.out / "seen.json").write_text(json.dumps(found, indent=1))
    print(urlsplit(options.places[0]).path, options.out / "index.html")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
