"""Sanitised external text: names from records and files may contain anything."""

import re
import unicodedata

# Categories of Unicode without a sign of their own: controls, formats (direction, zero width, soft
# hyphen, tags), surrogates, private use, unassigned, and separators of lines and paragraphs
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

# Letters, marks and symbols that are drawn as nothing: joiners, fillers, variation selectors, empty
# Braille. Source: the property Default_Ignorable_Code_Point of Unicode, as far as the categories do not
# have it.
_ALSO_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def visible(text: str) -> str:
    r"""Escape invisible and control characters: terminal escapes, line ends, direction, zero width.

    Spaces other than the plain one are escaped too, so that different names look different.

    >>> visible("\x1b[31mred"), visible("A\u202eB"), visible("A\u200bB")
    ('\\x1b[31mred', 'A\\u202eB', 'A\\u200bB')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    hidden = category in _UNSEEN or (category == "Zs" and character != " ")
    if not hidden and not _ALSO_UNSEEN.match(character):
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Text that a spreadsheet reads as a formula; some also split cells at semicolons
_FORMULA = re.compile(r"(^|;)(\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")


def spreadsheet_cell(text: str) -> str:
    """Return text that no spreadsheet takes for a formula, with an apostrophe in front if needed.

    Numbers stay numbers; invisible characters are escaped.

    >>> [spreadsheet_cell(text) for text in ("=1+1", "-0.3", "A;@B", "CERN-PROD")]
    ["'=1+1", '-0.3', "A;'@B", 'CERN-PROD']
    """
    shown = visible(text)
    return shown if _NUMBER.fullmatch(shown) else _FORMULA.sub(r"\1'\2", shown)


def kind_of(value: object) -> str:
    """Describe the type of an object for a message.

    >>> kind_of(3), kind_of(int)
    ('an object of int', 'the class int')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"an object of {type(value).__name__}"
