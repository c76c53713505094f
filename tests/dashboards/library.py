"""The script that draws the charts of a page; as a program, it bundles it with npm and esbuild.

What no chart here uses (maps, graphs, clouds of words, Vega-Embed) is left out: half of the size.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parents[2] / "dashboards" / "targets" / "html" / "library"

SHA256 = "afd76540a71b6df34ae08f988ce60d213af252b7f91ce52010ca03e7cfc65c35"
"""Of the script in the package."""

PACKAGES = ("vega@6.2.0", "vega-lite@6.4.1", "vega-interpreter@2.0.0", "esbuild@0.25.12")
_SAID = "/* Vega-Lite 6.4.1, Vega 6.2.0 and its interpreter in parts; see LICENSE.txt */\n"

_ENTRY = """
import { transforms } from "vega-dataflow";
import * as plain from "vega-transforms";
import * as shown from "vega-view-transforms";
import * as encoded from "vega-encode";
import { View } from "vega-view";
import { parse } from "vega-parser";
import { compile } from "vega-lite";
import { expressionInterpreter } from "vega-interpreter";
Object.assign(transforms, plain, shown, encoded);
window.vegaParts = { View, parse, compile, expressionInterpreter };
"""
# Vega-Lite takes helpers alone from the whole of Vega
_WHOLE = 'export * from "vega-util";\n'
_OF_BROWSERS = ("vega-canvas", "vega-loader")


def bundle() -> str:
    """Return the parts of Vega and Vega-Lite as one script, with a line that says what it is."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "package.json").write_text("{}", encoding="utf-8")
        install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
        subprocess.run(install, cwd=folder, check=True, stdout=sys.stderr)
        (folder / "entry.js").write_text(_ENTRY, encoding="utf-8")
        (folder / "whole.js").write_text(_WHOLE, encoding="utf-8")
        packages = sorted(folder.glob("node_modules/vega-*/index.js"))
        sources = {path.parent.name: path for path in packages if path.parent.name != "vega-lite"}
        sources |= {each: sources[each].with_name("index.browser.js") for each in _OF_BROWSERS}
        sources["vega"] = folder / "whole.js"
        aliases = [f"--alias:{each}=./{path.relative_to(folder)}" for each, path in sources.items()]
        command = ["node_modules/.bin/esbuild", "entry.js", "--bundle", "--minify", "--format=iife"]
        made = subprocess.run([*command, *aliases], cwd=folder, check=True, capture_output=True, text=True)
        return _SAID + made.stdout


if __name__ == "__main__":
    (FOLDER / "vega.js").write_text(bundle(), encoding="utf-8")
