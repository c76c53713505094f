"""A profile as text for a terminal, and as JSON."""

import io
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import IO, Any

from esjobs.core.text import visible
from esjobs.core.window import Window
from esjobs.render.person import Person, person_sections
from esjobs.render.profile.profile import Profile
from esjobs.render.profile.sections import Section, heading, sections, source
from esjobs.render.rows import plain, write_table


def page_text(of: Profile | Person) -> str:
    """Return the page of a queue, CPU model, user or project as text."""
    text = io.StringIO()
    if isinstance(of, Person):
        write_person(of, text)
    else:
        write_page(of, text)
    return text.getvalue()


def write_page(profile: Profile, stream: IO[str], width: int = 100, now: datetime | None = None) -> None:
    """Write the page; sentences are wrapped to ``width`` columns, tables as the stream asks."""
    write_sections(heading(profile), source(profile, now), sections(profile), stream, width)


def write_sections(
    title: str, origin: str, parts: Sequence[Section], stream: IO[str], width: int = 100
) -> None:
    """Write a title, the origin of the numbers, and sections."""
    stream.write(f"{visible(title)}\n{visible(origin)}\n")
    for section in parts:
        stream.write(f"\n{section.title}\n")
        for text in filter(None, (section.about, *section.sentences)):
            stream.write(textwrap.fill(visible(text), max(40, width), subsequent_indent="  ") + "\n")
        if section.table is not None:
            write_table(section.table, stream, prose=section.prose)


def write_json(profile: Profile, stream: IO[str]) -> None:
    """Write every row and column that the page rests on, as one object; numbers are not rounded."""
    run = None if profile.run is None else profile.run.run
    _write_json({**asdict(profile), "run": run}, profile.window, stream)


def write_person(of: Person, stream: IO[str], width: int = 100) -> None:
    """Write the page of a user or project; as :func:`write_page`."""
    write_sections(of.title, of.source, person_sections(of), stream, width)


def write_person_json(of: Person, stream: IO[str]) -> None:
    """Write every row of the page of a user or project; as :func:`write_json`."""
    _write_json(asdict(of), of.window, stream)


def _write_json(found: dict[str, Any], window: Window | None, stream: IO[str]) -> None:
    rows = plain({**found, "window": None if window is None else str(window)})
    json.dump(rows, stream, ensure_ascii=False, allow_nan=False, indent=1)
    stream.write("\n")
