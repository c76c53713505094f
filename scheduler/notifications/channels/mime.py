"""Mail of a message: plain text, HTML and picture, byte-equal at every attempt."""

import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

from esjobs.core.text import visible
from scheduler.notifications.notices import Notice
from scheduler.notifications.outbox import Entry
from scheduler.notifications.picture import Picture
from scheduler.notifications.settings import MailSettings, Recipient
from scheduler.notifications.wording import Texts

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def mail_of(
    entry: Entry, texts: Texts, picture: Picture | None, server: MailSettings, recipient: Recipient
) -> EmailMessage:
    """Return the mail of an entry of the outbox to a recipient with an address.

    ``Message-ID`` follows from the entry, so that receivers recognise duplicates; ``In-Reply-To`` and
    ``References`` name the first messages about the same queues; ``List-Id`` is one per role. Header values
    are one visible line each: no name can begin another header.
    """
    domain = server.sender.rpartition("@")[2]
    mail = EmailMessage(policy=SMTP)
    mail["From"] = Address(display_name=visible(server.sender_name), addr_spec=server.sender)
    mail["To"] = Address(addr_spec=recipient.address or "")
    if server.reply_to is not None:
        mail["Reply-To"] = Address(addr_spec=server.reply_to)
    mail["Subject"] = visible(texts.subject)
    mail["Date"] = entry.first_at
    mail["Message-ID"] = f"<{entry.notification}@{domain}>"
    if entry.follows:
        first = " ".join(f"<{name}@{domain}>" for name in entry.follows.split())
        mail["In-Reply-To"] = first
        mail["References"] = first
    mail["List-Id"] = f"{recipient.role} messages of esjobs <{recipient.role}.esjobs.{domain}>"
    # no out-of-office replies [RFC 3834]; Exchange has a header of its own
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail["X-Esjobs-Notification"] = entry.notification
    mail.set_content(_CONTROL.sub("", texts.text), cte="quoted-printable")
    mail.add_alternative(_CONTROL.sub("", texts.html), subtype="html", cte="quoted-printable")
    html = mail.get_body(("html",))
    if picture is not None and isinstance(html, EmailMessage):
        cid, name = f"<{cid_of(entry)}>", "deviations.png"
        html.add_related(picture.png, "image", "png", cid=cid, disposition="inline", filename=name)
    for notice in entry.parsed:
        _attach(mail, notice)
    # some mail programs show a space where a subject is folded; 998 characters are allowed [RFC 5322]
    mail.policy = SMTP.clone(max_line_length=200)
    # random by default: every attempt must send the same bytes
    for number, part in enumerate(mail.walk()):
        if part.is_multipart():
            part.set_boundary(f"=={entry.notification}.{number}==")
    return mail


def _attach(mail: EmailMessage, notice: Notice) -> None:
    """Add the rows and the page of a notice as files."""
    for text, form in ((notice.rows, "csv"), (notice.page, "html")):
        if text is not None:
            name = f"{notice.kind}-{notice.night}.{form}"
            # as bytes: the library rewrites the ends of lines of a text
            body, charset = text.encode(), {"charset": "utf-8"}
            mail.add_attachment(body, maintype="text", subtype=form, filename=name, params=charset)


def cid_of(entry: Entry) -> str:
    """Return the ``Content-ID`` of the picture."""
    return f"deviations.{entry.notification}@esjobs"
