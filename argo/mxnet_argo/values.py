"""Values of a manifest that Argo fills in: each becomes one JSON value, so that no parameter breaks out of its place.

`{{inputs.parameters.x}}` pastes text: a quote, a newline or a brace in it changes the manifest. `{{=toJson(...)}}` and
`{{=asInt(...)}}` can't (`docs/facts/argo.md`, substitution): these are the only tags that the manifests here contain.
What they have become is read three times more. Argo would replace a tag within a parameter by text; `$(NAME)` and `$$`
mean something to the kubelet, since Argo keeps the manifest in a variable of its pod; and YAML rejects or folds control
characters that JSON has as they are. So no value has `{{`, `$` or one of those.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hera.expr._node import Node

from mxnet_operator.description import Placeholder

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_REFERENCE = re.compile(r"inputs\.parameters(?:\.([a-zA-Z_][a-zA-Z0-9_]*)|\['([^']+)'\])")

_ARGUMENT = re.compile(r"\bworkflow\.parameters(?:\.(?!json\b)[a-zA-Z_][a-zA-Z0-9_]*|\['[^']+'\])")

_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`')
_BRACKETED = re.compile(r"\([^()\[\]]*\)|\[[^()\[\]]*\]")
_SUM = re.compile(r"[\w.]*(?: \+ [\w.]*)*")


@dataclass(frozen=True)
class Value(Placeholder):
    """An Argo expression, and what kind of value it gives; text can be joined to other text with `+`."""

    expression: str
    kind: "Kind"
    text_of: Callable[[Mapping[str, str]], str | None] | None = field(default=None, compare=False)
    """What `known_text` is, where the expression is more than a reference to one parameter."""
    named: str = field(default="", compare=False)
    """The expression of the name that a message has; by default the parameter's, or else the whole expression."""
    rules: "tuple[Rule, ...]" = field(default=(), compare=False)
    """Rules besides those of its kind."""

    @property
    def tag(self) -> str:
        """Tag that stands in the manifest, unquoted: one JSON value, or what a YAML reader rejects in words."""
        rules = (*self.kind.rules, *self.rules)
        arguments = self._arguments()
        if not rules and not arguments:
            return "{{=" + self.kind.encode(self.expression) + "}}"
        found = _REFERENCE.fullmatch(self.expression)
        named = self.named or _literal((found[1] or found[2]) if found else self.expression)
        wrong = '""'
        for rule in reversed(rules):
            wrong = f"{rule.holds} ? {wrong} : {named} + {_literal(f' {rule.wrong}: ')} + given"
        given = self.expression
        for each in arguments:
            wrong = f"{each} == nil ? {_literal(f'{each} has no value')} : {wrong}"
            given = f'{each} == nil ? "" : {given}'
        value = as_json(f'wrong == "" ? {"given" if self.is_text else self.kind.encode("given")} : wrong')
        # Argo parses a manifest before its node has a name, with placeholders for values.
        tag = '(wrong == "" || node.name == "" ? "" : "!!null ")'
        return f"{{{{=let given = {given}; let wrong = {wrong}; {tag} + {value}}}}}"

    def _arguments(self) -> list[str]:
        """Return the workflow's arguments that it reads in any case, and that may be missing."""
        is_conditional = re.search(r"\?|\blet\b", self.expression)
        return [] if is_conditional else sorted(set(_ARGUMENT.findall(self.expression)))

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset(plain or quoted for plain, quoted in _REFERENCE.findall(self.expression))

    def known_text(self, texts: Mapping[str, str]) -> str | None:
        """Return the text that it gives of these parameters' texts; None where only Argo can say."""
        if self.text_of is not None:
            return self.text_of(texts)
        found = _REFERENCE.fullmatch(self.expression)
        return texts.get(found[1] or found[2]) if found else None

    @property
    def is_text(self) -> bool:
        """Whether it gives text, whatever that says."""
        return self.kind in (_TEXT, _WORD)

    def one_if_any(self) -> "Value":
        """1 where this number is not 0."""
        return replace(self, kind=_ONE_IF_ANY)

    def none_if_one(self) -> "Value":
        """0 where this number is 1, else the number."""
        return replace(self, kind=_NONE_IF_ONE)

    def __add__(self, other: "str | Value") -> "Value":
        return _joined(self, other)

    def __radd__(self, other: str) -> "Value":
        return _joined(other, self)


