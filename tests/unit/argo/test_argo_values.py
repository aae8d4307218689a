"""What Argo's own evaluation makes of values, and YAML of that: the text that was given, whatever characters it has."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from argo_expressions import Expressions
from fresh_seeds import drawn
from hera.expr import g
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kubernetes_programs import kubectl

from mxnet_argo import data, expression, integer, number, text
from mxnet_argo.catalog_values import listed, mapped
from mxnet_argo.rendering import render
from mxnet_argo.values import word
from mxnet_operator.api.manifest_text import ManifestError, load

SPECIAL = "\x7f\x80\x85\x9f\u2028\ufeff\ufffe\uffff\U0001f468\u200d\U0001f469 ${}'\"\\\t\n\x01e\u0301"
"""What JSON, YAML, Argo or the kubelet would read as something else, and what takes two UTF-16 units."""

texts = st.text(st.sampled_from(SPECIAL) | st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.mark.programs("argo-evaluate")
@settings(max_examples=drawn(200, 40))
@given(given_text=texts, around=texts.filter(lambda each: "{{" not in each))
@example(given_text=SPECIAL, around=SPECIAL)
@example(given_text="}}", around="{}}}")
def test_any_text_comes_out_as_it_went_in(argo: Expressions, given_text: str, around: str) -> None:
    manifest = {
        "text": text("given"),
        "joined": around + text("given") + around,
        "data": data("json"),
        "literal": around,
        "with a variable": "$(HOME)" + around,
    }
    scope = {"inputs.parameters.given": given_text, "inputs.parameters.json": json.dumps([given_text])}
    scope["node.name"] = "n"
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


@pytest.mark.programs("argo-evaluate")
@pytest.mark.parametrize("around", ["}}", "{{", '{"a": {"b": 1}}', "{{=1}}", "}}}", "{{{"])
def test_braces_around_an_input_are_no_tag(argo: Expressions, around: str) -> None:
    rendered = render({"joined": around + text("given") + around})
    assert rendered.count("{{") == rendered.count("}}") == 1
    assert json.loads(argo.filled_in(rendered, {"inputs.parameters.given": "x"}).removeprefix("joined: ")) == (
        f"{around}x{around}"
    )


@pytest.mark.programs("argo-evaluate")
def test_numbers_and_json_may_come_from_any_expression_and_from_heras(argo: Expressions) -> None:
    manifest = {
        "workers": integer(expression("workflow.parameters['gpu-workers']")),
        "rate": number(expression(g.workflow.parameters.rate)),
        "volumes": data(expression("inputs.parameters.gpus == '0' ? '[]' : workflow.parameters.volumes")),
        "args": ["--lr=" + expression(g.workflow.parameters.rate)],
    }
    scope = {
        "workflow.parameters.gpu-workers": "3",
        "workflow.parameters.rate": "0.5",
        "workflow.parameters.volumes": '[{"name": "data"}]',
        "inputs.parameters.gpus": "1",
        "node.name": "n",
    }
    assert yaml.safe_load(argo.filled_in(render(manifest), scope)) == {
        "workers": 3,
        "rate": 0.5,
        "volumes": [{"name": "data"}],
        "args": ["--lr=0.5"],
    }


@pytest.mark.programs("argo-evaluate")
def test_an_argument_that_the_workflow_lacks_is_named(argo: Expressions) -> None:
    lr = expression("workflow.parameters.lrr")
    scope = {"workflow.name": "w", "workflow.parameters.lr": "0.1", "node.name": "n"}
    for value in (lr, "--lr=" + lr, integer(lr), data(lr), expression("workflow.parameters['lrr']") + "!"):
        with pytest.raises(ManifestError, match=r"workflow\.parameters.*lrr.* has no value"):
            load(argo.filled_in(render({"args": [value]}), scope))
    assert load(argo.filled_in(render({"a": expression("workflow.parameters.lrr ?? 'x'")}), scope)) == {"a": "x"}
    assert load(argo.filled_in(render({"a": "--lr=" + expression("workflow.parameters.lr")}), scope)) == {
        "a": "--lr=0.1"
    }


WRONG = {
    "two": (integer("p"), "p is no whole number: two"),
    "1.5": (integer("p"), "p is no whole number: 1.5"),
    "NaN": (number("p"), "p is no number: NaN"),
    "--epochs 20": (data("p"), "p is no JSON: --epochs 20"),
    '{"a": "{{x}} $HOME"}': (listed("p"), 'p is no JSON list: {"a": "{{x}} $HOME"}'),
    "[]": (mapped("p"), "p is no JSON mapping: []"),
    "3 apples": (integer(expression("inputs.parameters['p']")), "p is no whole number: 3 apples"),
}
"""A wrong text for each kind of value, and the words of the message."""


@pytest.mark.kubernetes("argo-evaluate", "kubectl")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_value_is_shown_once_by_kubectl_and_by_mxjob_run(argo: Expressions, wrong: str, tmp_path: Path) -> None:
    value, words = WRONG[wrong]
    rendered = render({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": value})
    filled_in = argo.filled_in(rendered, {"inputs.parameters.p": wrong, "node.name": "n"})
    with pytest.raises(ManifestError) as of_mxjob:
        load(filled_in)
    (tmp_path / "job.yaml").write_text(filled_in)
    command = [kubectl(), "create", "--dry-run=client", "--validate=false", "-f", str(tmp_path / "job.yaml")]
    of_kubectl = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    for message in (str(of_mxjob.value), of_kubectl):
        assert message.count(words) == message.count(wrong) == 1


@pytest.mark.kubernetes("argo-evaluate")
def test_a_wrong_value_is_sound_yaml_while_argo_checks_a_workflow_with_placeholders(argo: Expressions) -> None:
    scope = {"inputs.parameters.p": "placeholder-1", "node.name": ""}
    assert yaml.safe_load(argo.filled_in(render({"a": integer("p")}), scope)) == {
        "a": "p is no whole number: placeholder-1"
    }


JOINED = {
    "inputs.parameters.m == 'b' ? 'sgd' : 'adam'": "sgd",
    "inputs.parameters.none ?? 'adam'": "adam",
    "inputs.parameters.m in ['b'] ? 'yes' : 'no'": "yes",
    "not (inputs.parameters.m == 'b') ? 'yes' : 'no'": "no",
    "!(inputs.parameters.m == 'b') ? 'yes' : 'no'": "no",
    "inputs.parameters.m matches '^b$' && true ? 'yes' : 'no'": "yes",
    "'c' | upper()": "C",
    "let a = inputs.parameters.m; a + a": "bb",
    "string(2 + 3) + inputs.parameters.m": "5b",
    "string(2 * 3)": "6",
    "inputs.parameters['a-b'] + \"(\" + `[`": "c([",
    "('d') + (inputs.parameters.m == 'b' ? 'e' : 'f')": "de",
    "['g', 'h'][0]": "g",
    "{'k': 'v'}.k": "v",
    "inputs?.parameters?.m": "b",
    "true ? 'a ? b' : 'c'": "a ? b",
    "if inputs.parameters.m == 'b' { 'sgd' } else { 'adam' }": "sgd",
}
"""Expressions of each operator that binds less than +, and of those that don't, with what they give."""


