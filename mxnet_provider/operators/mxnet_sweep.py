"""The task group that trains once for each trial, and reports which was best."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.common.compat.sdk import DAG, AirflowSkipException, BaseOperator, TaskGroup, XComArg

from mxnet_operator.api.storable import storable
from mxnet_operator.description import ranking
from mxnet_operator.description.plain import plain
from mxnet_operator.description.ranking import Direction
from mxnet_provider import airflow_versions
from mxnet_provider.exceptions import MXNetSweepError
from mxnet_provider.operators.described_job import is_rendered_later
from mxnet_provider.operators.mxnet_job import MXNetJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

_OF_THE_GROUP = frozenset({"task_id", "dag", "task_group"})
_FOR_A_RESULT = ("do_xcom_push", "result_from", "wait_for_completion")
"""Arguments without which a trial returns nothing to compare."""


class MXNetSweep(TaskGroup):
    """Run one MXJob for each trial, and report the trial whose result has the best number.

    The group has two tasks: `trial`, mapped over the trials, and `best`, which compares their results when all have
    ended. A trial that fails or is skipped doesn't stop the others. `best` fails if no trial reported the number, and
    is skipped if all trials were.

    `best` returns `{"index", "trial", "job", "value", "result"}`: the index of the best trial in `trials`, that item,
    the job's name, its number, and its whole result. Of equal trials the first is the best. Its XCom `results` lists
    the trials that succeeded, the best last. Tasks downstream take them as the group's `output` and
    `output["results"]`.

    A `pool` or `max_active_tis_per_dagrun` limits how many trials run at once.

    Args:
        group_id: Id of the task group; its tasks are `<group_id>.trial` and `<group_id>.best`.
        trials: One mapping for each trial, of the arguments that differ: `{"args": ["--learning-rate",
            "0.01"]}`; or an earlier task's output with such a list.
        metric: Key in a trial's JSON result whose number is compared. (templated)
        direction: `maximize`: the highest number is the best. `minimize`: the lowest. (templated)
        operator_class: Operator of a trial: `MXNetJobOperator`, or a class derived from it.
        job: Arguments that all trials share, as for `operator_class`.

    Raises:
        ValueError: an item is no mapping, has an argument that there is not, or one that all trials share; trials would
            return no result; or the direction is neither.
    """

    def __init__(
        self,
        group_id: str,
        *,
        trials: Sequence[Mapping[str, Any]] | XComArg,
        metric: str,
        direction: Direction | str = "maximize",
        operator_class: type[MXNetJobOperator] = MXNetJobOperator,
        **job: Any,
    ) -> None:
        if not is_rendered_later(direction):
            ranking.check_direction(direction)
        super().__init__(group_id=group_id)
        defaults = {**self.dag.default_args, **self.default_args, **(job.get("default_args") or {})}
        aside = DAG("checked", schedule=None)
        make = partial(operator_class, dag=aside, task_group=aside.task_group, default_args=defaults)
        if found := [*_mistakes(trials, job, make), *_without_result({**defaults, **job})]:
            raise ValueError("\n".join(f"{group_id}: {each}" for each in found))
        with self:
            trial = operator_class.partial(task_id="trial", **job).expand_kwargs(trials)
            best = MXNetBestTrialOperator(
                task_id="best",
                trial_task_id=trial.task_id,
                trials=trials,
                metric=metric,
                direction=direction,
                trigger_rule="all_done",
            )
            trial >> best
        self.output: XComArg = best.output


class MXNetBestTrialOperator(BaseOperator):
    """Compare the results of a sweep's trials, and return the best: the last task of `MXNetSweep`.

    Args:
        trial_task_id: Id of the mapped task whose results are compared.
        trials: What that task is mapped over. (templated)
        metric: Key in a trial's JSON result whose number is compared. (templated)
        direction: `maximize` or `minimize`. (templated)
        kwargs: As for every operator.
    """

    template_fields: Sequence[str] = ("trials", "metric", "direction")
    ui_color = "#dcebf3"

    def __init__(
        self, *, trial_task_id: str, trials: Any, metric: str, direction: Direction | str, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.trial_task_id = trial_task_id
        self.trials = trials
        self.metric = metric
        self.direction = direction

    def execute(self, context: "Context") -> dict[str, Any]:
        """Return the best trial, and push the list of all that succeeded as `results`.

        Raises:
            MXNetSweepError: no trial reported the number; with what they did report.
            AirflowSkipException: all trials were skipped.
            ValueError: the direction is neither maximize nor minimize.
        """
        ranking.check_direction(self.direction)
        ti: Any = context["ti"]
        trials = _trials_by_index(self.trials or [])
        results, indexes = [], {}
        for index in range(len(trials)):
            returned = ti.xcom_pull(task_ids=self.trial_task_id, map_indexes=index)
            if isinstance(returned, Mapping):
                results.append((str(returned.get("name")), returned.get("result")))
                indexes[results[-1][0]] = index
        rows = ranking.ranked(results, self.metric, "minimize" if self.direction == "minimize" else "maximize")
        table = [
            storable({"index": indexes[row["job"]], "trial": plain(trials[indexes[row["job"]]]), **row}) for row in rows
        ]
        ti.xcom_push(key="results", value=table)
        for row in table:
            self.log.info("Trial %d, %s: %s is %s", row["index"], row["job"], self.metric, row["value"])
        if ranking.best(rows) is None:
            states = set(airflow_versions.states_in_run(ti, self.trial_task_id))
            if states <= {"skipped", "removed"}:
                raise AirflowSkipException("All trials were skipped.")
            raise MXNetSweepError(ranking.why_none_is_best(rows, self.metric, len(trials)))
        chosen: dict[str, Any] = table[-1]
        self.log.info("The best of %d trials is trial %d.", len(trials), chosen["index"])
        return chosen


def _trials_by_index(trials: Sequence[Any]) -> list[Any]:
    """Read the trials as Airflow does for each mapped task; None where the author's `.map` function skips one."""
    found = []
    for index in range(len(trials)):
        try:
            found.append(trials[index])
        except AirflowSkipException:
            found.append(None)
    return found


