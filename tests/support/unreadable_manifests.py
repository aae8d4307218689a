"""Texts that can be no manifest, each with what is said of it."""

HEADER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"


REFUSED = {
    "refers to itself": ("a: 1\nb: &b\n  c: *b\n", "nested deeper than 100 levels"),
    "a mapping merged into itself": ("a: &a\n  <<: *a\n", "nested deeper than 100 levels"),
    "a list as key": ("a: 1\n[b]: 2\n", "line 2, column 1: a key can't be a list"),
    "a mapping as key": ("a: 1\n? {b: c}\n: 2\n", "line 2, column 3: a key can't be a mapping"),
    "null as key": ("a: {~: 2}\n", "line 1, column 5: a key can't be null"),
    "a key twice": ("a: 1\nb: {c: 1,\n  c: 2}\n", 'line 3, column 3: key "c" is set twice'),
    "a key twice, once as a number": ("1: a\n'1': b\n", 'line 2, column 1: key "1" is set twice'),
    "binary": ("a: !!binary aGk=\n", "line 1, column 4: the tag !!binary says what JSON can't"),
    "a set": ("a: !!set {b, c}\n", "line 1, column 4: the tag !!set says what JSON can't"),
    "an ordered mapping": ("a: !!omap [b: 1]\n", "line 1, column 4: the tag !!omap says what JSON can't"),
    "a tag of Python's": ("a: !!python/object:os.system x\n", "line 1, column 4: the tag !!python/object:os.system"),
    "a tag of one's own": ("a: !Ref x\n", "line 1, column 4: the tag !Ref says what JSON can't"),
    "a tag that is not true": ("a: !!int x\n", "line 1, column 4: 'x' is not of type int"),
    "no number": ("a: .nan\n", "line 1, column 4: .nan is a number that JSON can't say"),
    "infinity": ("a: -.inf\n", "line 1, column 4: -.inf is a number that JSON can't say"),
    "half of a character": ('a: "\\ud800"\n', "line 1, column 4: half of a character"),
    "a template of Helm": (
        "a:\n  b: {{ .Values.x }}\n",
        "line 2, column 7: a key can't be a mapping; this looks like a",
    ),
    "a block of Helm": (
        "a: 1\n{{- if .Values.x }}\nb: 2\n{{- end }}\n",
        "; this looks like a template that is not rend",
    ),
    "a tab": ("a:\n\tb: 1\n", "line 2, column 1: not valid YAML: found character '\\t' that cannot start any token"),
    "an unknown anchor": ("a: *b\n", "line 1, column 4: not valid YAML: found undefined alias 'b'"),
    "not closed": ("a: [1\n", "not valid YAML: expected ',' or ']'"),
    "a control character": ("a: 1\nb: \x1b[2J\n", "line 2, column 4: not valid YAML: character U+001B is not allowed"),
    "nested lists": ("[" * 100_000, "nested deeper than 100 levels"),
    "nested mappings": ("{a: " * 100_000, "nested deeper than 100 levels"),
    "nested blocks": ("".join(" " * n + "a:\n" for n in range(500)), "nested deeper than 100 levels"),
    "nested by aliases": (
        "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 300)),
        "nested deeper",
    ),
    "a number as long as a book": ("a: !!int " + "1" * 5000 + "\n", "is not of type int"),
}
