"""Canonical CPU models from the raw strings that job records and benchmark tables carry.

One CPU model is written in many ways: padded to 48 columns, with or without ``(R)``, with its clock, its
cache, the number of cores of the node, ``HT``, sockets and instruction sets. The resolver keeps what names
the model and hands the rest over as fields of their own::

    s+Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz 20480 KB 16-Core Processor HT 2-Sockets+AVX2
      └────────── Intel Xeon E5-2650 v2 ─┘  clock   cache   cores            smt sockets  flags

Rules that readers of results rely on:

* Unknown is ``None``, never a guess: ``UNKNOWN``, an architecture (``ARM``), a brand alone (``Intel Xeon``),
  a string cut off inside the model, anything longer than 300 characters.
* Two models never share a name: ``v2`` and ``v3``, ``6130`` and ``6130F``, ``X5650`` and ``L5640`` stay
  apart. Where the clock is all that tells old CPUs apart (``Intel(R) Xeon(TM) CPU 3.20GHz``), it stays in the
  name.
* A name made up by a hypervisor keeps the hypervisor's own words and is marked ``virtual``; so is a Xeon
  whose number the hypervisor hides (``Intel(R) Xeon(R) CPU @ 2.20GHz`` becomes ``Intel Xeon @ 2.20GHz``).
* A CPU that the rules do not know keeps its cleaned name, as long as it is recognisable as one.
* Resolving a canonical name gives the same name again.

The words and patterns stand in ``cpu_families.toml`` beside this file.
"""

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

__all__ = ["RESOLVER", "RESOLVER_VERSION", "CpuModel", "canonical", "resolve", "resolve_names"]

_RULES_TEXT = files("esjobs.records.names").joinpath("cpu_families.toml").read_text(encoding="utf-8")
_RULES = tomllib.loads(_RULES_TEXT)

RESOLVER_VERSION: str = f"1-{hashlib.sha256(_RULES_TEXT.encode()).hexdigest()[:8]}"
"""Names what this resolver does: the revision of the code and the hash of its rules. Buckets made under
another version are stale, because the same raw string may have had another name."""
RESOLVER = {"resolver": RESOLVER_VERSION}
"""Version that a query adds to those of its kind, when its result rests on resolved names."""

_MAX_CHARS = 300
_MAX_PASSES = 4


@dataclass(frozen=True, slots=True)
class CpuModel:
    """A CPU model and other facts in its raw string; ``None`` means that the string does not say.

    ``name``: canonical, the same for every spelling. ``virtual``: made up or masked by a hypervisor.
    ``cache_kb``, ``clock_ghz``: as printed (the nominal clock). ``cores``: physical cores, of the node if
    sockets are named (pilots write their sum), else of one package. ``smt``: two threads per core. Pilots
    that name sockets write ``HT`` exactly then, else ``False``. ``flags``: instruction sets appended with
    ``+``, such as ``AVX2``.
    """

    name: str
    vendor: str | None = None
    virtual: bool = False
    cache_kb: int | None = None
    clock_ghz: float | None = None
    cores: int | None = None
    sockets: int | None = None
    smt: bool | None = None
    flags: tuple[str, ...] = ()


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.ASCII)


_TRADE_MARKS = _pattern(r"\( ?(?:r|tm|c) ?\)|[®™©]")
# PanDA puts the unit of its CPU times in front of the model: ``s+Intel(R) Xeon(R) ...``.
_UNIT = _pattern(r"^(?:s|sec|seconds) ?\+ ?")
_FLAGS = _pattern(r"(?:\+ ?[a-z][\w.|]*)+$")
_CACHE = _pattern(r"(?<![\w.])(\d{1,9}) ?KB\b")
_CLOCK = _pattern(r"(?<![\w.])(?:(\d{1,2}(?:\.\d{1,3})?) ?GHz|(\d{3,5}(?:\.\d{1,3})?) ?MHz)")
_SOCKETS = _pattern(r"(?<![\w-])(\d{1,4})-Socket(?:s\b|\(s\)|\b)")
_SMT = _pattern(r"\((no HT|HT off|HT on|HT)\)|(?<![\w-])(no HT|HT off|HT on|HT)(?![\w-])")
_CORE_WORDS = {
    word: n
    for n, words in {1: "single", 2: "dual", 3: "triple", 4: "quad", 6: "hexa six", 8: "octa eight"}.items()
    for word in words.split()
} | {"ten": 10, "twelve": 12, "sixteen": 16}
_CORES = _pattern(rf"(?<![\w-])(?:(\d{{1,4}})-Core|({'|'.join(_CORE_WORDS)})[- ]Core)s?\b(?: Processor\b)?")

# Pilots write the number of cores before the word "Processor", and for "Intel Core Processor (Haswell)" in
# place of "Core": these two put the hypervisor's own words back.
_PILOT_BRAND = _pattern(r"\b(EPYC(?:-\w+)?|Xeon|Dhyana) \d{1,4}-Core Processor\b")
_PILOT_CORE = _pattern(r"^(Intel) \d{1,4}-Core Processor\b")

