"""The children of a job as they are posted: environment, labels, owner, and a template that stays as it was."""

import json
from typing import Any

import pytest
from builders import JobBuilder, make_mxjob

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.child_objects import build_pod, build_service


def pod(builder: JobBuilder, replica_type: str = "Worker", index: int = 0, attempt: int = 0) -> dict[str, Any]:
    return build_pod(with_defaults(builder.obj()), replica_type, index, attempt)


def env(manifest: dict[str, Any], container: int = 0) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in manifest["spec"]["containers"][container]["env"]}


class TestEnvironment:
    def test_a_worker_of_a_gang_has_what_training_operator_gave_it(self) -> None:
        variables = env(pod(make_mxjob().gang(), index=1))
        config = json.loads(variables.pop("MX_CONFIG"))
        assert variables == {
            "DMLC_PS_ROOT_URI": "digits-scheduler-0",
            "DMLC_PS_ROOT_PORT": "9091",
            "DMLC_NUM_SERVER": "2",
            "DMLC_NUM_WORKER": "2",
            "DMLC_ROLE": "worker",
            "DMLC_USE_KUBERNETES": "1",
            "DMLC_WORKER_ID": "1",
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

    @pytest.mark.parametrize("replica_type", ["Scheduler", "Server"])
    def test_only_workers_have_a_worker_id(self, replica_type: str) -> None:
        variables = env(pod(make_mxjob().gang(), replica_type))
        assert "DMLC_WORKER_ID" not in variables
        assert variables["DMLC_ROLE"] == replica_type.lower()

    def test_without_a_scheduler_the_root_is_empty(self) -> None:
        variables = env(pod(make_mxjob().worker(1)))
        assert (variables["DMLC_PS_ROOT_URI"], variables["DMLC_PS_ROOT_PORT"]) == ("", "0")

    def test_a_tuner_has_its_key_and_no_role(self) -> None:
        builder = make_mxjob().replicas("TunerTracker", 1).replicas("TunerServer", 1).replicas("Tuner", 1)
        builder.template_metadata("TunerServer", annotations={"tuner-server-key": "2080ti"})
        variables = env(pod(builder, "Tuner"))
        assert "DMLC_ROLE" not in variables
        assert json.loads(variables["MX_CONFIG"])["labels"]["tunerserver"] == "2080ti"

    def test_our_variable_replaces_the_users_of_that_name_and_leaves_all_others(self) -> None:
        given = [{"name": "DMLC_ROLE", "value": "boss"}, {"name": "PS_VERBOSE", "value": "2"}]
        manifest = pod(make_mxjob().worker(1, env=given))
        names = [variable["name"] for variable in manifest["spec"]["containers"][0]["env"]]
        assert names.count("DMLC_ROLE") == 1
        assert env(manifest)["DMLC_ROLE"] == "worker"
        assert env(manifest)["PS_VERBOSE"] == "2"

    def test_every_container_has_the_variables(self) -> None:
        containers = [{"name": "mxnet", "image": "a"}, {"name": "sidecar", "image": "b"}]
        assert env(pod(make_mxjob().worker(1).template("Worker", containers=containers)), 1)["DMLC_ROLE"] == "worker"

    def test_fail_fast_can_be_switched_off(self) -> None:
        assert env(pod(make_mxjob().worker(1).run_policy(failFast=False)))["MXJOB_FAILFAST"] == "off"


class TestPod:
    def test_labels_owner_and_names(self) -> None:
        manifest = pod(make_mxjob().gang(), "Server", 1, attempt=2)
        assert manifest["metadata"]["name"] == manifest["spec"]["hostname"] == "digits-server-1"
        assert manifest["spec"]["subdomain"] == "digits-mx"
        assert manifest["metadata"]["labels"] == {
            "training.kubeflow.org/operator-name": "mxjob-controller",
            "training.kubeflow.org/job-name": "digits",
            "training.kubeflow.org/replica-type": "server",
            "training.kubeflow.org/replica-index": "1",
            "training.kubeflow.org/job-role": "master",
            "mxjob.kubeflow.org/job-uid": "uid-of-digits",
            "mxjob.kubeflow.org/runtime-id": "uid-",
            "mxjob.kubeflow.org/attempt": "2",
        }
        assert manifest["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "MXJob",
                "name": "digits",
                "uid": "uid-of-digits",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]

    def test_the_users_labels_and_annotations_stay_and_ours_win(self) -> None:
        labels = {"team": "vision", "training.kubeflow.org/job-name": "other"}
        builder = make_mxjob().worker(1).template_metadata("Worker", labels=labels, annotations={"a": "b"})
        metadata = pod(builder)["metadata"]
        assert metadata["labels"]["team"] == "vision"
        assert metadata["labels"]["training.kubeflow.org/job-name"] == "digits"
        assert metadata["annotations"] == {"a": "b", "mxjob.kubeflow.org/replica": "Worker/0/0"}

    def test_gpu_limits_and_fields_that_we_do_not_know_reach_the_pod_untouched(self) -> None:
        resources = {"limits": {"nvidia.com/gpu": 2, "memory": "4Gi"}}
        builder = (
            make_mxjob().worker(1, resources=resources).template("Worker", nodeSelector={"gpu": "v100"}, future=[1])
        )
        spec = pod(builder)["spec"]
        assert spec["containers"][0]["resources"] == resources
        assert (spec["nodeSelector"], spec["future"]) == ({"gpu": "v100"}, [1])

    def test_the_old_name_of_the_gpu_resource_becomes_that_of_today(self) -> None:
        resources = {"limits": {"alpha.kubernetes.io/nvidia-gpu": 2, "cpu": "1"}, "requests": {"cpu": "1"}}
        built = pod(make_mxjob().worker(1, resources=resources))["spec"]["containers"][0]["resources"]
        assert built == {"limits": {"nvidia.com/gpu": 2, "cpu": "1"}, "requests": {"cpu": "1"}}

    def test_the_controller_restarts_so_the_kubelet_never_does(self) -> None:
        assert pod(make_mxjob().worker(1).restart("OnFailure"))["spec"]["restartPolicy"] == "Never"

    def test_a_failed_container_leaves_its_last_lines_unless_the_template_says_otherwise(self) -> None:
        assert (
            pod(make_mxjob().worker(1))["spec"]["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"
        )
        chosen = pod(make_mxjob().worker(1, terminationMessagePolicy="File"))
        assert chosen["spec"]["containers"][0]["terminationMessagePolicy"] == "File"

    def test_the_job_itself_is_not_changed(self) -> None:
        job = with_defaults(make_mxjob().gang().obj())
        before = json.dumps(job.spec.mx_replica_specs["Worker"].template)
        build_pod(job, "Worker", 0, 0)
        assert json.dumps(job.spec.mx_replica_specs["Worker"].template) == before


class TestServices:
    def test_the_root_has_a_service_of_its_own(self) -> None:
        spec = build_service(with_defaults(make_mxjob().gang().obj()), "digits-scheduler-0", "root")["spec"]
        assert spec["clusterIP"] == "None"
        assert spec["publishNotReadyAddresses"] is True
        assert spec["selector"]["training.kubeflow.org/replica-type"] == "scheduler"
        assert spec["ports"] == [{"name": "mxjob-port", "port": 9091, "targetPort": 9091, "protocol": "TCP"}]

    def test_the_subdomain_selects_every_pod_of_the_job_and_of_no_other(self) -> None:
        job = with_defaults(make_mxjob().gang().obj())
        selector = build_service(job, "digits-mx", "replicas")["spec"]["selector"]
        for replica_type in ("Scheduler", "Server", "Worker"):
            labels = build_pod(job, replica_type, 0, 0)["metadata"]["labels"]
            assert selector.items() <= labels.items()
        assert selector["mxjob.kubeflow.org/job-uid"] == "uid-of-digits"
