"""Each document's manifests, in each of its formats: what they mean as v1, and what their status says."""

import msgspec
import pytest
import seed_manifests as seeds
from builders import NOW, plan
from seed_manifests import manifest

from mxnet_operator.api import conditions, job_formats
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import MXJobStatus, ReplicaStatus
from mxnet_operator.api.validation import decode
from mxnet_operator.builders.pods import build_pod
from mxnet_operator.plan import Observed

UID = "7f3a01c2-0000-4000-8000-000000000000"


def job(text):
    """The v1 job with defaults that a text means."""
    return with_defaults(decode(job_formats.to_v1(manifest(text))))


def pod(text, replica_type, index=0):
    return build_pod(job(text), replica_type, index, attempt=0)


def variables(built):
    (container,) = built["spec"]["containers"]
    return {each["name"]: each.get("value") for each in container["env"]}


def status(*told, replica_statuses=None):
    """A status with these conditions, the last of which holds."""
    current = ()
    for each in told:
        current = conditions.set_condition(current, each, conditions.reason(each), f"it is {each}", NOW)
    return MXJobStatus(state=conditions.state_of(current), conditions=current, replica_statuses=replica_statuses or {})


def test_the_format_that_was_recorded_stays_when_what_it_was_known_by_is_gone():
    bare = manifest(seeds.SEED_001_STORED) | {"apiVersion": "kubeflow.org/v1"}
    del bare["spec"]["cleanPodPolicy"]
    assert job_formats.format_of(bare).name == "v1"
    bare["status"]["form"] = "v1beta1"
    assert job_formats.format_of(bare).name == "v1beta1"


def test_a_job_that_its_user_rewrote_as_v1_has_no_older_format_any_more():
    rewritten = job_formats.to_v1(manifest(seeds.SEED_001_STORED)) | {"status": {"form": "v1beta1"}}
    assert job_formats.format_of(rewritten).name == "v1"


class TestMXNetJob:
    """examples/seeds/000-mxnetjob-proposal."""

    def test_its_replicas_and_policies_are_those_of_the_document(self):
        spec = job(seeds.SEED_000_MXNETJOB).spec
        assert {name: each.replicas for name, each in spec.mx_replica_specs.items()} == {
            "Scheduler": 1,
            "Server": 2,
            "Worker": 4,
        }
        assert {each.restart_policy for each in spec.mx_replica_specs.values()} == {"Never"}
        assert spec.run_policy.clean_pod_policy == "None"

    def test_its_pods_have_the_document_s_environment_and_labels(self):
        built = pod(seeds.SEED_000_MXNETJOB, "Worker", 3)
        expected = {
            "DMLC_ROLE": "worker",
            "DMLC_PS_ROOT_URI": "example-scheduler-0",
            "DMLC_PS_ROOT_PORT": "9092",
            "DMLC_NUM_SERVER": "2",
            "DMLC_NUM_WORKER": "4",
        }
        assert variables(built).items() >= expected.items()
        assert built["metadata"]["labels"].items() >= {"job_type": "worker", "kubeflow.org": ""}.items()
        assert built["spec"]["restartPolicy"] == "Never"


class TestV1beta1:
    """examples/seeds/001-kubeflow-mxnet-operator."""

    def test_a_label_leaves_the_template_s_metadata_as_it_was(self):
        written = manifest(seeds.V1BETA1_TUNE)
        template = written["spec"]["mxReplicaSpecs"]["TunerServer"]["template"]
        template["metadata"] = {"labels": {"a": "b"}, "annotations": {"mine": "1"}}
        meant = job_formats.to_v1(written)["spec"]["mxReplicaSpecs"]["TunerServer"]
        assert meant["template"]["metadata"] == {
            "labels": {"a": "b"},
            "annotations": {"mine": "1", "tuner-server-key": "2080ti"},
        }
        assert "label" not in meant

    def test_its_status_has_the_counts_under_the_document_s_name_too(self):
        counts = {"Scheduler": ReplicaStatus(active=1), "Worker": ReplicaStatus()}
        told = status("Created", "Running", replica_statuses=counts)
        job_format = job_formats.format_of(manifest(seeds.SEED_001_STORED))
        wire = job_formats.status_to_wire(job_format, {"metadata": {"uid": UID}}, told)
        assert wire["mxReplicaStatuses"] == wire["replicaStatuses"] == {"Scheduler": {"active": 1}, "Worker": {}}
        assert (wire["form"], wire["RuntimeId"], wire["state"]) == ("v1beta1", "7f3a", "Running")
        assert job_formats.status_from_wire(job_format, wire) == told


