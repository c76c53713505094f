"""Rule files: read all or none; errors name file, line and reason.

The default rules (``default.toml``) come first; user files add rules or change single keys. Form:
``docs/scores.md``.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from esjobs.core.errors import InputError
from esjobs.issues.rules.building import (
    BUILT,
    RuleError,
    built_condition,
    built_rule,
    limits_of,
    tag_name,
    unit_names,
)
from esjobs.issues.rules.places import Places
from esjobs.issues.rules.rule import Rule, Rules

# Bytes of a file of rules
_LARGEST_FILE = 256 << 10
_MOST_RULES = 500
DEFAULTS = "default.toml"
"""File of the default rules."""

_Path = tuple[str, ...]


class _Source:
    """Rule file with line numbers."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.places = Places(text)
        try:
            self.content: dict[str, Any] = tomllib.loads(text)
        except RecursionError:
            raise InputError(f"{name} is nested too deeply; a rule must be a table of keys") from None
        except ValueError as error:
            # tomllib says the line itself; only its own words for a long number do not
            raise InputError(f"{name} is not valid TOML: {error}") from None

    def refuse(self, path: _Path, reason: str) -> NoReturn:
        raise InputError(
            f"{self.name}, line {self.places.line(path)}: {reason}. No rule of this file is used"
        )


def read_rules(paths: Iterable[Path] = (), *, defaults: bool = True) -> Rules:
    """Read the default rules and rule files; later files change earlier ones.

    Raises :class:`InputError` in one line with file, line and reason.
    """
    texts = [(DEFAULTS, _shipped())] if defaults else []
    return _read((*texts, *((str(path), _text(Path(path))) for path in paths)))


# by the texts: a night asks for the same rules at each step
@lru_cache(maxsize=4)
def _read(texts: tuple[tuple[str, str], ...]) -> Rules:
    sources = [_Source(*each) for each in texts]
    merged: dict[str, dict[str, Any]] = {}
    conditions: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    owners: dict[_Path, _Source] = {}
    for source in sources:
        _merge(source, merged, conditions, limits, owners)
    if len(merged) > _MOST_RULES:
        sources[-1].refuse((), f"{len(merged)} rules; at most {_MOST_RULES} are allowed")
    return _built(merged, conditions, limits, owners, sources)


def _shipped() -> str:
    return files("esjobs.issues.rules").joinpath(DEFAULTS).read_text(encoding="utf-8")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            # one byte more tells a file that is too large, without reading it
            content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(
            f"cannot read rules {path}: {error.strerror or error}; use a TOML file with rules"
        ) from error
    if len(content) > _LARGEST_FILE:
        raise InputError(f"{path} is larger than {_LARGEST_FILE >> 10} KiB; use a TOML file with rules")
    try:
        # some editors begin UTF-8 with a mark of the order of bytes
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: not UTF-8; save the file as UTF-8") from None


def _merge(
    source: _Source,
    merged: dict[str, dict[str, Any]],
    conditions: dict[str, Any],
    limits: dict[str, Any],
    owners: dict[_Path, _Source],
) -> None:
    _require_tables(source, (), source.content, ("rule", "eligible"))
    eligible = source.content.get("eligible", {})
    _require_tables(source, ("eligible",), eligible, ("limits", "require"))
    for key, content in eligible.items():
        for name, value in content.items():
            (limits if key == "limits" else conditions)[name] = value
            owners["eligible", key, name] = source
    for name, content in source.content.get("rule", {}).items():
        if not isinstance(content, dict):
            source.refuse(("rule", name), "a rule must be a table: [rule.NAME]")
        owners.setdefault(("rule", name), source)
        _merge_rule(source, name, content, merged.setdefault(name, {}), owners)


