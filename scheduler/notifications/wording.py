"""Templates by language: ours, and those of a user's folder, which replace them."""

import re
import socket
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
LONGEST_SUBJECT = 90  # Characters, the prefix included: what lists of mails show
_WIDTH = 76  # Columns that a quoted answer may still indent [RFC 5322 advises 78]
_NO_BREAK = "\u00a0%"
# Raised by the expressions of a template, which is the user's own
_OF_EXPRESSIONS = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError)


@dataclass(frozen=True)
class Inline:
    """Picture in a mail: ``Content-ID``, width in pixels, description."""

    cid: str
    width: int
    alt: str


@dataclass(frozen=True)
class Texts:
    """Texts of a message."""

    subject: str
    text: str
    html: str
    chat: str


class Wording:
    """Templates in one language. Raises :class:`SettingsError` for a language without a folder."""

    def __init__(self, settings: NotifySettings, recipient: Recipient) -> None:
        self._settings = settings
        self._language = recipient.language or settings.language
        own = [] if settings.templates is None else [settings.templates.expanduser()]
        folders = [folder / self._language for folder in (*own, OURS)]
        if not any(folder.is_dir() for folder in folders):
            raise SettingsError(
                f"no templates for language '{self._language}' (recipient '{recipient.name}'); create "
                f"{folders[0]}"
            )
        # a template that a language lacks is taken in English
        self._environment = _environment((*folders, *(folder / FALLBACK for folder in (*own, OURS))))

    def subject(self, digest: Digest) -> str:
        """Return one visible line with the prefix, shortened if too long."""
        line = visible(" ".join(self._render("subject.txt", digest).split()))
        return shortened(PREFIX + line, LONGEST_SUBJECT)

    def texts(self, digest: Digest, subject: str, picture: Inline | None) -> Texts:
        """Return all texts of a message; ``subject`` as it was when queued. Raises :class:`SettingsError`
        with the template and its error.
        """
        title = subject.removeprefix(PREFIX)
        text = re.sub(r"\n{3,}", "\n\n", self._render("mail.txt", digest, title, picture)).strip() + "\n"
        html = self._render("mail.html", digest, title, picture)
        return Texts(subject, text, html, self._render("chat.txt", digest, title).strip())

    @property
    def _link(self) -> str | None:
        # A link with placeholders needs the name of one queue.
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
                host=socket.gethostname(),
            )
        except jinja2.TemplateSyntaxError as error:
            where = f"{error.filename or name}, line {error.lineno}"
            raise SettingsError(f"template error in {where}: {error.message}") from error
        except (jinja2.TemplateError, *_OF_EXPRESSIONS) as error:
            raise SettingsError(f"template {self._language}/{name} failed: {error}") from error


@lru_cache(maxsize=16)
def _environment(folders: tuple[Path, ...]) -> ImmutableSandboxedEnvironment:
    # Compiled once, and again when files change; the first folder with a template wins. Sandboxed: a shared
    # folder of templates must not run code with the rights of the service.
    environment = ImmutableSandboxedEnvironment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=False,
    )
    environment.filters |= {"wrapped": wrapped, "short": in_the_middle}
    return environment


def wrapped(text: str, first: str = "", others: str | None = None) -> str:
    """Wrap a text for mail programs; names are not broken.

    >>> wrapped("a " * 3, "  ")
    '  a a a'
    """
    # "39 %" stays on one line
    filled = textwrap.fill(
        text.replace(" %", _NO_BREAK),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=first if others is None else others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_NO_BREAK, " %")


def in_the_middle(text: str, longest: int = 44) -> str:
    """Shorten a name in its middle, where names differ least; ASCII dots, for subjects.

    >>> in_the_middle("CERN-PROD_UCORE"), in_the_middle("abcdefghij", 7)
    ('CERN-PROD_UCORE', 'ab...ij')
    """
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


def shortened(text: str, longest: int) -> str:
    """Shorten a text at its end, after a word if that keeps at least half.

    >>> shortened("abcdefgh", 7), shortened("abcdefg", 7), shortened("one two, three", 13)
    ('abcd...', 'abcdefg', 'one two...')
    """
    if len(text) <= longest:
        return text
    most = longest - 3
    words = text[: most + 1].rpartition(" ")[0].rstrip(" ,;:(")
    return f"{words if 2 * len(words) >= most else text[:most].rstrip()}..."