class TestFlatV1:
    """mxnet-operator's own kubeflow.org/v1."""

    def test_what_stands_straight_under_spec_is_its_run_policy(self):
        spec = job(seeds.MXNET_OPERATOR_V1).spec
        policy = spec.run_policy
        assert (policy.clean_pod_policy, policy.backoff_limit, policy.active_deadline_seconds) == ("Running", 2, 3600)
        assert spec.success_policy == "AllWorkers"

    def test_its_status_is_v1_s_and_the_format(self):
        job_format = job_formats.format_of(manifest(seeds.MXNET_OPERATOR_V1))
        told = status("Created")
        assert job_formats.status_to_wire(job_format, {}, told) == {**msgspec.to_builtins(told), "form": "flat-v1"}


class TestListFormat:
    """examples/seeds/004-jzp1025."""

    def test_the_scheduler_s_port_is_everybody_s_root_port(self):
        for replica_type in ("Scheduler", "Server", "Worker"):
            assert variables(pod(seeds.SEED_004_DIST, replica_type))["DMLC_PS_ROOT_PORT"] == "9000"
        (container,) = pod(seeds.SEED_004_DIST, "Worker")["spec"]["containers"]
        assert [port["containerPort"] for port in container["ports"]] == [9091]

    def test_what_exits_is_restarted_by_the_document_s_table(self):
        spec = job(seeds.SEED_004_DIST).spec
        assert {each.restart_policy for each in spec.mx_replica_specs.values()} == {"ExitCode"}
        assert spec.run_policy.exit_codes is None  # the table is our own
        assert (spec.job_mode, spec.run_policy.clean_pod_policy) == ("MXTrain", "All")

    def test_a_chief_that_the_old_operator_wrote_into_an_exported_job_is_no_wish_of_its_user(self):
        """It came with a RuntimeId: the job succeeded with its Scheduler, and a worker was killed while it saved."""
        assert job(seeds.SEED_004_STORED).spec.success_policy is None
        written = manifest(seeds.SEED_004_STORED)
        written["spec"]["terminationPolicy"]["chief"] = {}
        assert "successPolicy" not in job_formats.to_v1(written)["spec"]
        written["spec"]["terminationPolicy"]["chief"] = {"replicaName": "WORKER", "replicaIndex": 0}
        assert job_formats.to_v1(written)["spec"]["successPolicy"] == "AllWorkers"
        asked = manifest(seeds.SEED_004_DIST)
        asked["spec"]["terminationPolicy"] = {"chief": {"replicaName": "SCHEDULER", "replicaIndex": 0}}
        assert job_formats.to_v1(asked)["spec"]["successPolicy"] == "Scheduler"

    def test_the_scheduler_of_its_pods_is_passed_on(self):
        written = manifest(seeds.SEED_004_DIST)
        written["spec"]["schedulerName"] = "kube-batch"
        built = job_formats.to_v1(written)["spec"]["mxReplicaSpecs"]
        assert {each["template"]["spec"]["schedulerName"] for each in built.values()} == {"kube-batch"}

    def test_its_status_is_the_document_s(self):
        counts = {name: ReplicaStatus(active=1) for name in ("Scheduler", "Server", "Worker")}
        written = manifest(seeds.SEED_004_STORED)
        job_format = job_formats.format_of(written)
        told = status("Created", "Running", replica_statuses=counts)
        wire = job_formats.status_to_wire(job_format, written, told)
        assert wire.items() >= written["status"].items()
        assert wire["RuntimeId"] == "e800"
        assert job_formats.status_from_wire(job_format, wire) == told

    @pytest.mark.parametrize(
        ("told", "pods_left", "phase"),
        [
            (("Created",), True, "Creating"),
            (("Created", "Running"), True, "Running"),
            (("Created", "Running", "Restarting"), True, "Creating"),
            (("Created", "Running", "Succeeded"), True, "CleanUp"),
            (("Created", "Running", "Succeeded"), False, "Done"),
            (("Created", "Running", "Failed"), True, "CleanUp"),
            (("Created", "Running", "Failed"), False, "Failed"),
        ],
    )
    def test_its_phases_are_the_document_s(self, told, pods_left, phase):
        job_format = job_formats.format_of(manifest(seeds.SEED_004_DIST))
        wire = job_formats.status_to_wire(job_format, {"metadata": {"uid": UID}}, status(*told), pods_left=pods_left)
        assert wire["phase"] == phase
        assert wire["reason"] == (f"it is {told[-1]}" if told[-1] in {"Restarting", "Failed"} else "")

    def test_a_job_that_its_first_operator_finished_does_not_run_again(self):
        written = manifest(seeds.SEED_004_STORED)
        written["status"] |= {"phase": "Done", "state": "Succeeded"}
        assert plan(decode(job_formats.to_v1(written)), Observed((), ()), NOW).actions == ()
        written["status"] |= {"phase": "Running", "state": "Unknown"}
        assert plan(decode(job_formats.to_v1(written)), Observed((), ()), NOW).actions != ()


