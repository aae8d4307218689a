"""Escaping of untrusted text for terminals: logs, messages, names, server responses.

A log or a termination message may hold sequences by which terminals move the cursor, clear the screen, fill the
clipboard or their own input, and characters that reverse the order of what follows. kubectl shows ESC as `^[` for this
reason (CVE-2021-25743); here every such character is shown.
"""

import re
from typing import Final

_UNPRINTABLE: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u2028\u2029"  # line and paragraph separators
    "\u202a-\u202e\u2066-\u2069"  # overrides and isolates of the writing direction (CVE-2021-42574)
    "\ufff9-\ufffb\U000e0000-\U000e007f"  # annotations and tags, which are not shown at all
    "\ud800-\udfff"  # halves of a character, and bytes that are no UTF-8
    "]"
)
_LINE_ENDS: Final = re.compile(r"[\r\n]+")


def printable(text: str) -> str:
    r"""Return the text with every terminal control character made visible, but for tabs and newlines.

    `^[` for ESC, `<U+202E>` for what has no such name, `\xff` for a byte that Python read with `surrogateescape`.
    """
    return _UNPRINTABLE.sub(_visible, text)


def printable_cell(text: str) -> str:
    """Return the escaped text in one line, for a table's cell."""
    return printable(text.replace("\t", " ").replace("\n", r"\n"))


def printable_lines(line: str) -> list[str]:
    """Return the escaped lines of a log's line: a progress bar's carriage returns separate lines."""
    return [printable(part) for part in _LINE_ENDS.split(line) if part] or [""]


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20 or code == 0x7F:
        return f"^{chr(code ^ 0x40)}"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"<U+{code:04X}>"
