"""Print the options of ``pip-audit`` for the exceptions of ``audit.toml``."""

import sys
import tomllib
from pathlib import Path

EXCEPTIONS = Path(__file__).with_name("audit.toml")

if __name__ == "__main__":
    for each in tomllib.loads(EXCEPTIONS.read_text()).get("exceptions", []):
        sys.stdout.write(f"--ignore-vuln {each['id']}\n")
