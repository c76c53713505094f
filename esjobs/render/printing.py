"""Pages printed as PDF by an installed browser."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from esjobs.core.errors import InputError
from esjobs.store.files.destination import writing_text

# Programs that can print, the first found is used
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_TIMEOUT_S = 180


def installed_browser() -> str | None:
    """Return the path of an installed browser that can print."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def printed(html: str) -> bytes:
    """Return a self-contained HTML page as PDF.

    Raises :class:`InputError` without a browser, or if it fails.
    """
    browser = installed_browser()
    if browser is None:
        raise InputError(
            f"PDF is printed by a browser, and none of {', '.join(BROWSERS)} is installed; write HTML instead"
        )
    with tempfile.TemporaryDirectory() as folder:
        page, pdf = Path(folder) / "page.html", Path(folder) / "page.pdf"
        with writing_text(page) as stream:
            stream.write(html)
        command = [browser, "--headless", "--disable-gpu", "--no-pdf-header-footer", "--disable-extensions"]
        # a browser of root has no sandbox; the page has no scripts of others
        command += ["--no-sandbox"] if os.geteuid() == 0 else []
        # with the usual profile a browser that is open takes the page over, and prints nothing
        command += [f"--user-data-dir={folder}/profile", f"--print-to-pdf={pdf}", page.as_uri()]
        try:
            subprocess.run(  # noqa: S603  a program of this machine, with our page
                command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_TIMEOUT_S
            )
            return pdf.read_bytes()
        except (OSError, subprocess.SubprocessError) as error:
            raise InputError(f"{browser} printed no PDF; write HTML instead, and print that") from error
