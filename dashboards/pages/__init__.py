"""The pages of a dashboard server, in order: adding one is an entry here, adding a panel one in its page."""

from dataclasses import replace

from dashboards.pages.cpu_models import CPU_MODELS
from dashboards.pages.efficiency import EFFICIENCY
from dashboards.pages.issues import ISSUES
from dashboards.pages.parallel import PARALLEL
from dashboards.pages.people import PEOPLE
from dashboards.pages.site import SITE
from dashboards.pages.sites import SITES
from dashboards.pages.today import TODAY
from dashboards.pages.trust import TRUST
from dashboards.panels.age import AS_OF
from dashboards.spec import Page

PAGES: tuple[Page, ...] = tuple(
    replace(page, above=AS_OF)
    for page in (TODAY, SITES, SITE, CPU_MODELS, EFFICIENCY, PARALLEL, PEOPLE, ISSUES, TRUST)
)
"""The first is where a reader starts."""

HEADLINE = "gamma"
"""Whose results the pages show."""

__all__ = ["HEADLINE", "PAGES"]
