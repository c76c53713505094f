"""Mail to a real server: TLS, login, what it refuses, and what breaks on the way."""

import time
from email.message import EmailMessage
from typing import Any

import pytest

from scheduler.notifications.channels.mail import send_mail
from scheduler.notifications.channels.outcome import DeliveryError
from scheduler.notifications.settings import MailSettings
from tests.messages import raised
from tests.scheduler.notifications.servers import PASSWORD, USER, MailServer, free_port, mail_server
from tests.servers.certificates import Authority

TO = "admin@site.example"

# the server of the tests does not know that TLS began with the connection
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")


def mail(subject: str = "a test") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "esjobs@grid.example", TO, subject
    made["Message-ID"] = "<0123@grid.example>"
    made.set_content("text")
    return made


def send(timeout_s: float = 5.0, **given: Any) -> None:
    send_mail(MailSettings.model_validate(given), mail(), TO, timeout_s=timeout_s)


def failed(timeout_s: float = 5.0, **given: Any) -> DeliveryError:
    with raised(DeliveryError) as caught:
        send(timeout_s, **given)
    assert PASSWORD not in str(caught.value)
    return caught.value


def test_in_the_clear_without_a_login(server: MailServer) -> None:
    send(**server.settings(security="none"))
    [(to, taken)] = server.taken
    assert (to, taken["Message-ID"], taken.get_content().strip()) == (TO, "<0123@grid.example>", "text")


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_with_tls_and_a_login(authority: Authority, security: str) -> None:
    context = authority.server()
    with mail_server(login=True, **{security: context}) as server:
        given = server.settings(security=security, user=USER, password=PASSWORD, ca_file=authority.ca_file)
        send(**given)
        assert len(server.taken) == 1
        assert server.logins
        refused = failed(**given | {"password": "wrong"})
        assert (refused.again, "535" in str(refused)) == ("later", True)
        assert len(server.taken) == 1


def test_a_password_is_read_from_its_file(authority: Authority, tmp_path: Any) -> None:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n", encoding="utf-8")
    with mail_server(login=True, starttls=authority.server()) as server:
        send(**server.settings(user=USER, password_file=path, ca_file=authority.ca_file))
        assert len(server.taken) == 1


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_of_somebody_else(authority: Authority, tmp_path: Any, security: str) -> None:
    stranger = Authority.at(tmp_path / "stranger")
    for context, ca_file in (
        (stranger.server(), authority.ca_file),
        (authority.server("mail.elsewhere.example"), authority.ca_file),
    ):
        with mail_server(login=True, **{security: context}) as server:
            error = failed(
                **server.settings(security=security, user=USER, password=PASSWORD, ca_file=ca_file)
            )
            assert error.again == "later"
            assert not server.taken
            assert not server.logins


def test_no_tls_is_never_gone_without(server: MailServer) -> None:
    error = failed(**server.settings(user=USER, password=PASSWORD))
    assert error.again == "later"
    assert error.again == "later"
    assert not server.logins
    assert failed(**server.settings(security="tls", user=USER, password=PASSWORD)).again == "later"


@pytest.mark.parametrize(
    ("answer", "again"),
    [("550 5.1.1 no such user", "never"), ("450 4.2.1 mailbox busy", "now"), ("421 too busy", "now")],
)
def test_an_address_that_is_refused(server: MailServer, answer: str, again: str) -> None:
    server.refuse_address[TO] = answer
    error = failed(**server.settings(security="none"))
    assert (error.again, answer in str(error)) == (again, True)


@pytest.mark.parametrize(
    ("answer", "again"),
    [("554 5.7.1 spam", "never"), ("552 too large", "never"), ("451 try later", "now"), ("421 bye", "now")],
)
def test_a_message_that_is_refused(server: MailServer, answer: str, again: str) -> None:
    server.answers.append(answer)
    error = failed(**server.settings(security="none"))
    assert (error.again, answer in str(error)) == (again, True)
    assert not server.taken


def test_a_connection_that_ends_after_the_message(server: MailServer) -> None:
    server.drop = 1
    error = failed(**server.settings(security="none"))
    assert error.again == "now"
    assert error.again == "now"
    # taken all the same: the gap that the same Message-ID is for
    assert len(server.taken) == 1


def test_a_slow_server_has_an_end(server: MailServer) -> None:
    server.slow_s = 30.0
    began = time.monotonic()
    error = failed(timeout_s=0.5, **server.settings(security="none"))
    assert error.again == "now"
    assert time.monotonic() - began < 10


def test_nobody_listens() -> None:
    error = failed(host="127.0.0.1", port=free_port(), security="none", sender="esjobs@grid.example")
    assert error.again == "now"
    error = failed(host="no-such-host.invalid", security="none", sender="esjobs@grid.example")
    assert error.again == "now"


def test_a_file_of_certificates_that_is_none(server: MailServer, tmp_path: Any) -> None:
    missing = failed(**server.settings(security="tls", ca_file=tmp_path / "no.pem"))
    assert (missing.again, "no.pem" in str(missing) or "ca_file" in str(missing)) == ("later", True)
    (tmp_path / "bad.pem").write_text("no certificate", encoding="utf-8")
    assert failed(**server.settings(security="tls", ca_file=tmp_path / "bad.pem")).again == "later"
