"""The page of a user or project as HTML."""

from dashboards.targets.html.profile import ProfilePage, render_profile
from esjobs.core.text import visible
from esjobs.render.person import Person, person_sections
from esjobs.render.profile_page import part_of


def person_html(of: Person) -> str:
    """Return the page of a user or project as self-contained HTML."""
    parts = [part_of(section) for section in person_sections(of)]
    return render_profile(ProfilePage(visible(of.title), visible(of.source), parts))
