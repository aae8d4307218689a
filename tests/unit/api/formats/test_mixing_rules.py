"""What is ambiguous, mixed of two formats, or no field of its own version is refused, with path and right spelling."""

import copy

import pytest
import seed_manifests as seeds
from seed_manifests import manifest

from mxnet_operator.api import job_formats

V1 = job_formats.to_v1(manifest(seeds.MXNET_OPERATOR_V1)) | {"metadata": {"name": "a"}}
ENTRY = ("spec", "replicaSpecs", 0)


def changed(source, value, *path):
    written = manifest(source) if isinstance(source, str) else copy.deepcopy(source)
    node = written
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return written


@pytest.mark.parametrize(
    ("written", "path", "says"),
    [
        (changed(V1, "All", "spec", "cleanPodPolicy"), "spec", "write spec.runPolicy.cleanPodPolicy)"),
        (changed(V1, 3, "spec", "backoffLimit"), "spec", "backoffLimit (write spec.runPolicy.backoffLimit)"),
        (changed(V1, "All", "spec", "cleanupPodPolicy"), "spec", "in v1 under runPolicy)"),
        (
            changed(V1, manifest(seeds.SEED_004_DIST)["spec"]["replicaSpecs"], "spec", "replicaSpecs"),
            "spec",
            "(give all replicas in mxReplicaSpecs (v1), or all in replicaSpecs (v1alpha1))",
        ),
        (changed(V1, "x", "spec", "schedulerName"), "spec", "write template.spec.schedulerName)"),
        (changed(V1, "ab12", "spec", "RuntimeId"), "spec", "RuntimeId (status.RuntimeId has it)"),
        (
            changed(V1, {"chief": {}}, "spec", "terminationPolicy"),
            "spec",
            "terminationPolicy (write successPolicy: Scheduler or AllWorkers)",
        ),
        (
            changed(seeds.SEED_001_STORED, {"backoffLimit": 3}, "spec", "runPolicy"),
            "spec.runPolicy",
            "write its fields straight under spec, or apiVersion: kubeflow.org/v1",
        ),
        (
            changed(seeds.SEED_001_STORED, 3, "spec", "backoffLimit"),
            "spec.backoffLimit",
            "write apiVersion: kubeflow.org/v1 and spec.runPolicy.backoffLimit",
        ),
        (
            changed(seeds.SEED_004_DIST, "All", "spec", "cleanPodPolicy"),
            "spec",
            "belong to another format than replicaSpecs: cleanPodPolicy (write cleanupPodPolicy)",
        ),
        (
            changed(seeds.SEED_004_DIST, {}, "spec", "runPolicy"),
            "spec",
            "`mxjob convert` makes it kubeflow.org/v1, which does)",
        ),
        (
            changed(changed(V1, 3, "spec", "backoffLimit"), True, "spec", "suspend"),
            "spec",
            "runPolicy: backoffLimit (write spec.runPolicy.backoffLimit) suspend (write spec.runPolicy.suspend)",
        ),
        (changed(seeds.SEED_004_DIST, 9000, *ENTRY, "mxPort"), "spec.replicaSpecs[0].mxPort", "write PsRootPort"),
        (
            changed(seeds.SEED_004_DIST, "Never", *ENTRY, "restartPolicy"),
            "spec.replicaSpecs[0].restartPolicy",
            "template.spec.restartPolicy",
        ),
        (
            changed(seeds.SEED_004_DIST, "", *ENTRY[:2], 1, "mxReplicaType"),
            "spec.replicaSpecs",
            "a type is given twice: give it one entry (an entry without mxReplicaType is WORKER)",
        ),
        (
            changed(seeds.SEED_004_DIST, {"chief": {"replicaName": "SERVER"}}, "spec", "terminationPolicy"),
            "spec.terminationPolicy.chief.replicaName",
            "write SCHEDULER or WORKER",
        ),
        (
            changed(
                seeds.SEED_004_DIST,
                [{"name": "mxjob-port", "containerPort": 9001}],
                *(*ENTRY, "template", "spec", "containers", 0, "ports"),
            ),
            "spec.replicaSpecs[0].PsRootPort",
            "ambiguous: the container's port mxjob-port says 9001; give one of them",
        ),
        (
            changed(seeds.SEED_003_LINEAR, 9000, *ENTRY, "PsRootPort"),
            "spec.replicaSpecs[0].PsRootPort",
            "is called mxPort in fioravanzo.org",
        ),
        (
            changed(seeds.SEED_003_LINEAR, "dist", "spec", "jobMode"),
            "spec.jobMode",
            "fioravanzo.org has none: `mxjob convert` makes it kubeflow.org/v1",
        ),
        (
            changed(seeds.DEEPINSIGHT_LOCAL, 2, *ENTRY, "replicas"),
            "spec.replicaSpecs",
            "jobMode local has one WORKER and nothing else",
        ),
        (
            changed(seeds.DEEPINSIGHT_LOCAL, "dist", "spec", "jobMode"),
            "spec.replicaSpecs",
            "jobMode dist needs SCHEDULER, SERVER and WORKER",
        ),
        (changed(seeds.DEEPINSIGHT_LOCAL, "Dist", "spec", "jobMode"), "spec.jobMode", "must be dist or local"),
        (
            changed(seeds.SEED_000_MXNETJOB, {}, "spec", "runPolicy"),
            "spec.runPolicy",
            "an MXNetJob has none: `mxjob convert` makes it kubeflow.org/v1, which does",
        ),
        (
            changed(
                seeds.V1BETA1_TUNE,
                {"annotations": {"tuner-server-key": "1080"}},
                *("spec", "mxReplicaSpecs", "TunerServer", "template", "metadata"),
            ),
            "spec.mxReplicaSpecs.TunerServer.label",
            'ambiguous: the template has the annotation tuner-server-key: "1080"; give one of them',
        ),
    ],
)
def test_a_manifest_with_one_such_mistake_has_one_message(written, path, says):
    (error,) = job_formats.errors(written)
    assert error.path == path
    assert says in error.message


def test_a_list_without_a_scheduler_is_refused_unless_it_is_local():
    written = manifest(seeds.SEED_004_DIST)
    del written["spec"]["replicaSpecs"][:2]
    (error,) = job_formats.errors(written)
    assert error.detail.endswith("a job must have 1 and only 1 SCHEDULER, unless its jobMode is local")
    written["spec"]["jobMode"] = "local"
    assert job_formats.errors(written) == []


@pytest.mark.parametrize("written", [None, [], "text", {"spec": []}, {"spec": {"replicaSpecs": {}}}, {"kind": 7}])
def test_what_is_no_job_at_all_is_an_error_and_no_crash(written):
    assert job_formats.errors(written) != []
