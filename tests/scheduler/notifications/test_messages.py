"""What a message looks like: words, parts, names that would be orders, templates of a user."""

import io
import sys
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import settings as effort
from hypothesis import strategies as st
from PIL import Image

from esjobs.core import plugins
from esjobs.core.errors import SettingsError
from scheduler.notifications.digest import MOST_LINES, digest_of
from scheduler.notifications.notices import KINDS, Notice, read, written
from scheduler.notifications.outbox import Entry, entry_of
from scheduler.notifications.picture import MOST_ROWS, WIDTH, picture_of
from scheduler.notifications.sending import Post
from scheduler.notifications.settings import NotifySettings
from scheduler.notifications.wording import LONGEST_SUBJECT
from tests.messages import compare_text, raised
from tests.scheduler.notifications.made_up import NIGHT, NOW, coordinator, notice, settings, site

HOSTILE = "<img src=x onerror=alert(1)>\r\nBcc: evil@x.example\u202e {{ 7 * 7 }} {% raw %}"


def mail_of(*notices: Notice, made: NotifySettings | None = None) -> tuple[Entry, EmailMessage]:
    """The mail to the first recipient, as a mail program reads it."""
    made = made or settings(site())
    post = Post(made, 0.2, lambda: NOW)
    [recipient, *_] = made.recipients
    entry = entry_of(
        recipient, notices, night=NIGHT, now=NOW, subject=post.subject(recipient, notices), address="a"
    )
    body = post.body(entry, recipient, post.rendered(entry, recipient))
    assert body == post.body(entry, recipient, post.rendered(entry, recipient))
    return entry, message_from_bytes(body, policy=default)


def text_of(mail: EmailMessage, kind: str = "plain") -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content())


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag, *(name for name, _ in attrs)}
        self.seen |= {f"src={value}" for name, value in attrs if name == "src"}


def tags_of(html: str) -> set[str]:
    parser = Tags()
    parser.feed(html)
    return parser.seen


def test_parts_of_a_mail() -> None:
    entry, mail = mail_of(notice())
    assert mail["Message-ID"] == f"<{entry.notification}@grid.example>"
    assert [part.get_content_type() for part in mail.walk()] == [
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
    ]
    assert mail.defects == []


def test_a_subject_is_one_line() -> None:
    """Folded behind its name, it gets a space in front in some mail programs."""
    made = settings(site(sites=["*"]))
    post = Post(made, 0.2, lambda: NOW)
    for length in range(20, 70):
        told = [notice("Q" * length)]
        subject = post.subject(made.recipients[0], told)
        entry = entry_of(made.recipients[0], told, night=NIGHT, now=NOW, subject=subject, address="a")
        body = post.body(entry, made.recipients[0], post.rendered(entry, made.recipients[0]))
        assert f"Subject: {subject}".encode() in body.splitlines()


def test_a_name_gives_no_orders() -> None:
    usual = tags_of(text_of(mail_of(notice())[1], "html"))
    hostile = notice(HOSTILE, site=HOSTILE, sentence=HOSTILE, evidence=HOSTILE, processing_type=HOSTILE)
    _, mail = mail_of(hostile, made=settings(site(sites=["*"])))
    assert {name for name in tags_of(text_of(mail, "html")) if "src=" not in name} <= usual
    assert set(mail.keys()) == set(mail_of(notice())[1].keys())
    assert "\\r\\nBcc: evil@x.example\\u202e {{ 7 * 7 }}" in text_of(mail, "html")
    for kind in ("plain", "html"):
        assert "49" not in text_of(mail, kind).split(str(entry_id(mail)))[0].replace("#49", "")
        assert "\u202e" not in text_of(mail, kind)


def entry_id(mail: EmailMessage) -> str:
    return str(mail["X-Esjobs-Notification"])


