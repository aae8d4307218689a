"""What a sweep makes of whatever its trials print, by Argo's own evaluation of its expressions."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from argo_expressions import Expressions
from fresh_seeds import drawn
from hera.workflows import Parameter, Task, WorkflowTemplate
from hypothesis import given, settings
from hypothesis import strategies as st

from mxnet_argo import MXJobSpec, MXJobStep
from mxnet_argo.pipelines import ranked, sweep
from mxnet_operator.description import ranking

pytestmark = pytest.mark.programs("argo-evaluate")


def read(text: str) -> Any:
    """What a trial tells, by Python's reading of JSON, as strict as Go's; the text itself where it is none."""

    def refused(name: str) -> Any:
        raise ValueError(name)

    try:
        return json.loads(text, parse_constant=refused)
    except (ValueError, RecursionError):
        return text


def as_go_has_it(value: float | None) -> float | None:
    return None if value is None else float(value)


def ranked_outcome(
    argo: Expressions, texts: list[str], metric: str = "accuracy", direction: str = "maximize", failed: int = 0
) -> tuple[Any, list[Any], str]:
    """`best`, `results` and `outcome` of trials that told these texts, and of some that failed."""
    gathered = {"job": [f"job-{index}" for index in range(len(texts))], "result": texts} if texts else {}
    parameters = {"metric": metric, "direction": direction, "trials": json.dumps([0] * (len(texts) + failed))}
    scope: dict[str, Any] = {f"inputs.parameters.{name}": value for name, value in parameters.items()}
    scope["tasks.trial.outputs.parameters"] = json.dumps([{}] * len(texts))
    said = argo.of(ranked(), scope, {"tasks.trial.outputs.parameters": gathered})
    return json.loads(said["best"]), json.loads(said["results"]), said["outcome"]


keys = st.sampled_from(["accuracy", "val-loss", "a.b", "ärger", "loss", ""])
numbers = st.one_of(st.integers(-(2**53), 2**53), st.floats())
values = st.one_of(numbers, st.none(), st.booleans(), st.text(max_size=5), st.lists(numbers, max_size=2))
objects = st.dictionaries(keys, values, max_size=4).map(
    json.dumps
)  # NaN and Infinity among them, as Python writes them
printed = st.one_of(
    objects,
    values.map(json.dumps),
    st.text(max_size=30),
    st.sampled_from(
        ["", "null", "nan", "NaN", "{", "[]", "{{workflow.name}}", "{{=1/0}}", '{"accuracy": 1e999}', "0x1"]
    ),
    objects.map(lambda text: text[:-1]),
)


@settings(max_examples=drawn(400, 60))
@given(
    texts=st.lists(printed, max_size=6),
    metric=keys,
    direction=st.sampled_from(["maximize", "minimize"]),
    failed=st.integers(0, 2),
)
def test_whatever_trials_print_the_best_number_is_chosen_and_every_trial_is_in_the_table(
    argo: Expressions, texts: list[str], metric: str, direction: str, failed: int
) -> None:
    best, results, outcome = ranked_outcome(argo, texts, metric, direction, failed)
    told = [(f"job-{index}", read(text)) for index, text in enumerate(texts)]
    rows = ranking.ranked(told, metric, "maximize" if direction == "maximize" else "minimize")
    assert {each["job"]: as_go_has_it(each["value"]) for each in results} == {
        row["job"]: as_go_has_it(row["value"]) for row in rows
    }
    assert [each["job"] for each in results] == [row["job"] for row in rows]
    if (expected := ranking.best(rows)) is not None:
        assert (best["job"], best, outcome) == (expected["job"], results[-1], "0")
    else:
        assert best is None
        assert outcome.startswith("no trial reported a number ")
        assert f"{len(texts)} of {len(texts) + failed} succeeded" in outcome
        assert "{{" not in outcome


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_of_equal_trials_the_first_given_is_the_best(argo: Expressions, direction: str) -> None:
    for trials in (*range(2, 31), 300):
        best, results, _ = ranked_outcome(argo, ['{"accuracy": 0.5}'] * trials, direction=direction)
        assert best["job"] == "job-0"
        assert [each["job"] for each in results] == [f"job-{index}" for index in reversed(range(trials))]


@settings(max_examples=60)
@given(numbers=st.lists(st.sampled_from([0, -0.0, 1, 1.0, 0.5, "x"]), max_size=40), minimize=st.booleans())
def test_trials_of_few_numbers_are_ranked_as_airflow_ranks_them(
    argo: Expressions, numbers: list[float | str], *, minimize: bool
) -> None:
    direction: ranking.Direction = "minimize" if minimize else "maximize"
    texts = [json.dumps({"accuracy": each}) for each in numbers]
    _, results, _ = ranked_outcome(argo, texts, direction=direction)
    rows = ranking.ranked(((f"job-{index}", read(text)) for index, text in enumerate(texts)), "accuracy", direction)
    assert [each["job"] for each in results] == [row["job"] for row in rows]


def test_a_sweep_without_a_number_says_what_its_trials_told(argo: Expressions) -> None:
    _, _, outcome = ranked_outcome(argo, ['{"accuracy": NaN}', '{"loss": 1}'], failed=2)
    told = r'job-0: "{\"accuracy\": NaN}"; job-1: {"loss":1}'
    assert outcome == f'no trial reported a number "accuracy": 2 of 4 succeeded, and reported {told}'
    rows = ranking.ranked([("job-0", '{"accuracy": NaN}'), ("job-1", {"loss": 1})], "accuracy", "maximize")
    assert outcome == ranking.why_none_is_best(rows, "accuracy", 4)


REFUSED = {
    "0.1,0.2": ((), "maximize", "trials is no JSON list, such as [0.1, 0.2]: 0.1,0.2"),
    '{"a": 1}': ((), "maximize", 'trials is no JSON list, such as [0.1, 0.2]: {"a": 1}'),
    "0.1": ((), "maximize", "trials is no JSON list, such as [0.1, 0.2]: 0.1"),
    '["{{y}}"]': ((), "maximize", 'trials has two braces together, which Argo would replace: ["{ {y}}"]'),
    '[{"lr": 1}, {}]': (("lr", "mo"), "minimize", 'each of trials is a mapping with lr, mo: [{"lr": 1}, {}]'),
    "[1]": (("lr",), "maximize", "each of trials is a mapping with lr: [1]"),
    "[0.1]": ((), "min", 'direction is "min": it is maximize or minimize'),
}
"""Trials that can't run: the names of a trial's values, the direction, and the words of the message."""


def trial_of(step: MXJobStep, items: Sequence[str] | str) -> Task:
    """Return the task of a sweep that runs each trial."""
    with WorkflowTemplate(name="sweeps") as template:
        sweep("s", step, by="a", trial_inputs=items)
    (dag,) = (each for each in template.templates if each.name == "s-trials")
    (task,) = dag.tasks  # type: ignore[union-attr]
    return task


@pytest.mark.parametrize("trials", REFUSED)
def test_a_sweep_that_cannot_run_has_no_trials_and_says_why(argo: Expressions, trials: str) -> None:
    keys, direction, words = REFUSED[trials]
    inputs = [Parameter(name=key) for key in keys or ("lr",)]
    step = MXJobStep(name="train", spec=MXJobSpec(image="a", command=["a"]), inputs=inputs)
    task = trial_of(step, keys or "lr")
    scope = {"inputs.parameters.trials": trials, "inputs.parameters.direction": direction}
    assert argo.filled_in(str(task.with_param), scope) == "[]"  # type: ignore[union-attr]
    scope |= {"inputs.parameters.metric": "a"}
    scope |= {f"tasks.trial.outputs.parameters.{name}": None for name in ("job", "result")}
    assert argo.of(ranked(keys), scope, {})["outcome"] == words


@pytest.mark.parametrize("trials", ["[]", '["a b", 1, null]', '[{"lr": "}}"}]'])
def test_a_sweep_that_can_run_has_its_trials_as_they_are_written(argo: Expressions, trials: str) -> None:
    step = MXJobStep(name="train", spec=MXJobSpec(image="a", command=["a"]), inputs=[Parameter(name="lr")])
    task = trial_of(step, "lr")
    scope = {"inputs.parameters.trials": trials, "inputs.parameters.direction": "minimize"}
    assert argo.filled_in(str(task.with_param), scope) == trials  # type: ignore[union-attr]


def test_trials_that_are_skipped_or_none_are_no_trials(argo: Expressions) -> None:
    scope = {"inputs.parameters.metric": "a", "inputs.parameters.direction": "minimize"}
    scope |= {"inputs.parameters.trials": "[]"}
    skipped = {f"tasks.trial.outputs.parameters.{name}": None for name in ("job", "result")}
    said = argo.of(ranked(), {**scope, **skipped}, {})
    assert (said["best"], said["results"]) == ("null", "[]")
    assert said["outcome"] == 'no trial reported a number "a": 0 of 0 succeeded'
