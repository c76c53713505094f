"""Index templates: wanted, stored, and foreign ones that take precedence."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from esjobs.core.errors import SchemaError
from esjobs.core.identity import content_id
from esjobs.core.tables import Table
from esjobs.store.base import Ailment
from esjobs.store.elastic.layout import (
    DIGITS,
    LAYOUT,
    IndexSettings,
    Names,
    is_monthly,
    jobs_index,
    rows_index,
    state_index,
)
from esjobs.store.elastic.transport.cluster import Body, Cluster, RefusedError, ask

# A setting that the server adds to each template
_OF_SERVER = "routing.allocation.include._tier_preference"
_MOST_NAMED = 4


@dataclass(frozen=True)
class Described:
    """Index created at once, and the patterns of indices like ``template_layout``."""

    name: str
    index: str
    layout: Body
    patterns: Sequence[str]
    template_layout: Body


def described(
    names: Names, tables: Collection[Table], how: IndexSettings, *, jobs: bool
) -> Iterator[Described]:
    """Yield all our indices; ``jobs``: include jobs."""
    if jobs:
        layout = jobs_index(how, monthly=True)
        yield Described("jobs", names.jobs_of(), layout, names.job_patterns, layout)
    yield Described("state", names.state, state_index(how), [names.state], state_index(how))
    for table in tables:
        layout, of_month = (rows_index(table, how, monthly=monthly) for monthly in (False, is_monthly(table)))
        name = names.alias(table).removeprefix(f"{names.prefix}-")
        patterns = [f"{names.alias(table)}-{digit}*" for digit in DIGITS]
        yield Described(
            name, names.rows(table), layout, patterns if is_monthly(table) else patterns[:1], of_month
        )


def wanted_templates(
    cluster: Cluster, names: Names, tables: Collection[Table], how: IndexSettings, *, jobs: bool
) -> dict[str, Body]:
    """Return our templates by name, in the product's form."""
    return {
        names.template(one.name): cluster.index_template(
            one.patterns, one.template_layout, how.template_priority
        )
        for one in described(names, tables, how, jobs=jobs)
    }


def set_up_template(cluster: Cluster, name: str, template: Body, *, dry_run: bool) -> list[str]:
    """Create or replace a template; return a line if anything was to do."""
    meta = {"layout": LAYOUT, "digest": content_id(dict(template))}
    try:
        answer = ask(cluster, f"/_index_template/{name}")
        stored = answer["index_templates"][0]["index_template"] if answer else {}
        # the digest is of what we want; the content may have been edited since
        if stored.get("_meta") == meta and not _changed(stored, template):
            return []
        if answer and stored.get("_meta", {}).keys() != meta.keys():
            raise SchemaError(
                f"{cluster.location} has a template {name} that does not belong to esjobs; remove it, or use "
                "a different prefix (cluster.prefix)"
            )
        if not dry_run:
            cluster.call("PUT", f"/_index_template/{name}", {**template, "_meta": meta})
    except RefusedError as error:
        if not error.forbidden:
            raise
        return [f"no template {name}: this user may not manage index templates"]
    return [f"{'would create' if dry_run else 'created'} template {name}"]


def template_ailments(
    cluster: Cluster, names: Names, tables: Collection[Table], how: IndexSettings, *, jobs: bool
) -> Iterator[Ailment]:
    """Yield templates that give our indices a wrong layout, as simulated by the server if permitted."""
    try:
        answer = ask(cluster, "/_index_template") or {}
    except RefusedError:
        return  # this user may not see them
    templates = {each["name"]: each["index_template"] for each in answer.get("index_templates", [])}
    ours = list(described(names, tables, how, jobs=jobs))
    for name, own in wanted_templates(cluster, names, tables, how, jobs=jobs).items():
        lines = _changed(templates[name], own) if name in templates else []
        if lines:
            yield Ailment(f"template {name}", f"changed by another program: {_listed(lines)}", "esjobs setup")
    for winner, lines in _won_by_others(cluster, names, ours, templates, how.template_priority).items():
        theirs = _priority(templates[winner])
        more = f"; and {len(lines) - 1} more indices" if len(lines) > 1 else ""
        yield Ailment(
            f"template {winner}",
            f"its priority {theirs} is above {how.template_priority} of esjobs; {lines[0]}{more}",
            "raise cluster.template_priority, or narrow its patterns",
        )