# ``Neoverse-N1 - PRODUCT``: the name of the core in front of the product's.
_FIRMWARE = _pattern(r"^(?:Neoverse|Cortex)[- ]\w+ - (?=\w)")
_ARM_CORE = _pattern(r"\b(Neoverse|Cortex)[- ]([a-z]\d+\w*)")
# ``11th Gen Intel(R) Core(TM) i7-1185G7 @ 3.00GHz``
_GENERATION = _pattern(r"^\d{1,2}(?:st|nd|rd|th) Gen ")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_XEON_VERSION = _pattern(r"(E[357]-\d{4}[a-z]{0,2}?)[-_]?v(\d{1,2})")
_XEON_NUMBER = _pattern(r"E[357]-\d{4}[a-z]{0,2}")
_CORE_I = _pattern(r"([iw][3579])((?:-.*)?)")

_NO_MODEL = _pattern("|".join(f"(?:{p})" for p in _RULES["no_model"]))
_VIRTUAL = tuple(re.compile(p, re.ASCII) for p in _RULES["virtual"])
_FILLER = frozenset(_RULES["filler"])
_GENERIC = frozenset(_RULES["generic"])
_SPELLING: dict[str, str] = _RULES["spelling"]
_VENDOR_OF: dict[str, str] = {word: vendor for vendor, words in _RULES["vendors"].items() for word in words}
_NUMBERS = tuple((re.compile(pattern, re.ASCII), prefix) for pattern, prefix in _RULES["numbers"].items())


def resolve(raw: str | None) -> CpuModel | None:
    """Return the CPU model that a raw string names, or ``None``. Never raises; 16 384 strings are cached.

    >>> model = resolve("s+Intel(R) Xeon(R) CPU           E5-2650 v2 @ 2.60GHz 20480 KB")
    >>> model.name, model.vendor, model.clock_ghz, model.cache_kb
    ('Intel Xeon E5-2650 v2', 'Intel', 2.6, 20480)
    >>> resolve("s+AMD EPYC 7302 32-Core Processor 512 KB HT 2-Sockets+AVX2")
    CpuModel(name='AMD EPYC 7302', vendor='AMD', virtual=False, cache_kb=512, clock_ghz=None,
             cores=32, sockets=2, smt=True, flags=('AVX2',))
    >>> resolve("QEMU Virtual CPU version 2.5+").virtual
    True
    >>> resolve("s+UNKNOWN") is None
    True
    """
    if raw is None or len(raw) > _MAX_CHARS:
        return None
    return _resolve(raw)


def resolve_names(raws: Sequence[str | None]) -> list[str | None]:
    """Return the canonical name of each raw string, ``None`` for no model; each text is resolved once.

    >>> resolve_names(["Intel Xeon E5-2670v2", None, "s+Intel(R) Xeon(R) CPU E5-2670 v2 @ 2.50GHz 25600 KB"])
    ['Intel Xeon E5-2670 v2', None, 'Intel Xeon E5-2670 v2']
    """
    names: dict[str | None, str | None] = {}
    for raw in set(raws):
        model = resolve(raw)
        names[raw] = None if model is None else model.name
    return [names[raw] for raw in raws]


def canonical(row: Mapping[str, object]) -> str:
    """Return the name under which a row with ``level`` and ``name`` is found: CPU models are resolved."""
    name = str(row["name"])
    return (resolve_names([name])[0] or name) if row["level"] == "cpu_model" else name


@lru_cache(maxsize=16_384)
def _resolve(raw: str) -> CpuModel | None:
    # repeated until the name no longer changes: a canonical name then stands for itself
    model = _parse(raw)
    for _ in range(_MAX_PASSES):
        if model is None:
            return None
        again = _parse(model.name)
        if again is None:
            return None
        if again.name == model.name:
            return replace(model, vendor=again.vendor, virtual=again.virtual)
        model = replace(model, name=again.name)
    return None


def _parse(raw: str) -> CpuModel | None:
    text = _complete(raw)
    if text is None:
        return None
    text = _UNIT.sub("", " ".join(_TRADE_MARKS.sub(" ", text).split()))
    text, flags = _take_flags(text)
    # before the next line, which takes the number away
    cores = _cores(text)
    text = _PILOT_CORE.sub(r"\1 Core Processor", _PILOT_BRAND.sub(r"\1 Processor", text))
    # After the "@" a string only carries details, whatever is glued to them.
    head, at, _ = text.partition("@")
    clock = _clock_ghz(text)
    for details in (_CACHE, _CLOCK, _SOCKETS, _SMT, _CORES):
        head = details.sub(" ", head)
    head = _FIRMWARE.sub("", _GENERATION.sub("", " ".join(head.split())))
    if _NO_MODEL.fullmatch(head):
        return None
    named = _name(head, clock, masked=bool(at))
    if named is None:
        return None
    name, vendor, virtual = named
    sockets = _last_int(_SOCKETS, text)
    smt = _SMT.search(text)
    return CpuModel(
        name=name,
        vendor=vendor,
        virtual=virtual,
        cache_kb=_last_int(_CACHE, text),
        clock_ghz=clock,
        cores=cores,
        sockets=sockets,
        smt=_is_on(smt[0]) if smt else (False if sockets else None),
        flags=flags,
    )


