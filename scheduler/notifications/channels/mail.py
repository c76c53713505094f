"""Mail delivery: one connection per message, so that recipients do not affect each other."""

import contextlib
import smtplib
import socket
import ssl
from email.message import EmailMessage

from esjobs.core.redact import excerpt, remember
from scheduler.notifications.channels.outcome import Again, DeliveryError
from scheduler.notifications.deadline import within
from scheduler.notifications.redact import value_of
from scheduler.notifications.settings import MailSettings

_LONGEST = 300


def send_mail(server: MailSettings, message: EmailMessage, address: str, *, timeout_s: float) -> None:
    """Send a message to one address; return when the server has accepted it.

    Raises :class:`DeliveryError`. If the connection broke after the message was sent it may have been
    accepted; the next attempt carries the same ``Message-ID``.
    """
    password = value_of(server.password, server.password_file, "the password of the mail server")
    where = f"{server.host}:{server.port_used}"
    # AUTH PLAIN sends user and password as one word, which an answer may repeat
    if password is not None:
        remember(f"\0{server.user}\0{password}")
    try:
        within(timeout_s, lambda: _hand_over(server, message, address, password, timeout_s))
    except (smtplib.SMTPException, OSError, UnicodeError, ValueError) as error:
        reason, again = _refused(error) if isinstance(error, smtplib.SMTPException) else _broken(error)
        raise DeliveryError(excerpt(f"{where}: {reason}", _LONGEST), again) from None


def _hand_over(
    server: MailSettings, message: EmailMessage, address: str, password: str | None, timeout_s: float
) -> None:
    ca_file = None if server.ca_file is None else str(server.ca_file.expanduser())
    context = ssl.create_default_context(cafile=ca_file)
    client = (
        smtplib.SMTP_SSL(server.host, server.port_used, timeout=timeout_s, context=context)
        if server.security == "tls"
        else smtplib.SMTP(server.host, server.port_used, timeout=timeout_s)
    )
    try:
        if server.security == "starttls":
            # raises if the server does not offer it: nothing is sent unencrypted instead
            client.starttls(context=context)
        if server.user is not None and password is not None:
            client.login(server.user, password)
        client.send_message(message, server.sender, [address])
    # not quit(): a server that hangs would hang here again
    except BaseException:
        client.close()
        raise
    # the server has accepted the message: a failure from here on must not send it twice
    with contextlib.suppress(smtplib.SMTPException, OSError):
        client.quit()
    client.close()


def _refused(error: smtplib.SMTPException) -> tuple[str, Again]:
    match error:
        case smtplib.SMTPRecipientsRefused():
            code, answer = next(iter(error.recipients.values()))
            return f"recipient address rejected ({_answer(code, answer)})", _again(code, "never")
        case smtplib.SMTPResponseException():
            texts = (each for kind, each in _RESPONSES.items() if isinstance(error, kind))
            text, permanent = next(texts, ("refused ({said})", "later"))
            said = _answer(error.smtp_code, error.smtp_error)
            sender = getattr(error, "sender", "")
            return text.format(said=said, sender=sender), _again(error.smtp_code, permanent)
        case smtplib.SMTPNotSupportedError():
            return f"{error}; check notify.mail.security and notify.mail.user", "later"
        case smtplib.SMTPServerDisconnected():
            return "the server closed the connection before it accepted the message", "now"
        case _:
            return f"refused ({error})", "later"


# What a server refuses, and when to try again if it is permanent
_RESPONSES: dict[type[smtplib.SMTPResponseException], tuple[str, Again]] = {
    smtplib.SMTPAuthenticationError: (
        "login rejected ({said}); check notify.mail.user and its password",
        "later",
    ),
    smtplib.SMTPSenderRefused: ("sender {sender} rejected ({said}); check notify.mail.sender", "later"),
    smtplib.SMTPDataError: ("message rejected ({said})", "never"),
}


def _again(code: int, permanent: Again) -> Again:
    # 4xx is temporary, 5xx permanent [RFC 5321, 4.2.1]
    return "now" if code < 500 else permanent


def _broken(error: Exception) -> tuple[str, Again]:
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"certificate rejected ({error.verify_message}); set notify.mail.ca_file to the authority "
                "that signed it, and notify.mail.host to the name in the certificate"
            ), "later"
        case ssl.SSLError():
            return (
                f"TLS failed ({error.reason or error}); check notify.mail.port and notify.mail.security"
            ), "later"
        case TimeoutError():
            return "no response within notify.timeout_s", "now"
        case socket.gaierror():
            return f"unknown host ({error.strerror}); check notify.mail.host", "now"
        case FileNotFoundError() | PermissionError():
            return f"cannot read {error.filename or 'notify.mail.ca_file'} ({error.strerror})", "later"
        case OSError():
            return f"cannot connect ({error.strerror or error})", "now"
        case _:
            return f"cannot send the message ({error})", "never"


def _answer(code: int, answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return excerpt(f"{code} {text}", 200)