class TestFioravanzo:
    """examples/seeds/003-fioravanzo."""

    def test_its_port_is_9000_unless_mx_port_says_otherwise(self):
        assert variables(pod(seeds.SEED_003_LINEAR, "Worker"))["DMLC_PS_ROOT_PORT"] == "9000"
        written = manifest(seeds.SEED_003_LINEAR)
        written["spec"]["replicaSpecs"][0]["mxPort"] = 9777
        built = build_pod(with_defaults(decode(job_formats.to_v1(written))), "Server", 0, 0)
        assert variables(built)["DMLC_PS_ROOT_PORT"] == "9777"

    def test_an_entry_without_type_is_the_scheduler(self):
        written = manifest(seeds.SEED_003_LINEAR)
        del written["spec"]["replicaSpecs"][0]["mxReplicaType"]
        assert job_formats.to_v1(written) == job_formats.to_v1(manifest(seeds.SEED_003_LINEAR))


class TestMlkube:
    """examples/seeds/002-deepinsight."""

    def test_nothing_is_deleted_since_the_document_lists_what_is_done(self):
        assert job(seeds.DEEPINSIGHT_DIST).spec.run_policy.clean_pod_policy == "None"

    def test_exits_from_128_on_are_retried_as_by_fioravanzos(self):
        for seed in (seeds.DEEPINSIGHT_DIST, seeds.SEED_003_LINEAR):
            codes = job(seed).spec.run_policy.exit_codes
            assert (codes.retryable, codes.permanent) == (tuple(range(128, 256)), ())

    def test_its_list_of_statuses_names_the_type_as_its_code_did(self):
        told = status("Created", "Running", replica_statuses={"Worker": ReplicaStatus(active=1, failed=1)})
        job_format = job_formats.format_of(manifest(seeds.DEEPINSIGHT_LOCAL))
        wire = job_formats.status_to_wire(job_format, {"metadata": {"uid": UID}}, told)
        entry = {"ReplicasStates": {"Running": 1, "Failed": 1}, "Mx_replica_type": "WORKER", "state": "Failed"}
        assert wire["replicaStatuses"] == [entry]
        assert job_formats.status_from_wire(job_format, wire) == told
