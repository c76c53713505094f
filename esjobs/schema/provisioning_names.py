"""Words of provisioning for the command line, which imports nothing heavy."""

from collections.abc import Mapping

BY = ("site", "queue", "project", "user", "application", "size")
"""Groupings of queue time, use and losses."""

CONTACTED = ("user", "project")
"""Kinds of contacts."""

AREAS: Mapping[str, str] = {
    "documentation": "high",
    "support": "high",
    "efficiency": "moderate",
    "workspace": "low",
    "promotion": "low",
}
"""The areas that centres name, with the priority that they give them."""

PRIORITY_WEIGHTS: Mapping[str, float] = {"high": 3.0, "moderate": 2.0, "low": 1.0}
"""Default weights of areas in an index, unless the questionnaire sets others."""