def _merge_rule(
    source: _Source, name: str, content: Mapping[str, Any], rule: dict[str, Any], owners: dict[_Path, _Source]
) -> None:
    for key, value in content.items():
        if key not in BUILT:
            source.refuse(
                ("rule", name, key), f"unknown key '{key}' in a rule; use one of: {', '.join(BUILT)}"
            )
        owners["rule", name, key] = source
        # limits are merged one by one, any other key is replaced
        # a wrong type is refused later, with its line
        if key == "limits" and isinstance(value, dict):
            earlier = rule.get("limits")
            rule["limits"] = {**(earlier if isinstance(earlier, dict) else {}), **value}
            owners.update({("rule", name, "limits", limit): source for limit in value})
        else:
            rule[key] = value


def _require_tables(
    source: _Source, path: _Path, content: Mapping[str, Any], accepted: tuple[str, ...]
) -> None:
    for key, inner in content.items():
        if key not in accepted:
            source.refuse((*path, key), f"unknown key '{key}'; use one of: {', '.join(accepted)}")
        if not isinstance(inner, dict):
            source.refuse((*path, key), f"{key} must be a table")


def _refuse_unused(
    sources: list[_Source], limits: Mapping[str, float], refuse: Callable[[_Path, str], NoReturn]
) -> None:
    """Refuse limits without a condition, and a ``false`` for a condition that no file has."""
    required = [
        (reason, text)
        for source in sources
        for reason, text in source.content.get("eligible", {}).get("require", {}).items()
    ]
    texts = [text for _, text in required if isinstance(text, str)]
    for limit in limits:
        if not any(re.search(rf"\b{limit}\b", text) for text in texts):
            refuse(("eligible", "limits", limit), f"no condition has a limit '{limit}'")
    written = {reason for reason, text in required if text is not False}
    for reason, _ in required:
        if reason not in written:
            names = ", ".join(f"'{other}'" for other in sorted(written))
            path = ("eligible", "require", reason)
            refuse(path, f"unknown condition '{reason:.80}'; use one of: {names}")


def _built(
    merged: Mapping[str, Mapping[str, Any]],
    conditions: Mapping[str, Any],
    limits: Mapping[str, Any],
    owners: Mapping[_Path, _Source],
    sources: list[_Source],
) -> Rules:
    def refused(path: _Path, reason: str) -> NoReturn:
        # the file of the innermost key that some file wrote
        for end in range(len(path), 0, -1):
            if path[:end] in owners:
                owners[path[:end]].refuse(path, reason)
        sources[-1].refuse(path, reason)

    def tried(path: _Path, build: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return build(*arguments)
        except RuleError as error:
            return refused((*path, *error.path), str(error))

    def older(name: str) -> frozenset[str]:
        """Return limits of a rule from a file before that of its condition."""
        order = {id(source): number for number, source in enumerate(sources)}
        condition = order.get(id(owners.get(("rule", name, "when"))), 0)
        return frozenset(
            path[3]
            for path, source in owners.items()
            if path[:3] == ("rule", name, "limits") and len(path) == 4 and order[id(source)] < condition
        )

    own, units = tried(("eligible",), limits_of, limits)
    _refuse_unused(sources, own, refused)
    eligible = [
        tried(("eligible",), built_condition, reason, text, own, units)
        for reason, text in conditions.items()
        # false: a condition of the defaults that a site does not want
        if text is not False
    ]
    rules: list[Rule] = []
    tags: set[str] = set()
    for name, content in merged.items():
        rule = tried(("rule", name), built_rule, name, content, frozenset(tags), tuple(merged), older(name))
        # a rule that is switched off is checked all the same
        if content.get("enabled", True):
            rules.append(rule)
            tags.add(tag_name(name))
    texts = {"rules": merged, "eligible": dict(conditions), "limits": dict(limits)}
    n_keys = {
        source.name: sum(
            len(inner) if isinstance(inner, dict) else 1
            for table in source.content.values()
            for inner in table.values()
        )
        for source in sources
    }
    return Rules(tuple(rules), tuple(eligible), own, texts, unit_names(units), n_keys)
