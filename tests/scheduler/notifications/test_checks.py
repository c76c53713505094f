"""Checks of a deviation and what would refute it, from a notice into mails of both forms."""

from dataclasses import replace

from esjobs.speed.judging.checks import SEPARATOR
from scheduler.notifications.digest import line_of
from scheduler.notifications.notices import read, written
from tests.scheduler.notifications.made_up import notice
from tests.scheduler.notifications.test_messages import mail_of, text_of

CHECKS = ("two speeds: 1 of 13 buckets", "each half of its tasks: +38 % to +44 %")


def test_checks_stand_in_a_mail_one_by_one() -> None:
    one = replace(notice(), checks=SEPARATOR.join(CHECKS), refuted_by="a benchmark above 8.1 HS06 <b>")
    assert read(written([one])) == (one,)
    assert line_of(one).checks == CHECKS
    _, mail = mail_of(one)
    text, html = text_of(mail), text_of(mail, "html")
    for number in ("1 of 13", "8.1 HS06"):
        assert number in text
        assert number in html
    assert text.count("\r\n  - ") == len(CHECKS)
    assert "<b>." not in html


def test_a_notice_without_checks_has_no_heading_for_them() -> None:
    _, mail = mail_of(notice())
    assert "Checked" not in text_of(mail)
    assert line_of(notice()).checks == ()
