"""Settings of notifications: mail server, recipients, frequency, language."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from esjobs.core.errors import SettingsError
from esjobs.core.setting_types import Count, no_flag
from scheduler.notifications.notices import SITE_KINDS, Kind, Severity

Channel = Literal["mail", "webhook", "mattermost", "slack"]  # Transport of a message
# Reader: a site about its own queues, who looks after all sites, this service, users; each user
Role = Literal["site", "coordinator", "operator", "support", "user"]
Digest = Literal["nightly", "weekly"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)

_SIMPLE = re.compile(r"[A-Za-z0-9._-]{1,64}")
# a local part without characters that mail servers interpret (% ! | / and quotes), and a realm
_USER = re.compile(r"[A-Za-z0-9._+'-]{1,64}(@[A-Za-z0-9._-]{1,200})?")
OPTED_OUT = "opted out"
NOT_A_NAME = "characters that no address has"
NO_ADDRESS = "no address in the file"
NOT_AN_ADDRESS = "not a valid address"


def _word(value: str) -> str:
    if not _SIMPLE.fullmatch(value):
        raise PydanticCustomError("word", "expected 1 to 64 letters, digits, dots, dashes or underscores")
    return value


def _is_address(value: str) -> bool:
    # imported here: it takes as long as all other settings together
    from email.errors import MessageError
    from email.headerregistry import Address

    try:
        valid = value.isascii() and "@" in value and bool(Address(addr_spec=value).domain)
    except (MessageError, ValueError, IndexError):
        return False
    return valid and value.isprintable() and " " not in value


def _mail_address(value: str) -> str:
    if not _is_address(value):
        raise PydanticCustomError("address", "expected an address such as grid-support@site.example")
    return value


_Word = Annotated[str, AfterValidator(_word)]
_Address = Annotated[str, AfterValidator(_mail_address)]
_Seconds = Annotated[float, BeforeValidator(no_flag), Field(gt=0, le=600)]
_Patterns = tuple[Annotated[str, Field(min_length=1, max_length=200)], ...]


class _Section(BaseModel):
    # an unknown key is named, its value is not: it may be a secret
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_key(cls, supplied: object) -> object:
        if isinstance(supplied, Mapping):
            for key in supplied:
                if key not in cls.model_fields:
                    raise PydanticCustomError(
                        "unknown", f"unknown key '{key}'; use one of: {', '.join(cls.model_fields)}"
                    )
        return supplied


class MailSettings(_Section):
    """Mail server and sender."""

    host: Annotated[str, Field(min_length=1, max_length=255)]
    port: Annotated[int, BeforeValidator(no_flag), Field(ge=1, le=65535)] | None = None
    """Not set: 587 with STARTTLS, 465 with TLS, 25 with none."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """``none``: only without a login."""
    user: Annotated[str, Field(min_length=1)] | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    """File with the password."""
    ca_file: Path | None = None
    """Certificates to trust, PEM; not set: the system's."""
    sender: _Address
    """In ``From``, and where undeliverable mail returns to."""
    sender_name: Annotated[str, Field(max_length=64)] = "esjobs"
    reply_to: _Address | None = None
    """Address for answers of a site; not set: the sender."""

    @property
    def port_used(self) -> int:
        """Port of the settings, or the default of the security."""
        return self.port or {"starttls": 587, "tls": 465, "none": 25}[self.security]

    @model_validator(mode="after")
    def _login(self) -> Self:
        supplied = _number(self.password, self.password_file)
        if supplied > 1:
            raise PydanticCustomError("login", "set either password or password_file, not both")
        if (self.user is not None) != bool(supplied):
            raise PydanticCustomError("login", "a login needs both user and password (or password_file)")
        if supplied and self.security == "none":
            raise PydanticCustomError(
                "login", "a password is never sent unencrypted; set security to starttls or tls"
            )
        return self


