"""The page of a user or project as HTML."""

from dashboards.targets.html.profile import ProfilePage, render_profile
from esjobs.core.text import visible
from esjobs.render.person import Person, person_sections
from esjobs.render.profile_page import part_of


def person_html(of: Person) -> str:
    """Return the page of a user or project as self-contained HTML."""
    return render_profile(person_page(of))


def person_page(of: Person) -> ProfilePage:
    """Return the page as laid out for the template."""
    parts = [part_of(section) for section in person_sections(of)]
    return ProfilePage(visible(of.title), visible(of.source), parts)
