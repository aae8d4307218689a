"""Values of a manifest that Argo fills in: each becomes one JSON value, so that no parameter breaks out of its place.

`{{inputs.parameters.x}}` pastes text: a quote, a newline or a brace in it changes the manifest. `{{=toJson(...)}}` and
`{{=asInt(...)}}` can't (`docs/facts/argo.md`, substitution): these are the only tags that the manifests here contain.
What they have become is read twice more. Argo would replace a tag within a parameter by text; and `$(NAME)` and `$$`
mean something to the kubelet, since Argo keeps the manifest in a variable of its pod. So no value has `{{` or `$`.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_REFERENCE = re.compile(r"inputs\.parameters(?:\.([a-zA-Z_][a-zA-Z0-9_]*)|\['([^']+)'\])")


@dataclass(frozen=True)
class Value:
    """An Argo expression, and what kind of value it gives; text can be joined to other text with `+`."""

    expression: str
    kind: "Kind"

    @property
    def tag(self) -> str:
        """What stands in the manifest, unquoted."""
        return "{{=" + self.kind.encode(self.expression) + "}}"

    @property
    def parameters(self) -> frozenset[str]:
        """The input parameters that it reads."""
        return frozenset(plain or quoted for plain, quoted in _REFERENCE.findall(self.expression))

    def __add__(self, other: "str | Value") -> "Value":
        """This text, and then that."""
        return _joined(self, other)

    def __radd__(self, other: str) -> "Value":
        """That text, and then this."""
        return _joined(other, self)


@dataclass(frozen=True)
class Kind:
    """How an expression's value is written as JSON, and how a parameter's text is read to check it before that."""

    name: str
    encode: Callable[[str], str]
    parse: Callable[[str], Any]
    example: str


def _parse_integer(text: str) -> int:
    if not re.fullmatch(_WHOLE, text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _parse_number(text: str) -> float:
    if not re.fullmatch(_DECIMAL, text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def _parse_json(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ValueError(f"{text!r} is not JSON: {error}") from error
    if value is None:
        raise ValueError("null has no value: leave the parameter out")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is Python's, not JSON's")


def _json(expression: str) -> str:
    """The value as JSON, with the second of two braces, and each `$`, written as escapes, which only text can have."""
    braces = rf'sprig.replace("{{" + "{{", "{{\\u007b", toJson({expression}))'
    return rf'sprig.replace("$", "\\u0024", {braces})'


def _if_matching(expression: str, pattern: str, then: str) -> str:
    """`then` where the text is such a number, else the text itself: the API server names the field that has it."""
    return f"({expression}) matches '{pattern}' ? ({then}) : ({_json(expression)})"


# Argo retries a step whose tag it can't evaluate, or drops the value (sprig.fromJson gives nil). So what can't be read
# stays text, which the CRD's types reject at once, with the field's path.
_WHOLE: Final = "^[+-]?[0-9]{1,18}$"
_DECIMAL: Final = "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$"

_TEXT = Kind("text", _json, str, "x")
_WORD = Kind("text", lambda expression: f"toJson({expression})", str, "x")
_INTEGER = Kind("integer", lambda x: _if_matching(x, _WHOLE, f"asInt({x})"), _parse_integer, "1")
_NUMBER = Kind("number", lambda x: _if_matching(x, _DECIMAL, f"asFloat({x})"), _parse_number, "1")
_ONE_IF_ANY = Kind(
    "integer",
    lambda x: _if_matching(x, _WHOLE, f"asInt({x}) > 0 ? 1 : 0"),
    lambda text: min(_parse_integer(text), 1),
    "1",
)
_DATA = Kind("JSON", lambda x: _json(f"sprig.fromJson({x}) ?? {x}"), _parse_json, '["x"]')


def text(parameter: str) -> Value:
    """The text of an input parameter, whatever characters it has."""
    return Value(_reference(parameter), _TEXT)


def integer(parameter: str) -> Value:
    """An input parameter that is a whole number."""
    return Value(_reference(parameter), _INTEGER)


def number(parameter: str) -> Value:
    """An input parameter that is a number."""
    return Value(_reference(parameter), _NUMBER)


def data(parameter: str) -> Value:
    """An input parameter that is JSON: a list of arguments, a mapping."""
    return Value(_reference(parameter), _DATA)


def expression(source: str) -> Value:
    """The text that an Argo expression gives: `expression("workflow.name")`."""
    return Value(source, _TEXT)


def word(source: str) -> Value:
    """The text that an Argo expression gives which has no braces: a name, a uid, a hash."""
    return Value(source, _WORD)


def one_if_any(count: int | Value) -> int | Value:
    """1 where a count is not 0: whoever has servers needs a scheduler."""
    if isinstance(count, Value):
        return Value(count.expression, _ONE_IF_ANY)
    return min(count, 1)


def _reference(parameter: str) -> str:
    if not _NAME.fullmatch(parameter):
        raise ValueError(f"{parameter!r} is not the name of a parameter: letters, digits, - and _ make one")
    plain = parameter.isidentifier()
    return f"inputs.parameters.{parameter}" if plain else f"inputs.parameters['{parameter}']"


def _joined(left: "str | Value", right: "str | Value") -> Value:
    sides = []
    for side in (left, right):
        if isinstance(side, str):
            sides.append(json.dumps(side))
        elif side.kind in (_TEXT, _WORD):
            sides.append(side.expression)
        else:
            raise TypeError(f"only text can be joined to text; {side.expression} is {side.kind.name}: use text()")
    words = all(side.kind is _WORD for side in (left, right) if isinstance(side, Value))
    return Value(" + ".join(sides), _WORD if words else _TEXT)


__all__ = ["Kind", "Value", "data", "expression", "integer", "number", "one_if_any", "text", "word"]
