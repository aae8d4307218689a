"""Workflows of more than one job: a sweep over trials that chooses the best, and a tuning that a training follows."""

import json
from collections.abc import Collection, Sequence
from typing import get_args

from hera.workflows import DAG, Parameter, Suspend, Task
from hera.workflows.models import ContinueOn, ValueFrom

from mxnet_argo.inputs import as_input, parameters
from mxnet_argo.runner import MXJobRunner
from mxnet_argo.step import MXJobStep
from mxnet_argo.values import parsed
from mxnet_operator.description.ranking import LONGEST_REASON, Direction, check_direction

TRIALS = "trials"
_TRIAL, _OUTCOME = "trial", "outcome"
_METRIC, _DIRECTION = "metric", "direction"
_TUNE, _TRAIN = "tune", "train"


def sweep(
    name: str,
    step: MXJobStep | MXJobRunner,
    *,
    by: str,
    trial_inputs: Sequence[str] | str,
    parallelism: int = 4,
    direction: Direction = "maximize",
) -> DAG:
    """Build a DAG that runs the step once for each trial, and reports the best trial.

    Its input `trials` is a JSON list with one mapping of `trial_inputs` to values for each trial; if `trial_inputs` is
    one name, an item is that input's value. `by` and `direction` are defaults of its inputs `metric` and `direction`.
    The step's other inputs are the DAG's. A trial that fails doesn't stop the others. If `trials` or `direction` is
    wrong, the DAG fails with a message before any trial runs.

    Its output `results` is a JSON list of `{"job", "value", "result"}` of the successful trials, the best last; `value`
    is the number in the result, or null. Its output `best` is that last trial; of equal trials, the first given. If no
    trial reported a number, the DAG fails, and `results` is an output of its task `trials`.

    Call it within `with workflow`: the DAG refers to two more templates, `NAME-trials` and `NAME-outcome`.

    Args:
        name: Name of the template.
        step: Job of one trial, whose script writes a JSON object to /dev/termination-log.
        by: Key in that object whose number is compared.
        trial_inputs: Inputs of the step that differ from trial to trial.
        parallelism: Number of trials that run at once.
        direction: `maximize` or `minimize`.

    Raises:
        ValueError: a trial's input is not one of the step's, the step has an input of the name of one of the sweep's,
            or the direction is neither.
    """
    inputs = parameters(step.inputs)
    keys = () if isinstance(trial_inputs, str) else tuple(trial_inputs)
    items = {trial_inputs: "{{item}}"} if isinstance(trial_inputs, str) else {k: f"{{{{item.{k}}}}}" for k in keys}
    if unknown := [each for each in items if each not in inputs]:
        raise ValueError(f"{name}: {step.name} has no input {', '.join(unknown)}; it has {', '.join(inputs)}")
    try:
        check_direction(direction)
    except ValueError as e:
        raise ValueError(f"{name}: {e}") from e
    own = [
        Parameter(name=TRIALS, description="a JSON list with one item for each trial"),
        Parameter(name=_METRIC, default=by, description="the number of a result by which trials are compared"),
        Parameter(
            name=_DIRECTION,
            default=direction,
            description="maximize or minimize: which number is best",
            enum=list(get_args(Direction)),
        ),
    ]
    if taken := [str(each.name) for each in own if each.name in inputs and each.name not in items]:
        raise ValueError(f"{name}: {step.name} has an input {taken[0]}, which is the sweep's: give it another name")
    own += [as_input(each) for key, each in inputs.items() if key not in items]
    outcome = Suspend(name=f"{name}-{_OUTCOME}", inputs=[Parameter(name=_OUTCOME)], duration=_given(_OUTCOME))
    with DAG(
        name=f"{name}-{TRIALS}",
        inputs=[as_input(each) for each in own],
        outputs=[
            Parameter(name=output, value_from=ValueFrom(expression=expression))
            for output, expression in ranked(keys).items()
        ],
        fail_fast=False,
        parallelism=parallelism,
    ) as trials:
        Task(
            name=_TRIAL,
            template=step.name,
            # Argo would never end a DAG whose loop can't begin.
            with_param=f"{{{{={_wrong(keys)} wrong == '' ? inputs.parameters.{TRIALS} : '[]'}}}}",
            arguments={key: items.get(key, _given(key)) for key in inputs},
            continue_on=ContinueOn(failed=True, error=True),
        )
    found = f"{{{{tasks.{TRIALS}.outputs.parameters."
    with DAG(
        name=name,
        inputs=own,
        outputs=[
            Parameter(name=output, value_from=ValueFrom(parameter=f"{found}{output}}}}}"))
            for output in ("best", "results")
        ],
    ) as dag:
        all_of_them = Task(
            name=TRIALS, template=trials.name, arguments={str(each.name): _given(str(each.name)) for each in own}
        )
        all_of_them >> Task(name=_OUTCOME, template=outcome.name, arguments={_OUTCOME: f"{found}{_OUTCOME}}}}}"})
    return dag


def check_trials(given: str) -> None:
    """Reject what a sweep would end with before its first trial.

    Raises:
        ValueError: the text is no JSON list, or an empty one.
    """
    trials = parsed(given)
    if not isinstance(trials, list) or not trials:
        raise ValueError(f"{given!r} is no JSON list of one trial or more, such as [0.1, 0.2]")


