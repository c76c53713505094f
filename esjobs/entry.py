"""Sessions and settings with every capability in them: what ``import esjobs`` offers."""

from functools import partial, update_wrapper

from esjobs import settings as settings_module
from esjobs.api import opening
from esjobs.capabilities import CAPABILITIES
from esjobs.settings import with_sections

Settings = with_sections(CAPABILITIES)
# pickle and messages find the class here, where it was made
Settings.__module__ = __name__
load = update_wrapper(partial(settings_module.load, kind=Settings), settings_module.load)
open = update_wrapper(  # noqa: A001  used as esjobs.open(...)
    partial(opening.open, capabilities=CAPABILITIES), opening.open
)
