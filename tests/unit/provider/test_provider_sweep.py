"""The task group of a sweep: what it is made of, what it refuses, and what its last task makes of the trials."""

import json
from collections.abc import Sequence

import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException
from airflow.serialization.serialized_objects import DagSerialization

from mxnet_provider import airflow_versions
from mxnet_provider.exceptions import MXNetSweepError
from mxnet_provider.operators.mxnet_sweep import MXNetBestTrialOperator, MXNetSweep
from mxnet_provider.operators.mxnet_tune import MXNetTuneOperator

TRIALS = [{"args": ["--rate", str(rate)]} for rate in (0.1, 0.2, 0.3)]


NO_RESULT = [("do_xcom_push", False), ("result_from", None), ("wait_for_completion", False)]


def sweep(trials=TRIALS, metric="accuracy", **arguments):
    with DAG("d", schedule=None) as dag:
        return dag, MXNetSweep("sweep", trials=trials, metric=metric, **{"image": "i", **arguments})


@pytest.mark.parametrize(("operator", "pool"), [(MXNetTuneOperator, "gpus"), (None, "default_pool")])
def test_the_group_is_trials_and_a_task_that_waits_for_all_of_them_however_they_end(operator, pool):
    dag, _ = sweep(pool=pool, **({"operator_class": operator} if operator else {}))
    trial, best = dag.get_task("sweep.trial"), dag.get_task("sweep.best")
    assert (trial.downstream_task_ids, best.trigger_rule) == ({"sweep.best"}, "all_done")
    assert trial.partial_kwargs["pool"] == pool
    assert operator is None or trial.operator_class is operator
    serialised = json.loads(json.dumps(DagSerialization.serialize_dag(dag)))
    assert set(DagSerialization.deserialize_dag(serialised).task_dict) == {"sweep.trial", "sweep.best"}


def test_trials_may_come_from_a_task_and_the_best_goes_to_another():
    with DAG("d", schedule=None) as dag:

        @task
        def rates():
            return TRIALS

        @task
        def deploy(best, results):
            """Nothing is run here."""

        later = "{% if params.lowest %}minimize{% else %}maximize{% endif %}"
        made = rates()
        shared = {"image": made, "workers": "{{ params.workers }}", "env": {"RATES": made}}
        found = MXNetSweep("sweep", trials=made, metric="loss", direction=later, **shared)
        MXNetSweep("literal", trials=[{"args": [made]}], metric="loss", **shared)
        deploy(found.output, found.output["results"])
    assert dag.get_task("sweep.trial").upstream_task_ids == {"rates"}
    assert dag.get_task("sweep.best").upstream_task_ids == {"rates", "sweep.trial"}
    assert dag.get_task("deploy").upstream_task_ids == {"sweep.best"}
    assert dag.get_task("literal.trial").upstream_task_ids == {"rates"}
    assert len(dag.task_dict) == 6  # none of those that were made to look for mistakes


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"trials": "[{}]"}, r"sweep: trials: must be a list with a mapping for each trial, is '\[{}\]'"),
        ({"trials": [["--rate", "1"]]}, r"sweep: trials\[0\]: must be a mapping of arguments such as"),
        ({"trials": [{}, {"agrs": []}]}, r"trials\[1\]: .*agrs: did you mean args\?"),
        ({"trials": [{}, {"args": "--rate 1"}]}, r"trials\[1\]: args: must be a list of strings"),
        ({"trials": [{"workers": 1}, {"workers": -1}]}, r"trials\[1\]: workers: must be a whole number"),
        ({"trials": [{"skip_on_exit_code": "99"}]}, r"trials\[0\]: skip_on_exit_code must be an exit code"),
        ({"workers": "three"}, "sweep: workers: must be a whole number"),
        ({"poll_interval": "often"}, "sweep: poll_interval must be a number of seconds"),
        ({"imagee": "i"}, r"sweep: .*imagee: did you mean image\?"),
        ({"env_vars": {}}, "sweep: Arguments of other operators: env_vars: write env"),
        ({"trials": [{"image": "j"}]}, r"trials\[0\].image: is given for all trials, too"),
        ({"trials": [{"retries": 2}]}, r"trials\[0\].retries: is an argument of every operator"),
        ({"direction": "max"}, "direction: 'max' is neither maximize nor minimize"),
        ({"task_id": "t"}, "sweep: task_id: is the group's own"),
        *[({name: value}, f"sweep: {name}: must not be {value}") for name, value in NO_RESULT],
        *[({"default_args": {name: value}}, f"sweep: {name}: must not be {value}") for name, value in NO_RESULT],
    ],
)
def test_mistakes_are_told_where_the_dag_is_parsed(arguments, refusal):
    with pytest.raises(ValueError, match=refusal):
        sweep(**arguments)


