"""The script that draws the charts of a page, as the converter bundles it; as a program, it writes it."""

from importlib.metadata import version
from pathlib import Path

import vl_convert

from tests.dashboards.drawn import NEWEST

FOLDER = Path(__file__).parents[2] / "dashboards" / "targets" / "html" / "library"


def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, with a line that says where it comes from."""
    made = version("vl-convert-python").partition(".post")[0]
    said = f"/* Vega-Lite {NEWEST}, Vega and Vega-Embed, bundled by vl-convert {made}; see LICENSE.txt */\n"
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", NEWEST)
    return said + script


if __name__ == "__main__":
    (FOLDER / "vega.js").write_text(bundle(), encoding="utf-8")