@pytest.mark.programs("argo-evaluate")
@pytest.mark.parametrize("source", JOINED)
def test_text_around_an_expression_changes_nothing_in_it(argo: Expressions, source: str) -> None:
    given_text = expression(source)
    joins = {"alone": given_text, "before": "--o=" + given_text, "after": given_text + "!"}
    joins |= {"both": "<" + given_text + ">", "twice": given_text + (given_text + "!"), "words": "<" + word(source)}
    scope = {"inputs.parameters.m": "b", "inputs.parameters.a-b": "c"}
    made = yaml.safe_load(argo.filled_in(render(joins), scope))
    is_ = JOINED[source]
    assert made == {
        "alone": is_,
        "before": "--o=" + is_,
        "after": is_ + "!",
        "both": f"<{is_}>",
        "twice": is_ + is_ + "!",
        "words": "<" + is_,
    }


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("toJson({'a': {'b': 1}})", r"write '} }'"),
        ("{{workflow.name}}", r"write '{ {'"),
        ("map(x, {{'a': #}})", r"write '{ {'"),
        (" ", "can't be empty"),
    ],
)
def test_an_expression_that_ends_its_own_tag_is_rejected_with_what_to_write(source: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        expression(source)


@pytest.mark.programs("argo-evaluate")
def test_braces_that_stand_apart_end_no_tag(argo: Expressions) -> None:
    made = yaml.safe_load(argo.filled_in(render({"a": expression("toJson({'a': {'b': 1} })")}), {}))
    assert json.loads(made["a"]) == {"a": {"b": 1}}


def test_values_of_one_key_that_are_repeated_by_turns_stay_apart() -> None:
    """A manifest has each long value once, under an anchor, and aliases of that."""
    one, two = text("one"), text("two")
    rendered = render({f"{n}": {"args": value} for n, value in enumerate([one, two, one, two, "x" + two, one])})
    assert rendered.count("parameters.one") == 1
    filled_in = re.sub(r"\{\{=.*?parameters\.(\w+)\).*?\}\}", r"\1", rendered)
    assert [each["args"] for each in yaml.safe_load(filled_in).values()] == ["one", "two", "one", "two", "two", "one"]


def test_a_manifest_with_a_long_text_is_written_at_once() -> None:
    long = "x" * 1_000_000
    assert yaml.safe_load(render({"a": long, "b": "$HOME"})) == {"a": long, "b": "$HOME"}