@dataclass(frozen=True)
class Kind:
    """Kind of value: its expression (as JSON, where no rules are), and the check of a parameter's text before that."""

    name: str
    encode: Callable[[str], str]
    parse: Callable[[str], Any]
    example: str
    rules: "tuple[Rule, ...]" = ()


@dataclass(frozen=True)
class Rule:
    """Condition on the text `given` of a value, and what is wrong with one that breaks it.

    Such a text becomes words that YAML's tag !!null doesn't fit: kubectl and `mxjob run` reject the manifest, and their
    message has the words once. The API server's type errors don't show the value, and Argo would retry a step whose tag
    it can't evaluate.
    """

    holds: str
    wrong: str


def _parser(pattern: str, wrong: str, made: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the function that makes a value of a text which matches, and raises ValueError for any other."""

    def parse(text: str) -> Any:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} {wrong}")
        return made(text)

    return parse


def parsed(text: str) -> Any:
    """Read JSON as an input takes it.

    Raises:
        ValueError: it is none, or null.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ValueError(f"{text!r} is not JSON: {error}") from error
    if value is None:
        raise ValueError("null has no value: leave the parameter out")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is Python's, not JSON's")


def as_json(expression: str) -> str:
    """Return the expression of a value as JSON, by YAML's escapes.

    The second of two braces, each `$` and each character that YAML doesn't take are escapes, which only text can have.
    """
    braces = rf'sprig.replace("{{" + "{{", "{{\\u007b", toJson({expression}))'
    dollars = rf'sprig.replace("$", "\\u0024", {braces})'
    return rf"""join(map(split({dollars}, ""), # matches '{_NOT_YAML}' ? trim(sprig.quote(#), '"') : #))"""


def literal_json(text: str) -> str:
    """Return a text that no expression gives as JSON, with the escapes of `as_json`; it has no two braces."""
    return _SPECIAL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


# what Go's JSON leaves as it is: DEL, C1 controls (U+0085 is a line break), byte order mark, noncharacters
_NOT_YAML: Final = r"[\\x7f-\\x9f\\x{feff}\\x{fffe}\\x{ffff}]"
_SPECIAL: Final = re.compile("[$\x7f-\x9f\ufeff\ufffe\uffff]")  # these, as Python has them, and the dollar

_WHOLE: Final = "^[+-]?[0-9]{1,18}$"
_DECIMAL: Final = "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$"
_IS_WHOLE: Final = (Rule(f"given matches '{_WHOLE}'", "is no whole number"),)
_IS_NUMBER: Final = (Rule(f"given matches '{_DECIMAL}'", "is no number"),)

_TEXT = Kind("text", as_json, str, "x")
_WORD = Kind("text", lambda expression: f"toJson({expression})", str, "x")
_integer: Final = _parser(_WHOLE, "is not a whole number", int)
INTEGER = Kind("integer", lambda x: f"asInt({x})", _integer, "1", _IS_WHOLE)
_NUMBER = Kind("number", lambda x: f"asFloat({x})", _parser(_DECIMAL, "is not a number", float), "1", _IS_NUMBER)
_ONE_IF_ANY = replace(INTEGER, encode=lambda x: f"(asInt({x}) > 0 ? 1 : 0)", parse=lambda text: min(_integer(text), 1))
_NONE_IF_ONE = replace(
    INTEGER,
    encode=lambda x: f"(asInt({x}) == 1 ? 0 : asInt({x}))",
    parse=lambda text: 0 if _integer(text) == 1 else _integer(text),
)


def _json_kind(python_type: type, example: str, holds: str, what: str) -> Kind:
    def parse(text: str) -> Any:
        if not isinstance(value := parsed(text), python_type):
            raise ValueError(f"{text!r} is no {what}")  # noqa: TRY004 - a wrong text, not a wrong call
        return value

    return Kind("JSON", lambda x: f"sprig.fromJson({x})", parse, example, (Rule(holds, f"is no {what}"),))


_NO_SWITCH: Final = "is neither true nor false"
_IS_SWITCH: Final = (Rule("given in ['true', 'false']", _NO_SWITCH),)
_SWITCH = Kind("text", lambda x: x, _parser("true|false", _NO_SWITCH, str), "true", _IS_SWITCH)
_DATA = _json_kind(object, '["x"]', "sprig.fromJson(given) != nil", "JSON")
LIST = _json_kind(list, "[]", "type(sprig.fromJson(given)) == 'array'", "JSON list")
MAPPING = _json_kind(dict, "{}", "type(sprig.fromJson(given)) == 'map'", "JSON mapping")


def text(parameter: "str | Value") -> Value:
    """Return the text of an input parameter, whatever characters it has."""
    return value_of(parameter, _TEXT)


def integer(parameter: "str | Value") -> Value:
    """Return an input parameter that is a whole number, or an `expression` that gives the text of one."""
    return value_of(parameter, INTEGER)


def number(parameter: "str | Value") -> Value:
    """Return an input parameter that is a number, or an `expression` that gives the text of one."""
    return value_of(parameter, _NUMBER)


def data(parameter: "str | Value") -> Value:
    """Return an input parameter that is JSON (a list of arguments, a mapping), or an `expression` that gives it."""
    return value_of(parameter, _DATA)


def expression(source: str | Node) -> Value:
    """Return the text that an Argo expression gives: `expression("workflow.name")`.

    What is text there may be a number or JSON in the job: `integer(expression("workflow.parameters.workers"))`.

    Args:
        source: the expression, also one of Hera's: `expression(g.workflow.parameters.lr)`.

    Raises:
        ValueError: it is empty, or has two braces together, by which Argo's tag begins or ends.
    """
    source = str(source)
    if not source.strip():
        raise ValueError("an expression can't be empty")
    if together := next((braces for braces in ("{{", "}}") if braces in source), ""):
        apart = " ".join(together)
        raise ValueError(
            f"expression: {source!r} has {together!r} in it, by which Argo's tag begins or ends: write {apart!r}"
        )
    return Value(source, _TEXT)


def value_of(parameter: "str | Value", kind: Kind) -> Value:
    """Return an input parameter, or the text of an `expression`, as a value of this kind."""
    if isinstance(parameter, str):
        return Value(reference(parameter), kind)
    if parameter.is_text:
        given = parameter.expression
        return Value(given if _binds_tightly(given) else f"({given})", kind, parameter.text_of)
    raise TypeError(f"{parameter.expression} is {parameter.kind.name} already")


def switch(given: Value) -> Value:
    """Return a text that may only be `true` or `false`."""
    return value_of(given, _SWITCH)


def word(source: str) -> Value:
    """Return the text that an Argo expression gives which has no braces: a name, a uid, a hash."""
    return Value(source, _WORD)


def reference(parameter: str) -> str:
    """Return Argo's expression of an input parameter.

    Raises:
        ValueError: it is not the name of one.
    """
    if not _NAME.fullmatch(parameter):
        raise ValueError(f"{parameter!r} is not the name of a parameter: letters, digits, - and _ make one")
    plain = parameter.isidentifier()
    return f"inputs.parameters.{parameter}" if plain else f"inputs.parameters['{parameter}']"


def _binds_tightly(expression: str) -> bool:
    """Whether `+` leaves it whole: names, members, calls, and texts or these joined by `+`; `==` and `?:` bind less."""
    bare = _LITERAL.sub("", expression)
    while (inner := _BRACKETED.sub("", bare)) != bare:
        bare = inner
    return _SUM.fullmatch(bare) is not None


def _literal(text: str) -> str:
    """Return a text as an expression: without surrogate pairs, which Argo's know not, and braces that end a tag."""
    return json.dumps(text, ensure_ascii=False).replace("{{", r"{\u007b").replace("}}", r"}\u007d")


def _joined(left: "str | Value", right: "str | Value") -> Value:
    sides = []
    for side in (left, right):
        if isinstance(side, str):
            sides.append(_literal(side))
        elif side.is_text:
            sides.append(side.expression if _binds_tightly(side.expression) else f"({side.expression})")
        else:
            raise TypeError(f"only text can be joined to text; {side.expression} is {side.kind.name}: use text()")
    words = all(side.kind is _WORD for side in (left, right) if isinstance(side, Value))

    def text_of(samples: Mapping[str, str]) -> str | None:
        texts = [side if isinstance(side, str) else side.known_text(samples) for side in (left, right)]
        known = [each for each in texts if each is not None]
        return "".join(known) if known == texts else None

    return Value(" + ".join(sides), _WORD if words else _TEXT, text_of)