def _complete(raw: str) -> str | None:
    # A limited column width leaves dots. The model is complete if the clock or the padding of its field
    # follows.
    text = "".join(c if c.isprintable() else " " for c in raw).rstrip()
    for dots in ("...", "…"):
        if text.endswith(dots):
            text = text.removesuffix(dots)
            if "@" not in text and not text.endswith("  "):
                return None
    return text


def _take_flags(text: str) -> tuple[str, tuple[str, ...]]:
    # the plus of ``8592+`` or ``2.5+`` belongs to the name
    match = _FLAGS.search(text)
    if match is None:
        return text, ()
    flags = (flag for flag in re.split(r"[+| ]", match[0]) if flag)
    return text[: match.start()].rstrip(), tuple(flag.upper() for flag in flags)


def _name(head: str, clock: float | None, *, masked: bool) -> tuple[str, str | None, bool] | None:
    vendor = _vendor(head)
    if any(pattern.search(head) for pattern in _VIRTUAL):
        return head, vendor, True
    if vendor is None:
        head = _with_vendor(head)
        vendor = _vendor(head)
    words = head.split()
    if vendor is None:
        return (head, None, False) if _is_model(words) else None
    words = _spell(words, vendor)
    if vendor.lower() not in " ".join(words).lower():
        words.insert(0, vendor)
    # "Intel Xeon Processor @ 2.10GHz" of a virtual machine names a model only by its clock
    generic = all(word.lower() in _GENERIC for word in words)
    if (generic or not _has_number(words, vendor)) and clock is not None and vendor in ("Intel", "AMD"):
        return " ".join([*words, *(["@"] if masked else []), f"{clock:.2f}GHz"]), vendor, masked
    return None if generic else (" ".join(words), vendor, False)


def _with_vendor(head: str) -> str:
    for pattern, prefix in _NUMBERS:
        if pattern.match(head):
            return f"{prefix} {head}"
    return head


def _is_model(words: list[str]) -> bool:
    """True if words of no known vendor have a word of CPUs, one with a digit, and a name."""
    lower = [word.lower() for word in words]
    return (
        any(word in _FILLER for word in lower)
        and any(any(map(str.isdigit, word)) for word in lower)
        and any(len(word) > 1 and word.isalpha() and word not in _FILLER for word in lower)
    )


def _vendor(head: str) -> str | None:
    for word in re.split(r"[ _,()/-]", head.lower()):
        if word in _VENDOR_OF:
            return _VENDOR_OF[word]
    return None


def _spell(words: list[str], vendor: str) -> list[str]:
    spelt: list[str] = []
    for word in _ARM_CORE.sub(lambda m: f"{m[1].title()}-{m[2].upper()}", " ".join(words)).split():
        lower = word.lower()
        if lower in _FILLER or not _LETTER_OR_DIGIT.search(word):
            continue
        if lower in _SPELLING:
            spelt.append(_SPELLING[lower])
        elif version := _XEON_VERSION.fullmatch(word):
            spelt += [version[1].upper(), f"v{version[2]}"]
        elif word == "0" and spelt and _XEON_NUMBER.fullmatch(spelt[-1]):
            continue  # the generation before v2 prints a zero in the version's place
        else:
            spelt.append(_spelt_number(word) if vendor in ("Intel", "AMD") else word)
    return spelt


def _spelt_number(word: str) -> str:
    if not any(c.isdigit() for c in word):
        return word
    if re.fullmatch(r"[vV]\d{1,2}", word):
        return word.lower()
    core_i = _CORE_I.fullmatch(word)
    return core_i[1].lower() + core_i[2].upper() if core_i else word.upper()


def _has_number(words: list[str], vendor: str) -> bool:
    # three digits, unlike the 4 of Pentium 4; on x86 only
    return vendor not in ("Intel", "AMD") or any(sum(c.isdigit() for c in w) >= 3 for w in words)


def _last_int(pattern: re.Pattern[str], text: str) -> int | None:
    numbers = pattern.findall(text)
    return int(numbers[-1]) if numbers else None


def _clock_ghz(text: str) -> float | None:
    match = _CLOCK.search(text)
    if match is None:
        return None
    return float(match[1]) if match[1] else float(match[2]) / 1000.0


def _cores(text: str) -> int | None:
    counts = _CORES.findall(text)
    if not counts:
        return None
    digits, word = counts[-1]
    return int(digits) if digits else _CORE_WORDS[word.lower()]


def _is_on(smt: str) -> bool:
    return "no" not in smt.lower() and "off" not in smt.lower()
