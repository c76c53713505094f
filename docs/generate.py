"""Writes the reference pages and the bundles of dashboards from the code: ``python -m docs.generate``.

Tests compare both with what is committed.
"""

from pathlib import Path

from dashboards.targets.saved_objects.digest import digest
from docs.alerts_page import alerts_page
from docs.cli_page import cli_page
from docs.fields_page import fields_page
from docs.jobs_page import jobs_page
from docs.man_page import man_page
from docs.rules_page import rules_page
from docs.settings_page import settings_page
from docs.tables_page import tables_page
from docs.web_page import web_page
from esjobs.render import bundles

HERE = Path(__file__).parent
OBJECTS = HERE.parent / "kibana_objects"
_NOTE = "This page is generated from the code: `make docs`.\n"
_PAGES = {
    "alerts.md": alerts_page,
    "cli.md": cli_page,
    "fields.md": fields_page,
    "jobs_in_kibana.md": jobs_page,
    "rules.md": rules_page,
    "settings.md": settings_page,
    "tables.md": tables_page,
    "web.md": web_page,
}


def pages() -> dict[str, str]:
    """Return the content of every generated page by the name of its file."""
    made = {name: page(_NOTE) for name, page in _PAGES.items()}
    return {**made, "esjobs.1": man_page(made["cli.md"])}


def objects() -> dict[str, str]:
    """Return the content of every bundle of dashboards, and of its digest, by the name of its file."""
    texts = {target: bundles.bundle_of(target) for target in bundles.TARGETS}
    return {
        **{f"{target}.ndjson": text for target, text in texts.items()},
        **{f"{target}.md": digest(target, text) for target, text in texts.items()},
    }


def main() -> None:
    """Write every page beside this file, and every bundle into its folder."""
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")
    OBJECTS.mkdir(exist_ok=True)
    for name, text in objects().items():
        (OBJECTS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
