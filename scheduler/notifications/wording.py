"""Templates: ours, and those of a user's folder that take their place, by language."""

import re
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from esjobs.core.errors import SettingsError
from esjobs.core.text import visible
from esjobs.core.version import __version__
from scheduler.notifications.digest import Digest
from scheduler.notifications.settings import NotifySettings, Recipient

OURS = Path(__file__).parent / "templates"
FALLBACK = "en"
PREFIX = "[esjobs] "
LONGEST_SUBJECT = 90
"""Characters, the prefix included: what lists of mails show."""
_WIDTH = 76


@dataclass(frozen=True)
class Inline:
    """A picture inside a mail: its ``Content-ID``, width in pixels as it is shown, and what it shows."""

    cid: str
    width: int
    alt: str


@dataclass(frozen=True)
class Texts:
    """A message in words."""

    subject: str
    text: str
    html: str
    chat: str


class Wording:
    """The templates of one recipient's language.

    Raises :class:`SettingsError` for a language that there is no folder of.
    """

    def __init__(self, settings: NotifySettings, recipient: Recipient) -> None:
        self._settings = settings
        self._language = recipient.language or settings.language
        own = [] if settings.templates is None else [settings.templates.expanduser()]
        folders = [folder / self._language for folder in (*own, OURS)]
        if not any(folder.is_dir() for folder in folders):
            raise SettingsError(
                f"no templates of language '{self._language}' for '{recipient.name}'; make {folders[0]}"
            )
        # what a language lacks is taken in English
        self._environment = _environment((*folders, *(folder / FALLBACK for folder in (*own, OURS))))

    def subject(self, digest: Digest) -> str:
        """One visible line, the prefix in front, cut where it is too long."""
        line = visible(" ".join(self._render("subject.txt", digest).split()))
        return shortened(PREFIX + line, LONGEST_SUBJECT)

    def texts(self, digest: Digest, subject: str, picture: Inline | None) -> Texts:
        """All that is written of a message; ``subject`` as it was when the message was queued.

        Raises :class:`SettingsError` that names the template and what is wrong with it.
        """
        title = subject.removeprefix(PREFIX)
        text = re.sub(r"\n{3,}", "\n\n", self._render("mail.txt", digest, title, picture)).strip() + "\n"
        html = self._render("mail.html", digest, title, picture)
        return Texts(subject, text, html, self._render("chat.txt", digest, title).strip())

    @property
    def _link(self) -> str | None:
        """The address for a message that is not about one queue; None where it needs the name of one."""
        link = self._settings.link
        return None if link is None or "{queue}" in link or "{site}" in link else link

    def _render(self, name: str, digest: Digest, subject: str = "", picture: Inline | None = None) -> str:
        try:
            return self._environment.get_template(name).render(
                digest=digest,
                subject=subject,
                picture=picture,
                link=self._link,
                contact=self._settings.contact,
                language=self._language,
                version=__version__,
            )
        except jinja2.TemplateSyntaxError as error:
            where = f"{error.filename or name}, line {error.lineno}"
            raise SettingsError(f"a template is broken: {where}: {error.message}") from error
        except jinja2.TemplateError as error:
            raise SettingsError(f"template {self._language}/{name} cannot be used: {error}") from error
        except (
            TypeError,
            ValueError,
            ArithmeticError,
            AttributeError,
            LookupError,
            UnicodeDecodeError,
        ) as error:
            raise SettingsError(f"template {self._language}/{name} cannot be used: {error}") from error


@lru_cache(maxsize=16)
def _environment(folders: tuple[Path, ...]) -> ImmutableSandboxedEnvironment:
    """Templates of folders, the first that has one: compiled once, and again when their files change."""
    environment = ImmutableSandboxedEnvironment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=False,
    )
    environment.filters |= {"wrapped": wrapped, "short": in_the_middle}
    return environment


def wrapped(text: str, first: str = "", others: str | None = None) -> str:
    """Text in lines that mail programs do not break; names stay whole.

    >>> wrapped("a " * 3, "  ")
    '  a a a'
    """
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=first if others is None else others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def in_the_middle(text: str, longest: int = 44) -> str:
    """A name of at most so many characters, cut where names differ least; full stops, for subjects are ASCII.

    >>> in_the_middle("CERN-PROD_UCORE"), in_the_middle("abcdefghij", 7)
    ('CERN-PROD_UCORE', 'ab...ij')
    """
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


def shortened(text: str, longest: int) -> str:
    """Text of at most so many characters, cut at its end.

    >>> shortened("abcdefgh", 7), shortened("abcdefg", 7)
    ('abcd...', 'abcdefg')
    """
    return text if len(text) <= longest else f"{text[: longest - 3].rstrip()}..."
