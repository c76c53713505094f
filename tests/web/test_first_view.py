"""What a browser loads before a page of the dashboards is seen."""

import gzip
import re

import pytest

from dashboards.pages import PAGES
from tests.web.client import Client

MOST = 300_000
"""Bytes of a first view, compressed."""


@pytest.mark.parametrize("name", [page.id for page in PAGES[1:]])
def test_a_first_view_is_small(client: Client, name: str) -> None:
    page = client.get(f"/pages/{name}.html").text
    parts = re.findall(r'(?:src|<link rel="stylesheet" href)="([^"]+)"', page)
    (folder,) = re.findall(r'data-folder="([^"]+)"', page)
    key = "opened" if '"opened":"opened"' in page else "0"
    found = {each: f"/pages/{each}" if each.startswith("esjobs-") else each for each in parts}
    assert len(found) == 3
    texts = [page, *(client.get(each).text for each in found.values())]
    texts.append(client.get(f"/pages/{folder}/{name}-{key}.js").text)
    assert sum(len(gzip.compress(text.encode(), 5)) for text in texts) < MOST


def test_the_script_of_charts_lasts_over_nights(client: Client) -> None:
    page = client.get("/pages/sites.html").text
    (address,) = re.findall(r'src="(/static/vega-[^"]+)"', page)
    assert "immutable" in client.get(address).headers["cache-control"]
