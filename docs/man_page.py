"""Manual page of the command, from the page of the command line."""

import re
from collections.abc import Iterator

from esjobs.core.version import __version__


def man_page(markdown: str) -> str:
    r"""Return roff of a page of the command line; its table of contents and note are left out.

    >>> print(*man_page("note\n## Options\n- `--level [a|b]`: Which.\n").splitlines()[-4:], sep=", ")
    .SH OPTIONS, .TP, .B "\-\-level [a|\:b]", Which.
    """
    head = [
        f'.TH ESJOBS 1 "" "esjobs {__version__}"',
        # long words cannot be adjusted to both margins
        ".ad l",
        ".SH NAME",
        "esjobs \\- speed of queues and CPU models from job records",
        ".SH SYNOPSIS",
        ".B esjobs",
        "[OPTIONS] COMMAND [ARGS]...",
    ]
    return "\n".join([*head, *_body(markdown[markdown.index("\n## ") + 1 :])]) + "\n"


def _body(markdown: str) -> Iterator[str]:
    is_code = False
    for line in markdown.splitlines():
        if line.startswith("    ") != is_code:
            is_code = not is_code
            yield ".PP\n.nf" if is_code else ".fi"
        if is_code:
            yield _escaped(line.strip())
        elif option := re.fullmatch(r"- `([^`]+)`: (.*)", line):
            yield f'.TP\n.B "{_escaped(option[1])}"\n{_plain(option[2])}'
        elif line.startswith("## esjobs"):
            yield f'.SS "{_escaped(line.removeprefix("## "))}"'
        elif line.startswith("## "):
            yield f".SH {_escaped(line.removeprefix('## ').upper())}"
        else:
            yield _plain(line) if line else ".PP"
    if is_code:
        yield ".fi"


def _plain(text: str) -> str:
    """Return text without marks of Markdown: links are their words."""
    return _escaped(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text).replace("`", "").replace("**", ""))


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    # lists without blanks are long words
    text = re.sub(r"([|,])(?=\S)", r"\1\\:", text)
    # a line that begins with a dot or an apostrophe is a request of roff
    return f"\\&{text}" if text[:1] in {".", "'"} else text
