"""Workflows of more than one job: a sweep over trials that chooses the best, and a tuning that a training follows."""

from collections.abc import Sequence

from hera.workflows import DAG, Parameter, Task
from hera.workflows.models import ContinueOn, ValueFrom

from mxnet_argo.inputs import as_input, parameters
from mxnet_argo.step import MXJobStep

_TRIAL = "trial"
_TUNE, _TRAIN = "tune", "train"


def sweep(
    name: str,
    step: MXJobStep,
    *,
    by: str,
    trial_inputs: Sequence[str] | str,
    parallelism: int = 4,
    highest: bool = True,
) -> DAG:
    """A DAG template that runs the step once for each trial, a few at a time, and tells which was best.

    Its input `trials` is a JSON list with one item for each trial: a mapping with a value for each of `trial_inputs`,
    or, where that is a single name, whatever that input takes. The step's other inputs are the DAG's, with the same
    defaults. A trial that fails doesn't stop the others. Its output `best` is JSON: the best trial's job and result, or
    null where no trial told the number; and `results` has those of all that did, the best one last.

    Args:
        name: the template's name.
        step: the job of one trial; its script writes a JSON object to /dev/termination-log.
        by: the number in that object by which trials are compared.
        trial_inputs: the step's inputs that differ from trial to trial.
        parallelism: how many trials run at once.
        highest: whether a higher number is better.

    Raises:
        ValueError: a trial's input is not one of the step's, or `by` is no plain name.
    """
    inputs = parameters(step.inputs)
    items = (
        {trial_inputs: "{{item}}"} if isinstance(trial_inputs, str) else {k: f"{{{{item.{k}}}}}" for k in trial_inputs}
    )
    if unknown := [each for each in items if each not in inputs]:
        raise ValueError(f"{name}: {step.name} has no input {', '.join(unknown)}; it has {', '.join(inputs)}")
    if not by.isidentifier():
        raise ValueError(f"{name}: {by!r} can't be looked up in a result: letters, digits and _ make a name")
    best, results = (_ranked(by, "asc" if highest else "desc", of_all) for of_all in ("last", ""))
    with DAG(
        name=name,
        inputs=[
            Parameter(name="trials", description="a JSON list with one item for each trial"),
            *(as_input(each) for key, each in inputs.items() if key not in items),
        ],
        outputs=[
            Parameter(name="best", value_from=ValueFrom(expression=best)),
            Parameter(name="results", value_from=ValueFrom(expression=results)),
        ],
        fail_fast=False,
        parallelism=parallelism,
    ) as dag:
        Task(
            name=_TRIAL,
            template=step.name,
            with_param="{{inputs.parameters.trials}}",
            arguments={key: items.get(key, f"{{{{inputs.parameters.{key}}}}}") for key in inputs},
            continue_on=ContinueOn(failed=True, error=True),
        )
    return dag


def _ranked(by: str, order: str, chosen: str) -> str:
    """Argo's expression for the jobs and results of the trials that told the number, or for the one `chosen` of them.

    Argo gathers each output of the trials that succeeded in a JSON list: of what the texts say where all of them are
    JSON, else of the texts; where none succeeded the outputs are no map. A trial that diverged writes NaN, which is
    Python's and not JSON's: what can't be read, or has no number there, is no trial to choose.
    """
    result = "type(told[#]) == 'string' ? (sprig.fromJson(told[#]) ?? told[#]) : told[#]"
    # The outer braces are those of a predicate; two without a space would be a tag of Argo's.
    trials = f"map(0..len(jobs) - 1, {{ {{'job': jobs[#], 'result': {result}}} }})"
    is_number = f"type(#.result) == 'map' && type(#.result?.{by}) in ['float', 'int']"
    ranked = f"sortBy(filter({trials}, {is_number}), #.result.{by}, '{order}')"
    # By way of JSON: Argo compiles with the types of what is there, and a text has no member to ask for.
    outputs = f"let outputs = fromJSON(toJson(tasks.{_TRIAL}.outputs.parameters));"
    lists = " ".join(
        f"let {name} = type(outputs) == 'map' ? fromJSON(outputs.{output}) : [];"
        for name, output in (("jobs", "job"), ("told", "result"))
    )
    return f"{outputs} {lists} len(jobs) == 0 ? '{'null' if chosen else '[]'}' : toJson({chosen}({ranked}))"


def tune_then_train(name: str, tune: MXJobStep, train: MXJobStep, *, tuned_input: str) -> DAG:
    """A DAG template that tunes, and then trains with what the tuning found.

    Both steps' inputs are the DAG's, but for `tuned_input`, the input of `train` that gets the tuning's result.

    Raises:
        ValueError: `train` has no such input.
    """
    of_tune, of_train = parameters(tune.inputs), parameters(train.inputs)
    if tuned_input not in of_train:
        raise ValueError(f"{name}: {train.name} has no input {tuned_input}; it has {', '.join(of_train)}")
    own = {**of_tune, **{key: each for key, each in of_train.items() if key != tuned_input}}
    given = {key: f"{{{{inputs.parameters.{key}}}}}" for key in own}
    result = f"{{{{tasks.{_TUNE}.outputs.parameters.result}}}}"
    with DAG(
        name=name,
        inputs=[as_input(each) for each in own.values()],
        outputs=[
            Parameter(name=key, value_from=ValueFrom(parameter=f"{{{{tasks.{_TRAIN}.outputs.parameters.{key}}}}}"))
            for key in ("job", "result")
        ],
    ) as dag:
        first = Task(name=_TUNE, template=tune.name, arguments={key: given[key] for key in of_tune})
        second = Task(
            name=_TRAIN,
            template=train.name,
            arguments={key: result if key == tuned_input else given[key] for key in of_train},
        )
        first >> second
    return dag


__all__ = ["sweep", "tune_then_train"]