def _won_by_others(
    cluster: Cluster, names: Names, ours: Sequence[Described], templates: Mapping[str, Body], priority: int
) -> dict[str, list[str]]:
    """Return the foreign templates that win over ours, with what each does to our indices."""
    found: dict[str, list[str]] = {}
    for one in ours:
        # the state has one index, which its own pattern names
        name = one.index if one.patterns == [one.index] else f"{one.patterns[-1][:-2]}000002"
        winner = _winner(templates, name)
        if winner is None or winner == names.template(one.name):
            continue
        differing = _differing(_simulated(cluster, name, templates[winner]), one.template_layout)
        if _priority(templates[winner]) > priority:
            found.setdefault(winner, []).append(f"{name}: {_listed(differing) or 'nothing else than ours'}")
    return found


def _winner(templates: Mapping[str, Body], index: str) -> str | None:
    # as the server decides: patterns by glob, then the highest priority
    matching = [
        name
        for name, each in templates.items()
        if any(fnmatchcase(index, pattern) for pattern in each["index_patterns"])
    ]
    return max(matching, key=lambda name: _priority(templates[name]), default=None)


def _priority(template: Body) -> int:
    return int(template.get("priority", 0))


def _simulated(cluster: Cluster, index: str, template: Body) -> Body:
    try:
        answer = cluster.call("POST", f"/_index_template/_simulate_index/{index}")
        return dict(answer.get("template", {}))
    except RefusedError:
        return dict(template.get("template", {}))


def _changed(stored: Body, wanted: Body) -> list[str]:
    lines = [
        f"{name} {stored.get(name)}, not {wanted[name]}"
        for name in ("index_patterns", "priority")
        if stored.get(name) != wanted[name]
    ]
    composed = stored.get("composed_of", [])
    lines += [f"composed of {', '.join(composed)}"] if composed else []
    return lines + _differing(stored.get("template", {}), wanted["template"])


def _differing(found: Body, wanted: Body) -> list[str]:
    settings, needed = (_flat(each.get("settings", {})) for each in (found, wanted))
    settings.pop(_OF_SERVER, None)
    lines = [
        f"{name} {settings.get(name, 'missing')}, not {needed.get(name, 'set')}"
        for name in sorted({*settings, *needed})
        if settings.get(name) != needed.get(name)
    ]
    lines += _differing_fields(found.get("mappings", {}), wanted.get("mappings", {}))
    return lines + [f"alias {alias} added" for alias in sorted(found.get("aliases", {}))]


def _differing_fields(found: Body, wanted: Body) -> list[str]:
    fields, needed = (each.get("properties", {}) for each in (found, wanted))
    lines = [f"field {name} differs" for name in sorted(needed) if fields.get(name) != needed[name]]
    lines += [f"field {name} added" for name in sorted({*fields} - {*needed})]
    dynamic, needed_dynamic = (str(each.get("dynamic")) for each in (found, wanted))
    if dynamic != needed_dynamic:
        lines.append(f"dynamic {dynamic}, not {needed_dynamic}")
    return lines


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in settings.items():
        full_name = f"{before}{name}"
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{full_name}.")
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            flat[full_name.removeprefix("index.")] = text
    return flat


def _listed(lines: Sequence[str]) -> str:
    more = f" and {len(lines) - _MOST_NAMED} more" if len(lines) > _MOST_NAMED else ""
    return f"{', '.join(lines[:_MOST_NAMED])}{more}"
