"""Charts of the bundles without rows: their sentence alone, no axis or legend of nothing."""

import re
from typing import Any

import pytest

from dashboards.pages import PAGES
from dashboards.spec import Panel
from dashboards.targets.saved_objects.charts import chart
from dashboards.targets.saved_objects.texts import is_plain
from dashboards.targets.vegalite.charts import CHARTS
from tests.dashboards.drawn import OLDEST, SIZE, svg

EMPTY = {"hits": {"hits": []}, "aggregations": {"groups": {"buckets": []}}}
PANELS = {
    placed.panel.id: placed.panel
    for page in PAGES
    for placed in page.board
    if placed.panel.kind in CHARTS and not is_plain(placed.panel)
}


def unanswered(found: Any) -> Any:
    """A specification whose questions have an empty answer."""
    if isinstance(found, dict):
        if isinstance(found.get("url"), dict):
            return {key: value for key, value in found.items() if key != "url"} | {"values": EMPTY}
        return {key: unanswered(value) for key, value in found.items()}
    return [unanswered(each) for each in found] if isinstance(found, list) else found


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_a_chart_without_rows_is_a_sentence(panel: Panel) -> None:
    picture = svg(unanswered(chart(panel, "gamma")), OLDEST)
    shown = [each for each in picture.iter() if "0" not in (each.get("opacity"), each.get("fill-opacity"))]
    texts = [each for each in shown if each.tag.endswith("}text")]
    said = " ".join(" ".join(each.itertext()) for each in texts).strip()
    sentence = panel.empty or "No rows in this period and selection."
    assert re.sub(r"\s+", "", said) == re.sub(r"\s+", "", sentence)
    # a legend without entries would have no size
    assert float(picture.attrib["width"]) < 2 * SIZE
