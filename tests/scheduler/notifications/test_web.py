"""Posts to a real listener: what is signed, what passes, what does not, and what never ends."""

import base64
import hashlib
import hmac
import json
import re
import textwrap
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from esjobs.core.errors import SettingsError
from esjobs.core.redact import remember
from scheduler.notifications.channels import chat, webhook
from scheduler.notifications.channels.outcome import DeliveryError
from scheduler.notifications.channels.web import post
from scheduler.notifications.digest import digest_of
from scheduler.notifications.outbox import entry_of
from scheduler.notifications.settings import Recipient
from tests.messages import raised
from tests.scheduler.notifications.made_up import NIGHT, NOW, SECRET, TOKEN, notice
from tests.scheduler.notifications.servers import Listener, free_port, listener
from tests.servers.certificates import Authority

PATH = f"/hooks/{TOKEN}"
DOCS = Path(__file__).parents[3] / "docs"


def failed(url: str, timeout_s: float = 5.0, **given: object) -> DeliveryError:
    remember(SECRET)
    with raised(DeliveryError) as caught:
        post(url + PATH, b"{}", {}, timeout_s=timeout_s, **given)  # type: ignore[arg-type]
    for secret in (TOKEN, PATH, SECRET):
        assert secret not in str(caught.value)
    return caught.value


def test_what_is_posted_arrives(hook: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    post(hook.url + PATH, b'{"a":1}', {"x-own": "1"}, timeout_s=5)
    [posted] = hook.posted
    assert (posted.path, posted.body, posted.headers["x-own"]) == (PATH, b'{"a":1}', "1")
    assert posted.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("status", "again"),
    [
        *((status, "now") for status in (408, 429, 500, 502, 503, 504)),
        *((status, "later") for status in (301, 302, 308, 401, 403, 404, 410)),
        *((status, "never") for status in (400, 413, 422)),
    ],
)
def test_a_status_says_when_to_try_again(hook: Listener, status: int, again: str) -> None:
    said = f"no {TOKEN} and\r\nno {SECRET}".encode()
    hook.answers.append((status, {"location": "http://127.0.0.1:1/", "retry-after": "17"}, said))
    error = failed(hook.url)
    assert (error.again, error.wait_s) == (again, 17.0)
    assert str(status) in str(error)
    assert len(hook.posted) == 1


def test_a_connection_that_ends(hook: Listener) -> None:
    hook.answers.append(None)
    assert failed(hook.url).again == "now"
    assert failed(f"http://127.0.0.1:{free_port()}").again == "now"
    assert failed("http://no-such-host.invalid").again == "now"


def test_an_answer_that_drips_has_an_end(hook: Listener) -> None:
    hook.drip_s = 0.05
    began = time.monotonic()
    error = failed(hook.url, timeout_s=0.5)
    assert error.again == "now"
    assert time.monotonic() - began < 10


def test_certificates_are_checked(authority: Authority, tmp_path: Path) -> None:
    stranger = Authority.at(tmp_path / "stranger")
    with listener(authority.server()) as hook:
        post(hook.url, b"{}", {}, timeout_s=5, ca_file=Path(authority.ca_file))
        assert len(hook.posted) == 1
        for ca_file in (None, Path(stranger.ca_file)):
            error = failed(hook.url, ca_file=ca_file)
            assert error.again == "later"
        assert failed(hook.url, ca_file=tmp_path / "no.pem").again in ("later", "now")
        assert len(hook.posted) == 1


