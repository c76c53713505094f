"""A request as its handler gets it."""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from esjobs.api.session import Session
from esjobs.core.errors import UsageError
from esjobs.flags.answering.journal import Journal
from esjobs.flags.answering.links import Links
from esjobs.web.access import Reader, Role
from esjobs.web.answers import Reply
from esjobs.web.source import Shown

Handler = Callable[["Request"], Reply]


class GoneError(UsageError):
    """Cursor of rows that are no longer shown."""


class AbsentError(UsageError):
    """Address that leads to nothing."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an address; ``many``: it may be repeated."""

    name: str
    about: str
    type: str = "string"
    many: bool = False
    choices: tuple[str, ...] = ()
    most: int | None = None


@dataclass(frozen=True)
class Route:
    """An address with a method. ``forms``: formats of its answers, the first is the default.

    ``shows``: what its answer is about, in one sentence. ``parameters``: of the address, or with POST of the
    form. ``role``: the least that a reader needs. ``private``: never cached. ``acts``: it shows what people
    have entered.
    """

    pattern: str
    handler: Handler
    shows: str
    parameters: tuple[Parameter, ...] = ()
    forms: tuple[str, ...] = ("html",)
    role: Role = "public"
    method: str = "GET"
    private: bool = False
    acts: bool = False


@dataclass(frozen=True)
class Acting:
    """Means of entering something: journal and links of the installation, each None where absent."""

    journal: Journal | None = None
    links: Links | None = None


def conditions_in(text: str) -> list[str]:
    """Return the conditions of a field of a form, between semicolons with spaces."""
    return [each.strip() for each in text.split(" ; ") if each.strip()]


@dataclass(frozen=True)
class Request:
    """A request: what is shown, the parts of the path, parameters, format, reader.

    ``path``: the canonical path. ``hides_people``: readers see no names of people.
    """

    shown: Shown
    session: Session
    now: datetime
    path: str
    parts: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]]
    form: str
    hides_people: bool
    reader: Reader
    acting: Acting

    def one(self, name: str) -> str | None:
        """Return the value of a parameter; None if it is absent or empty."""
        return next(iter(self.values.get(name, ())), "") or None

    def many(self, name: str) -> tuple[str, ...]:
        """Return all values of a parameter, without empty ones."""
        return tuple(filter(None, self.values.get(name, ())))

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions; a form has them in one field, between semicolons with spaces."""
        return tuple(each for text in self.many("where") for each in conditions_in(text))

    def number(self, name: str, usual: int, most: int) -> int:
        """Return a whole number from 1 to ``most``."""
        text = self.one(name)
        if text is None:
            return usual
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most and len(text) < 9):
            raise UsageError(f"{name} must be a whole number from 1 to {most:,}; got '{text:.40}'")
        return int(text)

    def flag(self, name: str) -> bool:
        """Return True for yes."""
        text = self.one(name)
        if text not in (None, "yes", "no"):
            raise UsageError(f"{name} must be yes or no; got '{text:.40}'")
        return text == "yes"

    def address(self, **changes: str) -> str:
        """Return the address of this request with other parameters."""
        values = {name: each for name, each in self.values.items() if any(each)}
        values |= {name: (value,) for name, value in changes.items()}
        query = urlencode([(name, each) for name, many in values.items() for each in many if each])
        return f"{self.path}?{query}" if query else self.path

    def cursor(self) -> list[int | str] | None:
        """Return what the cursor of the request holds. Raises :class:`UsageError` for one of other rows."""
        text = self.one("cursor")
        if text is None:
            return None
        try:
            digest, *rest = json.loads(base64.urlsafe_b64decode(text[:400] + "=="))
            position = [each for each in rest if isinstance(each, int | str)]
        except (ValueError, TypeError):
            raise UsageError("the cursor cannot be read; take it from 'next' of the answer before") from None
        if digest != self._digest() or len(position) != len(rest) or len(position) != 2:
            raise UsageError("the cursor belongs to another question; begin again without it")
        return position

    def next_address(self, *position: int | str) -> str:
        """Return the address of the rows that follow."""
        text = json.dumps([self._digest(), *position], separators=(",", ":"))
        return self.address(cursor=base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))

    def _digest(self) -> str:
        rest = [(name, each) for name, each in sorted(self.values.items()) if name not in ("cursor", "limit")]
        return hashlib.sha256(repr((self.path, rest)).encode()).hexdigest()[:12]
