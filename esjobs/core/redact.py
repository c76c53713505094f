"""Redaction of secrets from messages, logs and stored reasons, in any usual encoding.

Unwrapped secrets are registered by :func:`remember`; all shown text passes :func:`redact`. The list is per
process, because an error of one part may quote another. Text is redacted before it is cut (:func:`excerpt`).
"""

import base64
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import unquote

HIDDEN = "[hidden]"
# Characters. Anything shorter occurs in every text.
_SHORTEST = 3
# Characters of base64 that identify a secret inside a longer text
_SHORTEST_INSIDE = 5
# Characters of a secret that are looked for in one go; a longer one is looked for in pieces
_LONGEST = 4096

_remembered: set[str] = set()
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]")
_BASE64_REST = re.compile(r"(?:[A-Za-z0-9+/_-]|\\/|%2[bBfF])*(?:=|%3[dD])*")


def remember(*secrets: str | None) -> None:
    """Hide these secrets; of an address also its login, query and path."""
    _remembered.update(form for secret in secrets if secret for form in _parts(secret))


def forget() -> None:
    """Forget all secrets."""
    _remembered.clear()


def redact(text: str) -> str:
    r"""Return a text with every secret replaced, in every usual encoding.

    Covers percent-encoding, escapes of JSON, HTML and Python (each also twice), and base64 of bytes that
    contain the secret.

    >>> remember("s/cret")
    >>> redact("no s/cret, s%2Fcret, s\\/cret or bWU6cy9jcmV0 here")
    'no [hidden], [hidden], [hidden] or [hidden] here'
    >>> forget()
    """
    if not _remembered:
        return text
    plain, inside = _patterns(frozenset(_remembered))
    return plain.sub(HIDDEN, _without_base64(text, inside))


def excerpt(text: str, most: int) -> str:
    """Return the start of an external text, redacted, on one line of at most ``most`` characters."""
    return " ".join(redact(text).split())[:most]


def _parts(secret: str) -> Iterator[str]:
    rest = secret.partition("://")[2]
    authority, _, below = rest.partition("/")
    # the last one: a password may contain an @
    login = authority.rpartition("@")[0]
    if not rest or login or below:
        yield secret
    for part in (login, login.partition(":")[2]):
        yield from {part, unquote(part)}
    path, _, query = below.partition("?")
    # of an address its path alone gives everything away
    yield from (part for part in (below, path, query) if len(part) > _SHORTEST)
    yield from (part for part in re.split("[/?&=#]", below) if len(part) >= 8)


@cache
def _patterns(secrets: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    pieces = {piece for secret in secrets for piece in _pieces(secret)}
    longest_first = sorted((piece for piece in pieces if len(piece) >= _SHORTEST), key=len, reverse=True)
    # a secret that is too short to be looked for is still found as the login in which it is sent
    inside = sorted({form for piece in longest_first for form in _base64_forms(piece)}, key=len, reverse=True)
    return _any_of(longest_first), _any_of(inside)


def _pieces(secret: str) -> list[str]:
    return [secret[start : start + _LONGEST] for start in range(0, len(secret), _LONGEST)]


def _any_of(texts: list[str]) -> re.Pattern[str]:
    return re.compile("|".join("".join(map(_written, text)) for text in texts) or r"(?!)")


def _without_base64(text: str, inside: re.Pattern[str]) -> str:
    kept, end = [], 0
    for found in inside.finditer(text):
        if found.start() < end:
            continue
        start = found.start()
        while start > end and _BASE64.match(text[start - 1]):
            start -= 1
        kept += [text[end:start], HIDDEN]
        rest = _BASE64_REST.match(text, found.end())
        end = rest.end() if rest else found.end()
    return "".join([*kept, text[end:]])


def _base64_forms(secret: str) -> Iterator[str]:
    """Yield base64 of the secret, and the invariant part of base64 of texts that contain it."""
    for encoding in ("utf-8", "latin-1"):
        try:
            data = secret.encode(encoding)
        except UnicodeEncodeError:
            continue
        yield base64.b64encode(data).decode().rstrip("=")
        # base64 encodes three bytes at a time: a secret may begin at each of them
        for before in range(3):
            encoded = base64.b64encode(bytes(before) + data).decode()
            # without the characters that also encode bits of what stands before or behind the secret
            common = encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
            if len(common) >= _SHORTEST_INSIDE:
                yield common


@cache
def _written(character: str) -> str:
    """Return a pattern of all encodings of a character."""
    if character.isascii() and character.isalnum():
        return character
    escaped, code = re.escape(character), ord(character)
    data = character.encode("utf-8", "surrogatepass")
    units = character.encode("utf-16-be", "surrogatepass")
    forms = {
        escaped,
        # escaped by a shell, by JSON or by repr, once or again
        rf"\\+{escaped}",
        # a percent sign that was quoted again is %25
        _bytes(r"%(?:25)*", data),
        _bytes(r"\\+x", data),
        r"\\+u" + r"\\+u".join(_hex(units[at : at + 2]) for at in range(0, len(units), 2)),
        rf"\\+U{_hex(code.to_bytes(4))}",
        rf"&(?:amp;)*#0*{code};?",
        rf"&(?:amp;)*#[xX]0*(?i:{code:x});?",
        *(rf"&(?:amp;)*{re.escape(name)}" for name in _entities().get(character, ())),
    }
    match character:
        case " ":
            forms.add(r"\+")
        case "+":
            # the alphabet of base64 in addresses has - for + and _ for /
            forms.add("-")
        case "/":
            forms.add("_")
        case "\n" | "\r" | "\t" | "\f" | "\b":
            forms.add(r"\\+" + {"\n": "n", "\r": "r", "\t": "t", "\f": "f", "\b": "b"}[character])
    if not character.isascii():
        if code < 256:
            forms |= {_bytes("%", bytes([code])), _bytes(r"\\+x", bytes([code]))}
        # bytes of one encoding that were read as those of another
        forms |= {re.escape(data.decode("latin-1")), "\ufffd+"}
    return f"(?:{'|'.join(sorted(forms, key=len, reverse=True))})"


def _bytes(mark: str, data: bytes) -> str:
    return "".join(mark + _hex(data[at : at + 1]) for at in range(len(data)))


def _hex(data: bytes) -> str:
    return f"(?i:{data.hex()})"


@cache
def _entities() -> dict[str, list[str]]:
    """Return the HTML names of characters."""
    import html.entities

    names: dict[str, list[str]] = {}
    for name, character in html.entities.html5.items():
        names.setdefault(character, []).append(name)
    return names