class Results:
    """What the task of the best trial asks of its task instance, and what it pushes."""

    def __init__(self, returned):
        self._returned = returned
        self.pushed = {}

    def xcom_pull(self, *, task_ids, map_indexes):
        assert task_ids == "sweep.trial"
        return self._returned[map_indexes]

    def xcom_push(self, *, key, value):
        self.pushed[key] = json.loads(json.dumps(value, allow_nan=False))


def best(returned, direction="maximize", trials=None):
    ti = Results(returned)
    operator = MXNetBestTrialOperator(
        task_id="best",
        trial_task_id="sweep.trial",
        trials=None,
        metric="accuracy",
        direction=direction,
    )
    operator.trials = [{"args": [str(index)]} for index in range(len(returned))] if trials is None else trials
    return operator.execute.__wrapped__(operator, {"ti": ti}), ti.pushed["results"]


def returned(job, result):
    return {"name": job, "state": "Succeeded", "result": result}


@pytest.mark.parametrize(("direction", "index", "value"), [("maximize", 3, 0.9), ("minimize", 1, 0.2)])
def test_the_best_is_told_with_its_trial_and_failed_trials_are_left_out(direction, index, value):
    found, results = best(
        [None, returned("b", {"accuracy": 0.2}), returned("c", "nan"), returned("d", {"accuracy": 0.9})], direction
    )
    job = "abcd"[index]
    assert found == {
        "index": index,
        "trial": {"args": [str(index)]},
        "job": job,
        "value": value,
        "result": {"accuracy": value},
    }
    assert results[-1] == found
    assert [row["index"] for row in results] == [2, *sorted({1, 3} - {index}), index]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([None, None], "0 of 2 succeeded"),
        ([returned("a", {"loss": 1}), None], '1 of 2 succeeded, and reported a: {"loss":1}'),
    ],
)
def test_without_a_number_it_fails_for_good_and_says_what_was_reported(monkeypatch, given, words):
    monkeypatch.setattr(airflow_versions, "states_in_run", lambda ti, task_id: ["failed", "skipped"])
    with pytest.raises(MXNetSweepError, match=f'no trial reported a number "accuracy": {words}'):
        best(given)


@pytest.mark.parametrize("given", [[], [None, None]])
def test_where_all_trials_were_skipped_it_is_skipped(monkeypatch, given):
    monkeypatch.setattr(airflow_versions, "states_in_run", lambda ti, task_id: ["skipped"])
    with pytest.raises(AirflowSkipException):
        best(given)


class Mapped(Sequence):
    """What a task's output is in the last task where the author maps it: the function runs at every reading."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index == 1:
            raise AirflowSkipException("not this one")
        return {"args": [str(index)]} if index < 3 else [][index]


def test_a_trial_that_the_map_function_skips_is_none_and_the_others_are_compared():
    found, results = best([returned("a", {"accuracy": 0.1}), None, returned("c", {"accuracy": 0.3})], trials=Mapped())
    assert (found["index"], found["trial"]) == (2, {"args": ["2"]})
    assert [row["index"] for row in results] == [0, 2]
