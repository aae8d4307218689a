"""Manifests read and written as kubectl does, and whatever can't be one refused with its place."""

import json
import shutil
import subprocess
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unreadable_manifests import HEADER, REFUSED

from mxnet_operator.api import manifest_text
from mxnet_operator.api.manifest_text import MOST_BYTES, ManifestError, decoded, dump, jsonable, load, read


def content(text: str) -> list[Any]:
    return [found for found, _ in read(text)]


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_no_manifest_is_refused_in_one_line_with_its_place(case: str) -> None:
    text, said = REFUSED[case]
    with pytest.raises(ManifestError) as refused:
        content(text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


TAKEN = {
    "a date as name": ("name: 2020-01-01\n", {"name": "2020-01-01"}),
    "a time": (
        "t: 2020-01-01T10:00:00Z\nu: !!timestamp 2020-01-01\n",
        {"t": "2020-01-01T10:00:00Z", "u": "2020-01-01"},
    ),
    "minutes": ("t: 1:30\np: 22:22\n", {"t": "1:30", "p": "22:22"}),
    "keys that are no text": ("1: a\ntrue: b\n1.5: c\n0x10: d\n", {"1": "a", "true": "b", "1.5": "c", "16": "d"}),
    "merges": ("a: &a {x: 1, z: 2}\nb: {<<: *a, z: 3}\n", {"a": {"x": 1, "z": 2}, "b": {"x": 1, "z": 3}}),
    "the first of merges": (
        "a: &a {x: 1}\nb: &b {x: 2}\nc: {<<: [*a, *b]}\n",
        {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 1}},
    ),
    "an anchor set anew": ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
    "JSON with halves of a character": ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
    "a mark at the beginning": ("\ufeffa: 1\n", {"a": 1}),
    "Windows' lines": ("a: 1\r\nb: |\r\n  x\r\n  y\r\n", {"a": 1, "b": "x\ny\n"}),
    "quoted": ("a: '1'\nb: \"yes\"\nc: !!str 3\n", {"a": "1", "b": "yes", "c": "3"}),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_kubectl_takes_is_taken_as_kubectl_has_it(case: str) -> None:
    text, expected = TAKEN[case]
    assert content(text) == [expected]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_of_windows_shells_is_read(encoding: str) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    assert content(decoded(mark + "a: é\n".encode(encoding))) == [{"a": "é"}]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"\x7fELF\x02\x01\xff", "not text in UTF-8: byte 6"),
        (b"\x00" * (MOST_BYTES + 1), "larger than 16 MiB, which is no manifest"),
    ],
)
def test_a_file_that_is_no_text_is_refused(given: bytes, said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        decoded(given)


def test_empty_documents_are_passed_over() -> None:
    assert content("---\n# nothing\n---\na: 1\n...\n---\n~\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a: 1\n---\nb: 2\n", 2)])
def test_one_document_is_expected_where_one_is_asked_for(text: str, count: int) -> None:
    with pytest.raises(ManifestError, match=f"{count} documents, where one is expected"):
        load(text)


_WORDS = """
y n Y N yes No on OFF true True TRUE false null Null ~ tRUE yEs nULL
2020-01-01 2020-01-01T10:00:00Z 1:30 190:20:30 12:30:45.5 1e3 1E3 1e-3 1.5 .5 1. -.5 +1 -0 0777 0888 -017
0o14 0O14 0x1F 0X1f 0b11 -0x1 1_000 1__0 1_ _1 0x_1F 1_0.5 0_7 12345678901234567890 99999999999999999999
1e400 1.0 1e21 1e20 123456789012345680000 1.2.3 1.19 v1 = - -x . .. ... .e1 1e 0x 0b2 0o9 ++1 +-1 +x 08 00 0
-9223372036854775809 abc a.b a/b a-b 100m 1Gi 10% <= 1,000 é 日本
"""
SCALARS = _WORDS.split()
_CHARACTERS = "\t'\"#%@`\x85\u2028\ufeff😀"
ODD = [*_CHARACTERS, "", " ", "a: b", "- a", "a\nb", "a\n", "{{ x }}", "*a", "&a", "!a", "a\x85b", "\na"]


def by_kubectl(text: str) -> Any:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    command = ["kubectl", "label", "--local", "--filename", "-", "by=kubectl", "--output", "json"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return json.loads(done.stdout)["data"]


def test_unquoted_words_mean_what_they_mean_to_kubectl() -> None:
    said = [word for word in SCALARS if word not in {"-", "..."}]
    text = f"{HEADER}data:\n" + "".join(f"- {word}\n" for word in said)
    for word, ours, theirs in zip(said, content(text)[0]["data"], by_kubectl(text), strict=True):
        # Of large numbers kubectl shows as many digits as a float has.
        same = float(ours) == float(theirs) if type(ours) is int and type(theirs) is int else ours == theirs
        assert (word, type(ours), same) == (word, type(theirs), True)


def test_what_is_written_means_the_same_to_kubectl() -> None:
    assert by_kubectl(HEADER + dump({"data": SCALARS + ODD})) == SCALARS + ODD


words = st.text() | st.sampled_from(SCALARS + ODD)
keys = words.filter(lambda key: len(key) <= 80)
"""YAML reads no key of more than 1,024 characters, as which an escaped text of 85 may be written."""
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(json_values.filter(lambda value: value is not None))
def test_what_is_written_is_read_again(value: Any) -> None:
    assert content(dump(value)) == [value]
    assert content(json.dumps(value)) == [value]


@pytest.mark.parametrize("document", ["[*a, *a, *a, *a]", "{<<: [*a, *a, *a, *a]}"])
def test_aliases_of_aliases_are_refused_before_they_fill_the_memory(
    document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_text, "_MOST_VALUES", 1000)
    lines = [f"a{n}: &a{n} {document.replace('*a', f'*a{n - 1}')}" for n in range(1, 20)]
    with pytest.raises(ManifestError, match="its aliases stand for more than 1000 values"):
        content("\n".join(["a0: &a0 {x: y}", *lines]))


@pytest.mark.parametrize("space", ["", " ", "\t"], ids=repr)
def test_json_may_have_space_before_and_after_a_colon(space: str) -> None:
    assert content(f'{{"a"{space}:{space}{{"b"{space}: [1,{space}2]}},{space}"c": "d"}}') == [
        {"a": {"b": [1, 2]}, "c": "d"}
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metadata": {"name": date(2020, 1, 1)}}, r"metadata.name: datetime.date\(2020, 1, 1\) is a date, .*quote it"),
        ({"spec": {"a": [1, {2}]}}, r"spec.a\[1\]: \{2\} is a set, which JSON can't say"),
        ({"spec": b"x"}, "spec: b'x' is a bytes"),
        ({"spec": {1: 2}}, "spec: the key 1 is a int, not a string"),
        ({"spec": float("nan")}, "spec: nan is a float"),
        (7j, "the manifest: 7j is a complex"),
    ],
)
def test_a_manifest_of_a_program_with_what_json_cannot_say_is_refused_by_its_path(given: Any, said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        jsonable(given)


def test_a_manifest_of_a_program_that_contains_itself_is_refused() -> None:
    manifest: dict[str, Any] = {"spec": {}}
    manifest["spec"]["again"] = [manifest]
    with pytest.raises(ManifestError, match="nested deeper than 100 levels"):
        jsonable(manifest)