def _given(parameter: str) -> str:
    return f"{{{{inputs.parameters.{parameter}}}}}"


def _wrong(keys: Collection[str]) -> str:
    """Argo's definitions of `trials`, mappings with these keys if any, and `wrong`: why the sweep can't run."""
    has_keys = " && ".join(["type(#) == 'map'", *(f"{json.dumps(key)} in #" for key in keys)])
    directions = get_args(Direction)
    return " ".join(
        (
            f"let given = inputs.parameters.{TRIALS}; let trials = sprig.fromJson(given);",
            f"let wrong = not (inputs.parameters.{_DIRECTION} in [{', '.join(map(repr, directions))}])",
            f"? 'direction is ' + toJson(inputs.parameters.{_DIRECTION}) + ': it is {' or '.join(directions)}'",
            ": type(trials) != 'array' ? 'trials is no JSON list, such as [0.1, 0.2]: ' + given",
            ": given contains '{' + '{' ? 'trials has two braces together, which Argo would replace: ' + given",
            *(
                [f": not all(trials, {has_keys}) ? 'each of trials is a mapping with {', '.join(keys)}: ' + given"]
                if keys
                else []
            ),
            ": '';",
        )
    )


def ranked(keys: Collection[str] = ()) -> dict[str, str]:
    """Argo's expressions for the outputs of the trials: `best`, `results`, and `outcome`, 0 or why there is no best.

    The rule is that of `mxnet_operator.description.ranking`, in the language of Argo's expressions.

    Argo gathers each output of the trials that succeeded in a JSON list: of what the texts say where all of them are
    JSON objects or lists, else of the texts; where none succeeded the outputs are no map, and where there was no trial
    they are nil. A trial that diverged writes NaN, which is Python's and not JSON's.
    """
    result = "type(told[#]) == 'string' ? (sprig.fromJson(told[#]) ?? told[#]) : told[#]"
    is_number = "type(#.result) == 'map' && type(#.result[metric]) in ['float', 'int']"
    # The outer braces are those of a predicate; two without a space would be a tag of Argo's.
    valued = f"{{ {{'job': #.job, 'value': {is_number} ? #.result[metric] : nil, 'result': #.result}} }}"
    rows = " ".join(
        (
            # By way of JSON: Argo compiles with the types of what is there, and a text has no member to ask for.
            f"let outputs = fromJSON(toJson(tasks.{_TRIAL}.outputs.parameters));",
            "let ended = type(outputs) == 'map' && type(outputs.job) == 'string';",
            "let jobs = ended ? fromJSON(outputs.job) : [];",
            "let told = ended ? fromJSON(outputs.result) : [];",
            f"let metric = inputs.parameters.{_METRIC};",
            f"let direction = inputs.parameters.{_DIRECTION};",
            f"let found = map(0..len(jobs) - 1, {{ {{'job': jobs[#], 'result': {result}}} }});",
            f"let rows = map(found, {valued});",
            "let order = direction == 'minimize' ? 'desc' : 'asc';",
            # Argo's sortBy leaves equals in any order.
            "let equals = groupBy(filter(rows, #.value != nil), #.value);",
            "let numbers = flatten(map(sort(keys(equals), order), reverse(equals[#])));",
        )
    )
    why = " ".join(
        (
            "let said = join(map(filter(rows, #.value == nil), #.job + ': ' + toJson(#.result)), '; ');",
            _wrong(keys),
            "let why = wrong != '' ? wrong : 'no trial reported a number ' + toJson(metric) + ': ' +",
            "string(len(jobs)) + ' of ' + string(len(trials)) + ' succeeded' +",
            "(said == '' ? '' : ', and reported ' + said);",
        )
    )
    readable = f"sprig.trunc({LONGEST_REASON}, sprig.replace('{{' + '{{', '{{ {{', why))"
    is_best = "len(numbers) > 0"
    return {
        "best": f"{rows} {is_best} ? toJson(last(numbers)) : 'null'",
        "results": f"{rows} len(rows) == 0 ? '[]' : toJson(concat(filter(rows, #.value == nil), numbers))",
        "outcome": f"{rows} {why} {is_best} ? '0' : {readable}",
    }


def tune_then_train(
    name: str, tune: MXJobStep | MXJobRunner, train: MXJobStep | MXJobRunner, *, tuned_input: str
) -> DAG:
    """Build a DAG that tunes, and then trains with what the tuning found.

    Both steps' inputs are the DAG's, but for `tuned_input`, the input of `train` that gets the tuning's result.

    Raises:
        ValueError: `train` has no such input, or both have one with different defaults.
    """
    of_tune, of_train = parameters(tune.inputs), parameters(train.inputs)
    if tuned_input not in of_train:
        raise ValueError(f"{name}: {train.name} has no input {tuned_input}; it has {', '.join(of_train)}")
    for key in of_tune.keys() & of_train.keys() - {tuned_input}:
        defaults = {each.default for each in (of_tune[key], of_train[key]) if isinstance(each.default, str)}
        if len(defaults) > 1:
            raise ValueError(
                f"{name}: {tune.name} and {train.name} both have an input {key}, with different defaults"
                f" ({', '.join(map(repr, sorted(defaults)))}): give one of them another name"
            )
    own = {**of_tune, **{key: each for key, each in of_train.items() if key != tuned_input}}
    given = {key: _given(key) for key in own}
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
