"""Delivery of the outbox in rounds: a slow receiver delays nobody else."""

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from esjobs.core.clock import Clock
from esjobs.core.errors import MissingExtraError, SettingsError
from esjobs.core.plugins import warn
from esjobs.core.redact import excerpt
from esjobs.core.words import ALL_TYPES
from esjobs.flags.answering.links import Links
from scheduler.notifications.channels import chat, webhook
from scheduler.notifications.channels.mail import send_mail
from scheduler.notifications.channels.mime import cid_of, mail_of
from scheduler.notifications.channels.outcome import DeliveryError
from scheduler.notifications.channels.web import post
from scheduler.notifications.digest import Digest, digest_of
from scheduler.notifications.notices import Notice
from scheduler.notifications.outbox import GONE, Entry, abandoned
from scheduler.notifications.picture import WIDTH, Picture, picture_of
from scheduler.notifications.redact import host_of, remember_all, value_of
from scheduler.notifications.settings import MailSettings, NotifySettings, Recipient, is_web_address
from scheduler.notifications.wording import PREFIX, Inline, Texts, Wording

_log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0


@dataclass(frozen=True)
class Rendered:
    """A message in its final form."""

    digest: Digest
    texts: Texts
    picture: Picture | None


class Post:
    """Delivery of messages: settings, limit drawn in pictures, clock of signatures, links to answer by."""

    def __init__(
        self,
        settings: NotifySettings,
        limit: float,
        clock: Clock,
        links: Callable[[], Links | None] = lambda: None,
    ) -> None:
        self.settings = settings
        self._limit = limit
        self._clock = clock
        self._links = links

    def subject(self, recipient: Recipient, notices: Sequence[Notice]) -> str:
        """Return the subject of a message; a plain one if its template is broken, which delivery reports."""
        digest = digest_of("-", recipient.name, recipient.role, notices, self.settings.link)
        try:
            return Wording(self.settings, recipient).subject(digest)
        except SettingsError:
            return f"{PREFIX}Night {digest.days}"

    def address(self, recipient: Recipient) -> str:
        """Return the destination as logged: mail address or host."""
        if recipient.address is not None:
            return recipient.address
        try:
            url = value_of(recipient.url, recipient.url_file, "the url")
            return host_of(url) if url else "-"
        except (SettingsError, ValueError):
            return f"{recipient.url_file}"

    def rendered(self, entry: Entry, recipient: Recipient) -> Rendered:
        """Return texts and picture of an entry; :class:`SettingsError` for a broken template."""
        notices = entry.parsed
        digest = digest_of(
            entry.notification,
            recipient.name,
            recipient.role,
            notices,
            self.settings.link,
            self._answer_by(entry, recipient),
        )
        picture = _picture(notices, self._limit) if recipient.channel == "mail" else None
        inline = None if picture is None else Inline(cid_of(entry), WIDTH, picture.alt)
        return Rendered(
            digest, Wording(self.settings, recipient).texts(digest, entry.subject, inline), picture
        )

    def _answer_by(self, entry: Entry, recipient: Recipient) -> Callable[[Notice], str]:
        # a link is an authorisation: a chat has many readers, a mail to a site those who may answer
        is_mail_to_site = recipient.role == "site" and recipient.channel == "mail"
        links = self._links() if is_mail_to_site else None

        def answer(notice: Notice) -> str:
            if links is None or notice.kind not in ("opened", "reopened") or notice.name is None:
                return ""
            kind, about = notice.processing_type or ALL_TYPES, (entry.notification, notice.id)
            return links.address(notice.level or "queue", kind, notice.name, about, entry.first_at)

        return answer

    def body(self, entry: Entry, recipient: Recipient, made: Rendered) -> bytes:
        """Return the body: a mail, or the JSON of other channels."""
        match recipient.channel:
            case "mail":
                return mail_of(entry, made.texts, made.picture, self._server, recipient).as_bytes()
            case "webhook":
                return webhook.body_of(entry, entry.parsed, made.texts.chat)
            case form:
                return chat.body_of(made.digest, made.texts.chat, form)

    @property
    def _server(self) -> MailSettings:
        if self.settings.mail is None:
            raise SettingsError("no mail server in the settings; set [notify.mail] host")
        return self.settings.mail

    def deliver(self, entry: Entry, recipient: Recipient) -> None:
        """Deliver a message once. Raises :class:`DeliveryError`."""
        try:
            self._deliver(entry, recipient)
        except SettingsError as error:
            raise DeliveryError(str(error), "later") from None

    def _deliver(self, entry: Entry, recipient: Recipient) -> None:
        settings, made = self.settings, self.rendered(entry, recipient)
        # before anything can fail: an error may quote any of them
        remember_all(settings)
        if recipient.channel == "mail":
            server = self._server
            mail = mail_of(entry, made.texts, made.picture, server, recipient)
            send_mail(server, mail, recipient.address or "", timeout_s=settings.timeout_s)
            return
        url = value_of(recipient.url, recipient.url_file, "the url") or ""
        if not is_web_address(url):
            raise SettingsError(f"{recipient.url_file} does not contain an address such as https://HOST/PATH")
        body = self.body(entry, recipient, made)
        headers = {}
        if recipient.channel == "webhook":
            secret = value_of(recipient.secret, recipient.secret_file, "the secret") or ""
            headers = webhook.signed(entry.notification, self._clock(), body, secret)
        post(
            url,
            body,
            headers,
            timeout_s=settings.timeout_s,
            ca_file=settings.ca_file,
            proxy=None if settings.proxy is None else settings.proxy.get_secret_value(),
        )

    def attempt(self, entry: Entry) -> tuple[Entry, DeliveryError | None]:
        """Return an entry after one delivery attempt, and the error if it failed."""
        recipient = self.settings.recipient(entry.recipient)
        if recipient is None:
            return abandoned(entry, GONE), None
        try:
            self.deliver(entry, recipient)
        except DeliveryError as error:
            return self._failed(entry, error), error
        except Exception as error:
            _log.exception("message %s to %s: internal error", entry.notification, entry.recipient)
            defect = DeliveryError(excerpt(f"internal error in esjobs: {error!r}", 300), "later")
            return self._failed(entry, defect), defect
        now = self._clock()
        tried = replace(entry, attempts=entry.attempts + 1, tried_at=now)
        return replace(tried, state="sent", sent_at=now, error=None), None

    def _failed(self, entry: Entry, error: DeliveryError) -> Entry:
        now = self._clock()
        tried = replace(entry, state="failed", attempts=entry.attempts + 1, tried_at=now, error=str(error))
        if error.again == "never":
            return abandoned(tried, str(error))
        days = (now - entry.first_at).days
        if days >= self.settings.give_up_days:
            return abandoned(tried, f"not delivered in {days} days: {error}")
        return tried


