"""What to do when this machine lacks something that the servers need."""

import os
from typing import NoReturn

import pytest


class MissingToolError(Exception):
    """This machine lacks something; the message names it and the Debian package that has it."""


def skip_or_fail(problem: MissingToolError) -> NoReturn:
    """Skip the test with the message, or fail it where nothing may be skipped (``CI=true``)."""
    if os.environ.get("CI") == "true":
        pytest.fail(str(problem), pytrace=False)
    pytest.skip(str(problem))
