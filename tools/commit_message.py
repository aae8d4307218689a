"""Checks a commit's message: `area: verb object`, at most 72 characters; the commit-msg hook calls it with a file.

What git itself writes (merges, reverts, fixups) passes. Whether the first word is a verb is for the reader to see.
"""

import os
import re
import sys
from pathlib import Path
from typing import Final

LONGEST: Final = 72
"""Characters of a subject; longer ones are cut in lists of commits."""
_SCISSORS: Final = re.compile(r"^# -+ >8 -+$", re.MULTILINE)
_OF_GIT: Final = re.compile(r"(?:Merge|Revert|Reapply) |(?:fixup|squash|amend)! ")
_SUBJECT: Final = re.compile(r"[a-z][\w./-]*(?:, [a-z][\w./-]*)*: (?P<words>\S.*)")


def mistakes(message: str) -> list[str]:
    """What is wrong with a message; empty if nothing is."""
    written = _SCISSORS.split(message, maxsplit=1)[0]
    lines = [line.rstrip() for line in written.splitlines() if not line.startswith("#")]
    while lines and not lines[0]:
        lines.pop(0)
    if not lines or _OF_GIT.match(lines[0]):
        return []
    subject = lines[0]
    found = []
    if len(subject) > LONGEST:
        found.append(f"the subject has {len(subject)} characters: {LONGEST} at most, the rest belongs into the body")
    form = _SUBJECT.fullmatch(subject)
    if form is None:
        found.append("the subject is not 'area: verb object', such as 'plan: reject Workers that exit early'")
    else:
        words = form["words"]
        if words[0].isupper() and not words.split()[0].isupper():
            found.append(f"after the colon the subject begins in lower case: not {words.split()[0]!r}")
        if len(words.split()) < 2:
            found.append("the subject has a verb and an object")
        if words.endswith("."):
            found.append("the subject ends without a full stop")
    if len(lines) > 1 and lines[1]:
        found.append("the line after the subject is empty")
    return found


def main(path: str) -> int:
    """Check the message in a file; the exit code is 1 where something is wrong. CI goes by none of it."""
    found = [] if os.environ.get("CI") else mistakes(Path(path).read_text(encoding="utf-8", errors="replace"))
    for mistake in found:
        sys.stderr.write(f"commit message: {mistake}\n")
    if found:
        sys.stderr.write("git commit --no-verify commits it as it is (CONTRIBUTING.md)\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