def deliver_all(
    mailer: Post,
    waiting: Sequence[Entry],
    mark: Callable[[Entry], None],
    *,
    pause: Callable[[float], None],
    alive: Callable[[], None] = lambda: None,
) -> list[Entry]:
    """Try everything once, then retry the failures that may pass; return the final entries.

    ``mark`` is called after each attempt, ``alive`` before it: it raises if another process has taken the
    lease. Pauses double, respect the receivers' requests, and last a minute at most.
    """
    ended: dict[str, Entry] = {}
    requested_s: list[float] = []

    def round_of(pending: list[Entry]) -> list[Entry]:
        requested_s.clear()
        again = []
        for entry in pending:
            alive()
            tried, error = mailer.attempt(entry)
            mark(tried)
            ended[tried.notification] = tried
            if error is not None and error.again == "now" and tried.state == "failed":
                again.append(tried)
                requested_s.append(error.wait_s or 0.0)
        return again

    rest = list(waiting)
    for attempt in range(mailer.settings.attempts):
        rest = round_of(rest)
        if not rest or attempt == mailer.settings.attempts - 1:
            break
        # up to a second of chance, so that installations do not return together
        usual = FIRST_PAUSE_S * 2.0 ** min(attempt, 10) + random.random()  # noqa: S311
        pause(min(max(usual, *requested_s), LONGEST_PAUSE_S))
    return list(ended.values())


def _picture(notices: Sequence[Notice], limit: float) -> Picture | None:
    """Return the picture of a mail; without Pillow the mail is sent without it, and a line is logged."""
    try:
        return picture_of(notices, limit)
    except MissingExtraError as error:
        warn(f"mails are sent without their picture: {error}")
        return None
