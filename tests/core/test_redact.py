"""Secrets of odd characters are planted in texts in every form that a server may repeat them in."""

import base64
import html
import json
import random
import string
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

import pytest

from esjobs.core.errors import EsjobsError
from esjobs.core.redact import excerpt, forget, redact, remember

ODD = string.printable + "äßé€😀\u2028\u00a0\x00\x7f"
USER = "mail"


def forms(secret: str, user: str = USER) -> Iterator[str]:
    """All that a text may show of a secret."""
    yield from (secret, repr(secret), ascii(secret), str(secret.encode()))
    for quoted in (quote(secret, safe=""), quote(secret), quote_plus(secret), quote(quote(secret, safe=""))):
        yield from (quoted, quoted.replace("%c", "%C"), _small(quoted))
    for text in (json.dumps(secret), json.dumps(secret, ensure_ascii=False), json.dumps(json.dumps(secret))):
        yield from (text, text.replace("/", "\\/"))
    yield html.escape(secret)
    yield "".join(f"&#{ord(each)};" if not each.isalnum() else each for each in secret)
    yield "".join(f"&#x{ord(each):X};" if not each.isalnum() else each for each in secret)
    for data in (secret.encode(), f"{user}:{secret}".encode(), f"\0{user}\0{secret}".encode()):
        for encoded in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
            yield from (encoded, encoded.rstrip("="), quote(encoded, safe=""), json.dumps({"a": encoded}))


def _small(quoted: str) -> str:
    parts = quoted.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


@pytest.mark.parametrize("seed", range(20))
def test_no_form_of_a_secret_survives(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        secret = "".join(rng.choices(ODD, k=rng.randint(6, 40)))
        remember(secret)
        for form in forms(secret):
            shown = redact(f"before {form} after")
            assert "[hidden]" in shown, (secret, form)
            assert (shown[:6], shown[-5:]) == ("before", "after")
            for piece in (secret, quote(secret), base64.b64encode(secret.encode()).decode().rstrip("=")):
                assert piece not in shown
            # what is left beside the mark are quotation marks and letters of the user
            assert len(shown) < len("before [hidden] after") + 30, (secret, form, shown)
        forget()


def test_a_text_without_secrets_is_left_alone() -> None:
    remember("hunter2!", "https://hooks.example")
    text = "https://hooks.example answered 500 (hunter 2, aHVudGVy) at /index/_search?size=0"
    assert redact(text) == text


def test_an_address_gives_nothing_away() -> None:
    remember("https://me:p%40ss-word@hooks.example:8443/services/T0000/B11111111?token=s3cr3t-token")
    for part in ("p%40ss-word", "p@ss-word", "T0000/B11111111", "B11111111", "s3cr3t-token", "me:p@ss-word"):
        assert part not in redact(f"<{part}>")
    login = base64.b64encode(b"me:p@ss-word").decode()
    assert login[:-4] not in redact(f"Basic {login}")
    assert redact("https://hooks.example:8443 answered") == "https://hooks.example:8443 answered"


def test_a_login_with_a_short_password_is_found_as_it_is_sent() -> None:
    remember("ab", "user:ab")
    assert redact(f"about {base64.b64encode(b'user:ab').decode()}") == "about [hidden]"


def test_a_text_is_cut_after_it_is_redacted() -> None:
    remember("0123456789abcdef")
    assert "01234" not in excerpt("x" * 90 + "0123456789abcdef", 100)


def test_an_error_that_was_raised_before_shows_nothing_either() -> None:
    error = EsjobsError("refused: it-is-secret")
    remember("it-is-secret")
    assert (str(error), repr(error)) == ("refused: [hidden]", "EsjobsError('refused: [hidden]')")


def test_a_long_secret_is_hidden_and_a_long_text_takes_no_time() -> None:
    secret = "".join(random.Random(1).choices(string.ascii_letters, k=20_000))
    remember(secret)
    assert secret[:8] not in redact(f"{secret} " + "YWJj" * 200_000)
