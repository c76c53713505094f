"""Description of the interface for programs (OpenAPI 3.1), from the table of addresses."""

from collections.abc import Sequence
from typing import Any

from esjobs.core.version import __version__
from esjobs.web.api import MEDIA
from esjobs.web.request import Parameter, Route

PROBLEM = "application/problem+json"  # Type of errors, RFC 9457
_ROWS = {
    "type": "object",
    "required": ["meta", "rows", "next"],
    "properties": {
        "meta": {"type": "object"},
        "rows": {"type": "array", "items": {"type": "object"}},
        "next": {"type": ["string", "null"], "description": "Address of the following rows."},
    },
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
_ERRORS = {
    "400": "The question makes no sense; the detail says what to change.",
    "404": "No such result.",
    "406": "No acceptable format.",
    "410": "The cursor's rows are no longer shown.",
    "503": "Busy; ask again after Retry-After seconds.",
}


def description(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "esjobs", "version": __version__},
        "paths": {route.pattern: {"get": _operation(route)} for route in routes},
        "components": {"schemas": {"Rows": _ROWS, "Problem": _PROBLEM}},
    }


def _operation(route: Route) -> dict[str, Any]:
    several = len(route.forms) > 1
    answers = {MEDIA[form]: {"schema": _schema(form, several)} for form in route.forms}
    problem = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    form = Parameter("format", "Format; wins over Accept.", choices=route.forms)
    responses: dict[str, Any] = {"200": {"description": route.shows, "content": answers}}
    responses["304"] = {"description": "The rows are those of the ETag."}
    responses |= {status: {"description": text, "content": problem} for status, text in _ERRORS.items()}
    return {
        "operationId": route.pattern.rpartition("/")[2],
        "summary": route.shows,
        "parameters": [_parameter(each) for each in (*route.parameters, *((form,) if several else ()))],
        "responses": responses,
    }


def _schema(form: str, several: bool) -> dict[str, Any]:
    if form != "json":
        return {"type": "string"}
    return {"$ref": "#/components/schemas/Rows"} if several else {"type": "object"}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    one: dict[str, Any] = {"type": parameter.type}
    if parameter.choices:
        one["enum"] = list(parameter.choices)
    if parameter.type == "integer":
        one["minimum"] = 1
    if parameter.most is not None:
        one["maximum"] = parameter.most
    schema = {"type": "array", "items": one} if parameter.many else one
    return {"name": parameter.name, "in": "query", "description": parameter.about, "schema": schema}
