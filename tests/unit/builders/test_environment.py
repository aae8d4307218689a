"""The environment of a job's containers: that of training-operator 1.8.1, and the user's own."""

import json
from typing import Any

import pytest
from builders import built_pod, make_mxjob


def env(manifest: dict[str, Any], container: int = 0) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in manifest["spec"]["containers"][container]["env"]}


def test_a_worker_of_a_gang_has_what_training_operator_gave_it_and_a_folder_for_its_output() -> None:
    variables = env(built_pod(make_mxjob().gang(), index=1))
    config = json.loads(variables.pop("MX_CONFIG"))
    assert variables == {
        "DMLC_PS_ROOT_URI": "digits-scheduler-0",
        "DMLC_PS_ROOT_PORT": "9091",
        "DMLC_NUM_SERVER": "2",
        "DMLC_NUM_WORKER": "2",
        "DMLC_ROLE": "worker",
        "DMLC_USE_KUBERNETES": "1",
        "DMLC_WORKER_ID": "1",
        "MXJOB_OUTPUT_DIR": ".",
    }
    assert config == {
        "cluster": {
            "scheduler": [{"url": "digits-scheduler-0", "port": 9091}],
            "server": [
                {"url": "digits-server-0.digits-mx", "port": 9091},
                {"url": "digits-server-1.digits-mx", "port": 9091},
            ],
            "worker": [
                {"url": "digits-worker-0.digits-mx", "port": 9091},
                {"url": "digits-worker-1.digits-mx", "port": 9091},
            ],
        },
        "labels": {"scheduler": "", "server": "", "worker": ""},
        "task": {"type": "worker", "index": 1},
    }


def test_an_output_folder_of_the_users_own_stays() -> None:
    own = [{"name": "MXJOB_OUTPUT_DIR", "value": "/models"}]
    assert env(built_pod(make_mxjob().worker(1, env=own)))["MXJOB_OUTPUT_DIR"] == "/models"


@pytest.mark.parametrize("replica_type", ["Scheduler", "Server"])
def test_only_workers_have_a_worker_id(replica_type: str) -> None:
    variables = env(built_pod(make_mxjob().gang(), replica_type))
    assert "DMLC_WORKER_ID" not in variables
    assert variables["DMLC_ROLE"] == replica_type.lower()


def test_without_a_scheduler_the_root_is_empty() -> None:
    variables = env(built_pod(make_mxjob().worker(1)))
    assert (variables["DMLC_PS_ROOT_URI"], variables["DMLC_PS_ROOT_PORT"]) == ("", "0")


def test_a_tuner_has_its_key_and_no_role() -> None:
    builder = make_mxjob().replicas("TunerTracker", 1).replicas("TunerServer", 1).replicas("Tuner", 1)
    builder.template_metadata("TunerServer", annotations={"tuner-server-key": "2080ti"})
    variables = env(built_pod(builder, "Tuner"))
    assert "DMLC_ROLE" not in variables
    assert json.loads(variables["MX_CONFIG"])["labels"]["tunerserver"] == "2080ti"


def test_our_variable_replaces_the_users_of_that_name_and_leaves_all_others() -> None:
    given = [{"name": "DMLC_ROLE", "value": "boss"}, {"name": "PS_VERBOSE", "value": "2"}]
    manifest = built_pod(make_mxjob().worker(1, env=given))
    names = [variable["name"] for variable in manifest["spec"]["containers"][0]["env"]]
    assert names.count("DMLC_ROLE") == 1
    assert env(manifest)["DMLC_ROLE"] == "worker"
    assert env(manifest)["PS_VERBOSE"] == "2"


def test_the_users_variables_come_after_ours_so_that_they_can_refer_to_them() -> None:
    builder = make_mxjob().worker(2, env=[{"name": "RANK", "value": "w$(DMLC_WORKER_ID)"}])
    listed = [variable["name"] for variable in built_pod(builder)["spec"]["containers"][0]["env"]]
    assert listed.index("DMLC_WORKER_ID") < listed.index("RANK")


def test_every_container_has_the_variables() -> None:
    containers = [{"name": "mxnet", "image": "a"}, {"name": "sidecar", "image": "b"}]
    assert env(built_pod(make_mxjob().worker(1).template("Worker", containers=containers)), 1)["DMLC_ROLE"] == "worker"


def test_fail_fast_can_be_switched_off() -> None:
    assert env(built_pod(make_mxjob().worker(1).run_policy(failFast=False)))["MXJOB_FAILFAST"] == "off"


def test_a_worker_is_told_when_it_has_stalled_and_what_it_resumes_from() -> None:
    own = {"checkpoint": "/m/{epoch}.params"}
    for resume, attempt, asked in (
        ({}, 0, None),
        ({}, 2, {"checkpoint": "{--model-prefix}{-rank}-{epoch}.params", "args": ["--load-epoch", "{epoch}"]}),
        (own, 1, {**own, "args": []}),
        ({**own, "args": ["--from={epoch}"]}, 1, {**own, "args": ["--from={epoch}"]}),
    ):
        job = make_mxjob().gang().run_policy(resume=resume, stallTimeoutSeconds=60)
        variables = env(built_pod(job, attempt=attempt))
        assert (variables["MXJOB_STALL_TIMEOUT"], variables["MXJOB_ATTEMPT"]) == ("60", str(attempt))
        assert json.loads(variables.get("MXJOB_RESUME", "null")) == (asked and {**asked, "since": 0})
        assert "MXJOB_STALL_TIMEOUT" not in env(built_pod(job, "Server"))