class Recipient(_Section):
    """A recipient of notifications by one channel.

    ``sites``: patterns (``*``, ``?``, ``[...]``, ignoring case) for site and queue. ``severity``: the
    least. ``kinds``: only these; default: those of the role.
    """

    name: _Word
    role: Role
    channel: Channel
    address: _Address | None = None
    """Of a mail; of role ``user`` with ``{user}`` in place of the name, without ``@REALM``."""
    addresses: Path | None = None
    """CSV file of role ``user``: user, address; it wins over ``address``."""
    opt_out: Path | None = None
    """File of role ``user``: names of users who want no mail, one a line."""
    url: SecretStr | None = None
    """Of other channels; messages show its host only."""
    url_file: Path | None = None
    secret: SecretStr | None = None
    """Signs webhooks; ``whsec_...`` is base64, anything else literal."""
    secret_file: Path | None = None
    sites: _Patterns = ()
    severity: Severity = "info"
    kinds: tuple[Kind, ...] = ()
    digest: Digest = "nightly"
    language: _Word | None = None
    """A folder of templates; that of ``[notify]`` when not set."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        problem = _of_channel(self) or _of_role(self)
        if problem:
            raise PydanticCustomError("recipient", f"recipient '{self.name}': {problem}")
        return self

    @property
    def user(self) -> str | None:
        """User to whom it writes; None for other roles, and for that of all users."""
        return self.name.partition(_OF_USER)[2] or None

    def of_user(self, user: str) -> "Recipient | None":
        """Return the recipient that a user is; None for one who gets no mail, see :meth:`of_users`."""
        return next((each for each in self.of_users((user,)) if isinstance(each, Recipient)), None)

    def of_users(self, users: Sequence[str]) -> "Iterator[Recipient | str]":
        """Yield for each user the recipient they are, or the reason why they get no mail.

        An address in the file wins over the pattern, and is accepted for any name. Kerberos principals
        (``name@REALM``) may stand in both files as ``name``, and are ``name`` in the pattern. Both files are
        read once. Raises :class:`SettingsError` for a file that cannot be read.
        """
        if not users:
            return
        opted_out = {row[0].strip().casefold() for row in _rows(self.opt_out)}
        listed = _addresses(self.addresses)
        for user in users:
            name = user.partition("@")[0]
            if opted_out & {user.casefold(), name.casefold()}:
                yield OPTED_OUT
            elif address := listed.get(user) or listed.get(name):
                yield self._at(address, user)
            elif self.address is None:
                yield NO_ADDRESS
            elif _USER.fullmatch(user):
                yield self._at(self.address.replace("{user}", name), user)
            else:
                yield NOT_A_NAME

    def _at(self, address: str, user: str) -> "Recipient | str":
        # checked here: model_copy() does not validate
        if not _is_address(address):
            return NOT_AN_ADDRESS
        return self.model_copy(update={"name": f"{self.name}{_OF_USER}{user}", "address": address})

    @property
    def patterns(self) -> tuple[str, ...]:
        """Its patterns; default for other roles than site: everything."""
        return self.sites or ("*",)


def _number(*values: object) -> int:
    """Return how many of these settings are set."""
    return sum(value is not None for value in values)


def _of_channel(supplied: Recipient) -> str:
    urls, secrets = _number(supplied.url, supplied.url_file), _number(supplied.secret, supplied.secret_file)
    if supplied.channel == "mail":
        if supplied.address is None and supplied.role != "user":
            return "channel 'mail' requires an address"
        return "channel 'mail' does not use url or secret" if urls or secrets else ""
    return _of_url(supplied, urls, secrets)


def _of_url(supplied: Recipient, urls: int, secrets: int) -> str:
    if supplied.address is not None:
        return f"channel '{supplied.channel}' uses url, not address"
    if urls != 1:
        return f"channel '{supplied.channel}' requires either url or url_file"
    if supplied.url is not None and not is_web_address(supplied.url.get_secret_value()):
        return "url is not an address such as https://HOST/PATH"
    if supplied.channel != "webhook":
        return f"channel '{supplied.channel}' does not use a secret" if secrets else ""
    return "" if secrets == 1 else "channel 'webhook' requires either secret or secret_file, to sign messages"


_OF_USER = "@"


def _rows(file: Path | None) -> list[list[str]]:
    """Return the cells of each line, between commas or semicolons."""
    if file is None:
        return []
    try:
        lines = file.expanduser().read_text(encoding="utf-8-sig").splitlines()
        delimiter = ";" if any(";" in line for line in lines) else ","
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SettingsError(f"cannot read {file}: {error}; correct [[notify.recipients]]") from error


def _addresses(file: Path | None) -> dict[str, str]:
    """Return the addresses of a file by user."""
    return {row[0].strip(): row[1].strip() for row in _rows(file) if len(row) > 1}


def _of_users(supplied: Recipient) -> str:
    if supplied.channel != "mail":
        return "role 'user' requires channel 'mail'"
    if "{user}" not in (supplied.address or "{user}"):
        return "address of role 'user' must contain {user}, such as {user}@centre.example"
    if supplied.sites or supplied.kinds:
        return "role 'user' does not use sites and kinds"
    return "" if supplied.address or supplied.addresses else "role 'user' requires address or addresses"


def _of_role(supplied: Recipient) -> str:
    if supplied.role == "user":
        return _of_users(supplied)
    if supplied.addresses or supplied.opt_out or "{user}" in (supplied.address or ""):
        return "addresses, opt_out and {user} are of role 'user'"
    return _of_site(supplied) if supplied.role == "site" else ""


def _of_site(supplied: Recipient) -> str:
    if not supplied.sites:
        return "role 'site' requires sites: patterns of its site or queues"
    beyond = next((kind for kind in supplied.kinds if kind not in SITE_KINDS), None)
    accepted = f"role 'site' accepts only the kinds {', '.join(SITE_KINDS)}"
    return "" if beyond is None else f"{accepted}; '{beyond}' is not one of them"


def is_web_address(text: str) -> bool:
    """True if a text is an http or https address.

    >>> is_web_address("https://chat.example/hooks/1"), is_web_address("chat.example"), is_web_address("http://")
    (True, False, False)
    """
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
            and text.isprintable()
            and " " not in text
        )
    except ValueError:
        return False


class NotifySettings(_Section):
    """Recipients and delivery. Without recipients nothing is sent."""

    recipients: tuple[Recipient, ...] = ()
    mail: MailSettings | None = None
    ca_file: Path | None = None
    """Certificates to trust for webhooks and chats, PEM."""
    proxy: SecretStr | None = None
    """Proxy for webhooks and chats, ``http://HOST:PORT``."""
    language: _Word = "en"
    templates: Path | None = None
    """Folder with templates ``LANGUAGE/NAME`` that replace ours."""
    link: Annotated[str, Field(max_length=500)] | None = None
    """Address of a report or dashboard in messages."""
    contact: Annotated[str, Field(max_length=200)] | None = None
    """Contact, as messages name it."""
    weekly_on: Weekday = "monday"
    """Day (UTC) of weekly digests."""
    monthly_on: Annotated[int, BeforeValidator(no_flag), Field(ge=1, le=28)] | None = None
    """Night of a month that sends last month's delivered work to coordinators; not set: never."""
    timeout_s: _Seconds = 30.0
    """Timeout of one delivery."""
    attempts: Annotated[int, BeforeValidator(no_flag), Field(ge=1, le=20)] = 3
    """Attempts per night and message."""
    give_up_days: Count = 7
    """Days after which an undelivered message is abandoned."""
    within_days: Count = 14
    """Changes of older nights are not sent."""
    sites_from: date | None = None
    """Day (UTC) of the first messages to sites; not set: never."""
    critical_deviation: Annotated[float, BeforeValidator(no_flag), Field(gt=0, le=10)] = 0.5
    """Critical: the interval of a confirmed deviation is beyond this."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = Counter(recipient.name.casefold() for recipient in self.recipients)
        name, number = next(iter(names.most_common(1)), ("", 0))
        if number > 1:
            raise PydanticCustomError("recipient", f"two recipients are called '{name}'; use different names")
        if self.mail is None and any(recipient.channel == "mail" for recipient in self.recipients):
            raise PydanticCustomError("mail", "channel 'mail' requires a mail server; set [notify.mail] host")
        if self.link is not None and not is_web_address(self.link):
            raise PydanticCustomError("link", "link is not an address such as https://HOST/PATH")
        if self.proxy is not None and not is_web_address(self.proxy.get_secret_value()):
            raise PydanticCustomError("proxy", "proxy is not an address such as http://HOST:3128")
        return self

    def writes_to_sites(self, today: date) -> bool:
        """True from ``sites_from`` on."""
        return self.sites_from is not None and today >= self.sites_from

    @property
    def why_withheld(self) -> str:
        """Reason in log and preview for a message withheld from a site."""
        if self.sites_from is None:
            return "withheld: messages to sites are disabled; set notify.sites_from"
        return f"withheld until {self.sites_from} (notify.sites_from)"

    def recipient(self, name: str) -> Recipient | None:
        """Return the recipient of this name, ignoring case, or None; ``NAME@USER`` is one user."""
        name, _, user = name.partition(_OF_USER)
        found = next((one for one in self.recipients if one.name.casefold() == name.casefold()), None)
        if not user:
            return found
        return found.of_user(user) if found is not None and found.role == "user" else None

    def recipients_of(self, users: Iterable[str]) -> tuple[list[Recipient], Counter[str]]:
        """Return the recipients, and how many users get no mail, by reason.

        Each of these users who gets mail stands in place of role ``user``; files of addresses are read once.
        """
        named = sorted(set(users))
        found: list[Recipient] = []
        without_mail: Counter[str] = Counter()
        for recipient in self.recipients:
            for each in recipient.of_users(named) if recipient.role == "user" else [recipient]:
                if isinstance(each, Recipient):
                    found.append(each)
                else:
                    without_mail[each] += 1
        return found, without_mail