def test_a_signature_is_that_of_the_standard() -> None:
    """The example of the specification, https://www.standardwebhooks.com, and a second implementation."""
    body = b'{"test": 2432232314}'
    moment = datetime.fromtimestamp(1614265330, UTC)
    made = webhook.signed(
        "msg_p5jXN8AQM9LWM0D4loKWxJek", moment, body, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    )
    assert made["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert made["webhook-timestamp"] == "1614265330"
    own = webhook.signed("id", moment, body, SECRET)
    signed = hmac.new(SECRET.encode(), b"id.1614265330." + body, hashlib.sha256).digest()
    assert own["webhook-signature"] == f"v1,{base64.b64encode(signed).decode()}"
    with raised(SettingsError):
        webhook.key_of("whsec_!")


def example_of(page: str, name: str) -> Callable[..., bool]:
    """A function that a page of the documentation defines, in the indented block that it stands in."""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", (DOCS / page).read_text(), re.MULTILINE)
    (code,) = (textwrap.dedent(block) for block in blocks if f"def {name}(" in block)
    scope: dict[str, Any] = {}
    exec(code, scope)  # noqa: S102  it is ours
    found: Callable[..., bool] = scope[name]
    return found


@pytest.mark.parametrize("secret", [SECRET, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_the_documented_check_of_a_signature_tells_ours_from_others(hook: Listener, secret: str) -> None:
    is_genuine = example_of("notifications.md", "is_genuine")
    key = webhook.key_of(secret)
    for age_s in (0, 3600):
        moment = datetime.fromtimestamp(time.time() - age_s, UTC)
        body = json.dumps({"queue": "Zürich", "age": age_s}).encode()
        post(hook.url + PATH, body, webhook.signed("msg_1", moment, body, secret), timeout_s=5)
    fresh, old = hook.posted
    assert is_genuine(fresh.headers, fresh.body, key)
    # played back an hour later, changed, signed by somebody else, under another id
    assert not is_genuine(old.headers, old.body, key)
    assert not is_genuine(fresh.headers, fresh.body + b" ", key)
    assert not is_genuine(fresh.headers, fresh.body, key + b"x")
    assert not is_genuine({**fresh.headers, "webhook-id": "msg_2"}, fresh.body, key)


def test_the_body_of_a_webhook_is_the_same_each_time() -> None:
    recipient = Recipient.model_validate(
        {
            "name": "hook",
            "role": "coordinator",
            "channel": "webhook",
            "url": "https://h.example",
            "secret": "s",
        }
    )
    told = [notice(), notice("B_Q", "noticed", deviation=None)]
    entry = entry_of(recipient, told, night=NIGHT, now=NOW, subject="two", address="https://h.example")
    body = webhook.body_of(entry, told, "text")
    assert body == webhook.body_of(entry, entry.parsed, "text")
    content = json.loads(body)
    assert content["id"] == entry.notification
    assert [one["kind"] for one in content["notices"]] == ["opened", "candidate"]
    assert content["notices"][0]["deviation_low"] == -0.36
    assert content["notices"][0]["window_end"] == "2026-11-22T00:00:00+00:00"


HOSTILE = "<!channel> @all *b* [x](http://evil) `c` ~town-square <http://evil|click> &amp; #h |t|"


@pytest.mark.parametrize("form", ["slack", "mattermost"])
def test_a_name_gives_a_chat_no_orders(form: chat.Form) -> None:
    digest = digest_of("id", "chat", "coordinator", [notice(HOSTILE, sentence=HOSTILE, site=HOSTILE)])
    content = json.loads(chat.body_of(digest, HOSTILE, form))
    texts = [content["text"]]
    for attachment in content["attachments"]:
        texts += [attachment["title"], attachment["text"], attachment["fallback"]]
        texts += [field["value"] for field in attachment["fields"]]
    if form == "slack":
        assert content["mrkdwn"] is False
        assert all(attachment["mrkdwn_in"] == [] for attachment in content["attachments"])
        assert not any("<" in text or ">" in text for text in texts)
        assert "&lt;!channel&gt;" in content["text"]
    else:
        for text in texts:
            assert "@all" not in text
            for mark in "*[]`<~|#":
                assert text.count(mark) == text.count(f"\\{mark}"), (mark, text)


def test_a_chat_gets_no_flood() -> None:
    digest = digest_of("id", "chat", "coordinator", [notice(f"Q{number}") for number in range(300)])
    content = json.loads(chat.body_of(digest, "many", "slack"))
    assert len(content["attachments"]) == chat.MOST_ATTACHMENTS + 1
    assert content["attachments"][-1]["text"] == f"and {300 - chat.MOST_ATTACHMENTS} more"
