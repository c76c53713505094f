"""A file of saved objects as its objects: what they are called and what they refer to."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from esjobs.core.errors import InputError


@dataclass(frozen=True, order=True)
class SavedObject:
    """An object by its two names, and its title for people (empty where it has none)."""

    type: str
    id: str
    title: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Type and id, the identity in a server."""
        return self.type, self.id

    def __str__(self) -> str:
        return f"{self.type}/{self.id}"


@dataclass(frozen=True)
class Bundle:
    """Saved objects in the order of their file, and the file as it is sent."""

    content: bytes
    objects: tuple[SavedObject, ...]
    references: tuple[tuple[SavedObject, str, str], ...]
    """References: the object, then type and id of its target."""

    def dangling(self) -> tuple[tuple[SavedObject, str, str], ...]:
        """References that lead out of the bundle. A server would take them, and show a broken panel."""
        present = {one.key for one in self.objects}
        return tuple(one for one in self.references if one[1:] not in present)


def renamed(bundle: Bundle, old: str, new: str) -> Bundle:
    """The same objects under ids that begin with ``new`` in place of ``old``, wherever an id stands.

    Ids are alike in all spaces of a server, so that a second space needs others. What else begins like them
    (the names of indices) stays.
    """
    ids = {one.id.removeprefix(old) for one in bundle.objects if one.id.startswith(f"{old}-")}
    # the longest first: an alternative stops at the first that fits
    rests = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
    # ids stand inside texts of JSON, too, so the file is changed as a text
    pattern = re.compile(rf"(?<!\w){re.escape(old)}(?:{rests})(?![\w-])")
    text = bundle.content.decode("utf-8")
    changed = pattern.sub(lambda found: new + found[0][len(old) :], text)
    return read_bundle(changed.encode(), f"the bundle under '{new}'")


def read_bundle(content: bytes, name: str) -> Bundle:
    """The objects of a file of saved objects (one JSON object a line); ``name`` is for messages.

    Raises :class:`InputError` for a line that is no saved object, the same object twice, a reference that
    leads out of the file, and a file without objects.
    """
    objects: list[SavedObject] = []
    references: list[tuple[SavedObject, str, str]] = []
    seen: dict[tuple[str, str], int] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        found = _object(line, name, number)
        # the last line of an export counts its objects
        if "exportedCount" in found and "type" not in found:
            continue
        one = SavedObject(_text(found, "type", name, number), _text(found, "id", name, number), _title(found))
        if one.key in seen:
            raise InputError(
                f"{name}, line {number}: {one} occurs twice, first in line {seen[one.key]}; remove one"
            )
        seen[one.key] = number
        objects.append(one)
        references += ((one, *target) for target in _references(found, name, number))
    if not objects:
        raise InputError(f"{name} contains no saved objects; use a file written by: esjobs dashboards render")
    bundle = Bundle(content, tuple(objects), tuple(references))
    for user, type_, id_ in bundle.dangling()[:1]:
        raise InputError(
            f"{name}: {user} refers to {type_}/{id_}, which is not in the file. A server would import it and "
            "show a broken panel; render the bundle again"
        )
    return bundle


def _object(line: bytes, name: str, number: int) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(
            f"{name}, line {number}: not a JSON object; expected one saved object per line, as written by: "
            "esjobs dashboards render"
        )
    return found


def _text(found: Mapping[str, Any], key: str, name: str, number: int) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{name}, line {number}: a saved object without '{key}'; render the bundle again")
    return value


def _title(found: Mapping[str, Any]) -> str:
    attributes = found.get("attributes")
    if not isinstance(attributes, dict):
        return ""
    names: Iterable[Any] = (attributes.get(key) for key in ("name", "title"))
    return next((value for value in names if isinstance(value, str) and value), "")


def _references(found: Mapping[str, Any], name: str, number: int) -> list[tuple[str, str]]:
    references = found.get("references", [])
    try:
        return [(str(one["type"]), str(one["id"])) for one in references]
    except (TypeError, KeyError):
        raise InputError(
            f"{name}, line {number}: references without type and id; render the bundle again"
        ) from None
