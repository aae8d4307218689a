"""What Argo's own evaluation makes of values, and YAML of that: the text that was given, whatever characters it has."""

import json
from collections.abc import Iterator

import pytest
import yaml
from argo_expressions import Expressions, argo_expressions
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mxnet_argo import data, text
from mxnet_argo.manifest import render

SPECIAL = "\x7f\x80\x85\x9f\u2028\ufeff\ufffe\uffff\U0001f468\u200d\U0001f469 ${}'\"\\\t\n\x01e\u0301"
"""What JSON, YAML, Argo or the kubelet would read as something else, and what takes two UTF-16 units."""

texts = st.text(st.sampled_from(SPECIAL) | st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.fixture(scope="module")
def argo() -> Iterator[Expressions]:
    with argo_expressions() as found:
        yield found


@pytest.mark.kubernetes("argo-evaluate")
@settings(max_examples=200, deadline=None)
@given(given_text=texts, around=texts.filter(lambda each: "{{" not in each))
@example(given_text=SPECIAL, around=SPECIAL)
def test_any_text_comes_out_as_it_went_in(argo: Expressions, given_text: str, around: str) -> None:
    manifest = {
        "text": text("given"),
        "joined": around + text("given") + around,
        "data": data("json"),
        "literal": around,
        "with a variable": "$(HOME)" + around,
    }
    scope = {"inputs.parameters.given": given_text, "inputs.parameters.json": json.dumps([given_text])}
    filled_in = argo.filled_in(render(manifest), scope)
    assert "$" not in filled_in
    assert "{{" not in filled_in
    assert yaml.safe_load(filled_in) == {
        "text": given_text,
        "joined": around + given_text + around,
        "data": [given_text],
        "literal": around,
        "with a variable": "$(HOME)" + around,
    }
