"""A profile as text for a terminal, and as JSON."""

import io
import json
import textwrap
from dataclasses import asdict
from datetime import datetime
from typing import IO

from esjobs.core.text import visible
from esjobs.render.profile.profile import Profile
from esjobs.render.profile.sections import heading, sections, source
from esjobs.render.rows import plain, write_table


def write_page(profile: Profile, stream: IO[str], width: int = 100, now: datetime | None = None) -> None:
    """Write the page; sentences are wrapped to ``width`` columns, tables as the stream asks."""
    stream.write(f"{visible(heading(profile))}\n{visible(source(profile, now))}\n")
    for section in sections(profile):
        stream.write(f"\n{section.title}\n")
        for text in filter(None, (section.about, *section.sentences)):
            stream.write(textwrap.fill(visible(text), max(40, width), subsequent_indent="  ") + "\n")
        if section.table is not None:
            write_table(section.table, stream, prose=section.prose)


def page_text(profile: Profile) -> str:
    """Return the page as text."""
    text = io.StringIO()
    write_page(profile, text)
    return text.getvalue()


def write_json(profile: Profile, stream: IO[str]) -> None:
    """Write every row and column that the page rests on, as one object; numbers are not rounded."""
    found = {name: value for name, value in asdict(profile).items() if name not in ("run", "window")}
    found |= {
        "run": None if profile.run is None else profile.run.run,
        "window": None if profile.window is None else str(profile.window),
    }
    json.dump(plain(found), stream, ensure_ascii=False, allow_nan=False, indent=1)
    stream.write("\n")