def _mistakes(trials: Any, job: Mapping[str, Any], make: Callable[..., object]) -> Iterator[str]:
    """Yield every mistake that can be seen where the DAG is parsed."""
    for taken in sorted(_OF_THE_GROUP & set(job)):
        yield f"{taken}: is the group's own, leave it out"
    if found := list(_refused("", "", job, make)):
        yield from found
        return
    if isinstance(trials, XComArg):
        return
    if isinstance(trials, str) or not isinstance(trials, Sequence):
        yield f"trials: must be a list with a mapping for each trial, is {trials!r}"
        return
    for index, trial in enumerate(trials):
        where = f"trials[{index}]"
        if not isinstance(trial, Mapping):
            yield f"{where}: must be a mapping of arguments such as {{'args': [...]}}, is {trial!r}"
            continue
        given = set(map(str, trial))
        for name in sorted(given & _OF_EVERY_OPERATOR):
            yield f"{where}.{name}: is an argument of every operator: give it for all trials"
        for name in sorted(given & set(job) - _OF_EVERY_OPERATOR):
            yield f"{where}.{name}: is given for all trials, too: leave it out of one of them"
        yield from _refused(f"{where}: ", f"-{index}", {**job, **trial}, make)


def _refused(where: str, suffix: str, arguments: Mapping[str, Any], make: Callable[..., object]) -> Iterator[str]:
    """Yield what the operator rejects of its own arguments, as far as they are known where the DAG is parsed."""
    known = {
        name: "{{ a task returns it }}" if any(XComArg.iter_xcom_references(value)) else value
        for name, value in arguments.items()
        if name not in _OF_EVERY_OPERATOR
    }
    try:
        make(task_id=f"trial{suffix}", **known)
    except (TypeError, ValueError) as e:
        yield where + " ".join(str(e).split())


def _without_result(shared: Mapping[str, Any]) -> Iterator[str]:
    """Yield each argument that keeps trials from returning what they are compared by."""
    for name in _FOR_A_RESULT:
        if name in shared and not is_rendered_later(shared[name]) and not shared[name]:
            yield f"{name}: must not be {shared[name]!r}: trials are compared by what they return"


_OF_EVERY_OPERATOR: Final = frozenset(inspect.signature(BaseOperator.__init__).parameters) - {"self", "kwargs"}