def test_rows_and_page_of_a_notice_are_files_of_the_mail() -> None:
    rows = 'site,core_h\n"A, B",1.5\n\'=1+1,é\n'
    month = Notice("m", "delivered", "info", "Delivered in 2025-06", "", NIGHT, rows=rows, page="<p>ü</p>\n")
    assert read(written([month])) == (month,)
    _, mail = mail_of(month, made=settings(coordinator()))
    attached = list(mail.iter_attachments())
    assert [(each.get_content_type(), each.get_filename(), each.get_content()) for each in attached] == [
        ("text/csv", f"delivered-{NIGHT}.csv", rows),
        ("text/html", f"delivered-{NIGHT}.html", month.page),
    ]
    assert list(mail_of(notice())[1].iter_attachments()) == []


@effort(max_examples=60, deadline=None)
@examples(name=st.text(min_size=1, max_size=300), word=st.text(max_size=40))
def test_any_name_makes_a_mail(name: str, word: str) -> None:
    usual = set(mail_of(notice())[1].keys())
    told = notice(name, site=word, sentence=name + word, processing_type=word, benchmark=word)
    assert read(written([told])) == (told,)
    _, mail = mail_of(told)
    assert set(mail.keys()) == usual
    assert len(mail["Subject"]) <= LONGEST_SUBJECT
    assert str(mail["Subject"]).isprintable()
    assert "script" not in tags_of(text_of(mail, "html"))


@pytest.mark.parametrize(
    ("role", "notices"),
    [
        ("site", [notice()]),
        ("site", [notice(deviation=0.4)]),
        ("site", [notice(processing_type="simul")]),
        ("site", [notice(), notice(processing_type="simul")]),
        ("site", [notice(), notice("CERN-PROD_B")]),
        ("site", [notice(), notice("A_B")]),
        ("site", [notice(kind="closed")]),
        ("site", [notice(kind="closed"), notice("CERN-PROD_B")]),
        ("coordinator", [notice(), notice("B", "noticed")]),
        ("coordinator", [notice(kind="answered")]),
    ],
)
def test_subjects(role: str, notices: list[Notice]) -> None:
    made = settings(site() if role == "site" else coordinator())
    compare_text(mail_of(*notices, made=made)[1]["Subject"])


@pytest.mark.parametrize("role", ["site", "coordinator"])
def test_text_of_a_mail(role: str) -> None:
    made = settings(site() if role == "site" else coordinator())
    compare_text(text_of(mail_of(notice(), notice("CERN-PROD_B", "closed"), made=made)[1]))


def test_every_kind_has_its_words() -> None:
    kinds = [kind for kind in KINDS if kind != "test"]
    alerts = [Notice(kind, kind, "warning", f"subject of {kind}", "text", NIGHT) for kind in kinds[11:]]
    flags = [notice(f"Q{number}", kind) for number, kind in enumerate(["noticed", *kinds[:3], *kinds[4:11]])]
    _, mail = mail_of(*flags, *alerts, made=settings(coordinator()))
    for text in (text_of(mail), text_of(mail, "html")):
        for number in range(11):
            assert f"Q{number}" in text
        for kind in kinds[11:]:
            assert f"subject of {kind}" in text


def test_a_flood_is_cut_and_counted() -> None:
    many = [notice(f"Q{number:04d}", "noticed") for number in range(1000)]
    digest = digest_of("id", "c", "coordinator", many)
    assert (len(digest.of("candidate")), digest.count("candidate")) == (MOST_LINES, 1000)
    _, mail = mail_of(*many, made=settings(coordinator()))
    assert f"and {1000 - MOST_LINES} more" in text_of(mail)
    assert "1000 candidates" in mail["Subject"]
    assert len(mail.as_bytes()) < 300_000


def drawn(picture: Any) -> Image.Image:
    image = Image.open(io.BytesIO(picture.png))
    image.load()
    return image.convert("RGB")


