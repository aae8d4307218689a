"""Unquoted YAML scalars as kubectl reads them, unlike PyYAML: `y`, `1e3`, `0o14`, `1:30`, a date.

kubectl reads YAML by sigs.k8s.io/yaml, a go-yaml v2, and makes JSON of it: dates stay text, and `y` is true.
"""

import contextlib
import math
import re
from typing import Any, Final

TAG: Final = "tag:yaml.org,2002:"

_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_OCTAL: Final = re.compile(r"([-+]?)0([0-7]+)")
_LARGEST: Final = 2**64
_LONGEST: Final = 1000
"""Maximum characters of a number in JSON; Python rejects integers of more than 4300 digits."""


def plain_value(text: str) -> Any:
    """Return the value of an unquoted scalar: None, a bool, an int, a float, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if not text or text[0] not in "+-.0123456789" or len(text) > _LONGEST:
        return text
    digits = text.replace("_", "")
    if text[0] != ".":
        with contextlib.suppress(ValueError):
            number = int(_OCTAL.sub(r"\g<1>0o\2", digits) if _OCTAL.fullmatch(digits) else digits, 0)
            if -_LARGEST // 2 <= number < _LARGEST:
                return number
    if not _FLOAT.fullmatch(digits if text[0] != "." else text):
        return text
    real = float(digits)
    return text if math.isinf(real) else json_number(real)


def plain_tag(text: str) -> str:
    if text == "<<":
        return f"{TAG}merge"
    value = plain_value(text)
    names = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}
    return TAG + names[type(value)]


def json_number(real: float) -> int | float:
    """Return a number as JSON's writers in Go have it: 1000 for 1e3, and 1.0 is an integer."""
    return int(real) if real.is_integer() and abs(real) < 1e21 else real
