"""The one primary error of a job that did not finish, from the error codes of its record.

A PanDA record has a code per component, and several may be set; hours that are lost need one reason. The
rules follow those of the BigPanDA monitor (``core/libs/error.py``), made total: every unfinished job has one
error.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.states import UNFINISHED

Rule = Callable[[str, Mapping[str, str | None]], str | None]
"""Error of an unfinished job from its state and its codes by family."""

FAMILIES = ("pilot", "exe", "sup", "ddm", "brokerage", "dispatcher", "taskbuffer", "trans")
"""Components of PanDA that report codes of their own; equal numbers mean different things."""

NO_CODE = "none:0"
"""Error of a failed job whose record has no code."""

_UNPARSED = "unparsed"
_CLOSED = "closed"
# separates the codes of a job; a code that contains it is not a code
_BETWEEN = "\x1f"
EXIT_CODE = re.compile(r"-?[0-9]+(:-?[0-9]+)?")
# codes of evictions continue those of holds
_FAMILY = {"vacate": "hold"}
_OF_RESOURCES = 34  # HTCondor's JobOutOfResources; the subcode says of which
# These only report that the payload failed; its own code says more.
_CARRIERS = frozenset((1305, 1315, 1220))


@dataclass(frozen=True)
class _Rule:
    """A family whose code is taken from ``least`` on (None: any but 0), except those in ``but``."""

    family: str
    least: int | None = None
    but: frozenset[int] = frozenset()

    def code(self, codes: Mapping[str, int]) -> int | None:
        code = codes.get(self.family, 0)
        low = self.least is not None and code < self.least
        return None if code == 0 or low or code in self.but else code


_USUAL = (
    _Rule("pilot"),
    _Rule("sup", 1000, frozenset((8970,))),
    _Rule("dispatcher"),
    _Rule("ddm", but=frozenset((200,))),
    _Rule("trans"),
    _Rule("exe"),
    _Rule("taskbuffer", but=frozenset((300,))),
    _Rule("sup"),
    _Rule("ddm"),
    _Rule("taskbuffer"),
    _Rule("brokerage"),
)
# an exit code of 1 says no more than the pilot does
_OF_PAYLOAD = (_Rule("trans", 2), _Rule("exe"), _Rule("pilot"))
_OF_CLOSED = (_Rule("taskbuffer"),)


def panda_error(state: str, codes: Mapping[str, str | None]) -> str:
    """Return the primary error of an unfinished PanDA job; ``codes``: texts by family.

    ``FAMILY:CODE``; ``none:0`` for a failed job without a code, ``state:STATE`` for another one,
    ``FAMILY:unparsed`` where the only code is not a number.

    >>> panda_error("failed", {"pilot": "1305", "trans": "65", "exe": "65"})
    'trans:65'
    >>> panda_error("failed", {"pilot": "0", "trans": "n/a"})
    'trans:unparsed'
    """
    numbers = {family: _number(code) for family, code in codes.items()}
    parsed = {family: number for family, number in numbers.items() if number is not None}
    for rule in _rules(state, parsed):
        code = rule.code(parsed)
        if code is not None:
            return f"{rule.family}:{code}"
    unparsed = next((family for family, number in numbers.items() if number is None), None)
    if unparsed is not None:
        return f"{unparsed}:{_UNPARSED}"
    return NO_CODE if state == "failed" else f"state:{state}"


def _rules(state: str, codes: Mapping[str, int]) -> Sequence[_Rule]:
    if state == _CLOSED:
        return _OF_CLOSED
    return _OF_PAYLOAD if codes.get("pilot", 0) in _CARRIERS else _USUAL


def _number(text: str | None) -> int | None:
    """Return a code as a number, 0 for none; None for one that is not a whole number."""
    if text is None or not text.strip():
        return 0
    try:
        number = float(text)
        return int(number) if number == int(number) else None
    except (ValueError, OverflowError):
        return None


def batch_error(state: str, codes: Mapping[str, str | None]) -> str | None:
    """Return the primary error of an unfinished job of a batch system, by state and ``exit`` code.

    A state that gives a reason is the error (``state:timeout``); else the exit code (``exit:1:0``), else
    ``none:0``. None where the record could not carry an exit code. Source: Slurm's job_state_codes.

    >>> batch_error("timeout", {"exit": "1:0"}), batch_error("failed", {"exit": "0:9"})
    ('state:timeout', 'exit:0:9')
    """
    code = codes.get("exit")
    if state != "failed":
        return f"state:{state}"
    if "exit" not in codes:
        return None
    if code in (None, "", "0", "0:0"):
        return NO_CODE
    return f"exit:{code}" if EXIT_CODE.fullmatch(str(code)) else f"exit:{_UNPARSED}"


def htcondor_error(state: str, codes: Mapping[str, str | None]) -> str:
    """Return the primary error of an unfinished CMS job: exit code, else reason of its last hold or eviction.

    A removed job has the reason of its hold; ``hold:34.102``: memory, ``hold:34.104``: disk. Source:
    HTCondor, ``condor_holdcodes.h``.

    >>> htcondor_error("failed", {"cms": "8021"})
    'cms:8021'
    >>> htcondor_error("cancelled", {"hold": "34", "subcode": "102"})
    'hold:34.102'
    """
    families = ("cms", "hold", "vacate") if state == "failed" else ("hold", "vacate")
    for family in families:
        code = _number(codes.get(family))
        if code is None:
            return f"{_FAMILY.get(family, family)}:{_UNPARSED}"
        if code:
            sub = _number(codes.get("subcode")) if family == "hold" and code == _OF_RESOURCES else 0
            return f"{_FAMILY.get(family, family)}:{code}" + (f".{sub}" if sub else "")
    return NO_CODE if state == "failed" else f"state:{state}"


def errors_of(states: pa.Array, codes: Mapping[str, pa.Array], rule: Rule = panda_error) -> pa.Array:
    """Return the errors of a column of jobs; null for jobs that finished or whose state is unknown.

    Each combination of codes is judged once.
    """
    chosen = pc.is_in(states, pa.array(UNFINISHED, pa.string()))
    columns = (column.filter(chosen).fill_null("") for column in (states, *codes.values()))
    joined = pc.binary_join_element_wise(*columns, _BETWEEN).dictionary_encode()
    judged = [
        rule(state, dict(zip(codes, texts, strict=False)))
        for state, *texts in (each.split(_BETWEEN) for each in joined.dictionary.to_pylist())
    ]
    found = pa.array(judged, pa.string()).take(joined.indices)
    return pc.replace_with_mask(pa.nulls(len(states), pa.string()), chosen, found)