def test_a_picture_shows_where_an_interval_lies() -> None:
    """Right of the middle is faster: colours where they belong, nothing where nothing is."""
    picture = picture_of(
        [notice("A"), notice("B", deviation=0.9, deviation_low=0.7, deviation_high=1.1)], 0.2
    )
    assert picture is not None
    image = drawn(picture)
    assert image.width == 2 * WIDTH
    colours: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for y in range(image.height):
        for x in range(image.width - 2 * 90):
            colours.setdefault(image.getpixel((x, y)), []).append((x, y))  # type: ignore[arg-type]
    slower, faster = colours[0xA8, 0x41, 0x0A], colours[0x1D, 0x5F, 0xA8]
    # the largest deviation first
    assert max(y for _, y in faster) < min(y for _, y in slower)
    assert max(x for x, _ in slower) < min(x for x, _ in faster)
    assert picture.alt == (
        "Deviation from the declared corepower. B: +90 % (+70 % to +110 %); A: −31 % (−36 % to −26 %)"
    )


@pytest.mark.parametrize(
    "numbers", [(-0.99, -40.0, 50.0), (1e9, 1e8, 1e10), (0.0, 0.0, 0.0), (-1e-9, -1e-9, 1e-9)]
)
def test_a_picture_has_an_end(numbers: tuple[float, float, float]) -> None:
    deviation, low, high = numbers
    odd = notice("X" * 500, deviation=deviation, deviation_low=low, deviation_high=high)
    picture = picture_of([odd] * (MOST_ROWS + 5), 0.2)
    assert picture is not None
    assert drawn(picture).height < 2000
    assert picture_of([notice(deviation=None)], 0.2) is None


def test_own_templates_take_the_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "fr").mkdir()
    (tmp_path / "fr" / "subject.txt").write_text("{{ digest.whose }} : écart", encoding="utf-8")
    (tmp_path / "fr" / "mail.html").write_text("<p>{{ digest.of('opened')[0].name }}</p>", encoding="utf-8")
    made = settings(site(language="fr"), templates=tmp_path)
    _, mail = mail_of(notice("<b>CERN-PROD_Q"), made=made)
    assert mail["Subject"] == "[esjobs] <b>CERN-PROD_Q : écart"
    assert text_of(mail, "html").strip() == "<p>&lt;b&gt;CERN-PROD_Q</p>"
    # what the language lacks is taken in English
    assert "How to answer" in text_of(mail)


@pytest.mark.parametrize(
    "template",
    [
        "{{ digest.nothing }}",
        "{% for %}",
        "{{ ''.__class__.__mro__ }}",
        "{{ 1 / 0 }}",
        "{% include 'no.txt' %}",
    ],
)
def test_a_broken_template_is_named(tmp_path: Path, template: str) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "mail.txt").write_text(template, encoding="utf-8")
    with raised(SettingsError):
        mail_of(notice(), made=settings(site(), templates=tmp_path))


def test_a_language_that_there_is_none_of(tmp_path: Path) -> None:
    with raised(SettingsError):
        mail_of(notice(), made=settings(site(language="fr"), templates=tmp_path))


def test_links_name_the_queues() -> None:
    made = settings(coordinator(), link="https://h.example/{site}?queue={queue}")
    _, one = mail_of(notice("A B", site="S"), made=made)
    assert text_of(one).count("https://h.example/S?queue=A%20B") == 1
    _, several = mail_of(notice("A"), notice("C"), made=made)
    for text in (text_of(several), text_of(several, "html")):
        assert "{queue}" not in text
        assert all(f"queue={name}" in text for name in "AC")


def test_without_pillow_a_mail_goes_out_without_its_picture(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "PIL.ImageFont", None)
    plugins.warn.cache_clear()
    told = notice(deviation=-0.4, deviation_low=-0.5, deviation_high=-0.3)
    for _ in range(2):
        _, mail = mail_of(told)
        assert [part for part in mail.walk() if part.get_content_maintype() == "image"] == []
        assert "31 % slower" in text_of(mail)
    (line,) = [each.message for each in caplog.records if each.name == plugins.__name__]
    assert line.endswith("run: pip install 'esjobs[mail]'")
