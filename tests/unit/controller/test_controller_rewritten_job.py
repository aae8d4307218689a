"""A live job whose user replaces it by its converted manifest: it goes on as it is, under v1's status words."""

import msgspec
import seed_manifests as seeds
from seed_manifests import manifest

from mxnet_operator.api import job_formats
from mxnet_operator.api.conversion import convert
from mxnet_operator.api.kinds import MXJOB
from mxnet_operator.api.types import MXJobStatus, RunPolicy
from mxnet_operator.controller.decoding import Reader
from mxnet_operator.controller.memory import JobMemory

OBJECT = {"namespace": "default", "uid": "e800b1ed-9c6c-11e8-962f-704d7b2c0a63"}


def test_the_status_that_it_had_is_read_and_its_older_words_go() -> None:
    old = manifest(seeds.SEED_004_STORED)
    old["status"] |= {"form": "v1alpha1", "RuntimeId": "e800", "restarts": 2, "conditions": []}
    new = convert(old).manifest
    new["metadata"] |= OBJECT | {"generation": 2}
    reader, memory = Reader(MXJOB), JobMemory()
    first = reader.read(msgspec.json.encode(old | {"apiVersion": "kubeflow.org/v1"}), memory)
    assert (first.format.name, first.mistakes) == ("v1alpha1", ())
    read = reader.read(msgspec.json.encode({**new, "status": old["status"]}), memory)
    assert (read.format.name, read.mistakes) == ("v1", ())
    assert read.job is not None
    assert read.job.status == first.status
    assert read.job.status.replica_statuses["Worker"].active == 1
    wire = job_formats.status_to_wire(read.format, read.source, read.status)
    assert read.stored.keys() - wire.keys() == {"phase", "reason", "form", "RuntimeId", "conditions"}
    assert wire["replicaStatuses"]["Worker"] == {"active": 1}


def test_a_status_that_can_not_be_decoded_is_a_mistake_of_the_job() -> None:
    new = convert(manifest(seeds.SEED_004_STORED)).manifest
    new["metadata"] |= OBJECT
    read = Reader(MXJOB).read(msgspec.json.encode({**new, "status": {"replicaStatuses": 3}}), JobMemory())
    assert (read.job, read.status) == (None, MXJobStatus())
    assert "replicaStatuses" in read.mistakes[0]


def test_of_an_invalid_job_that_is_over_what_its_clean_up_needs_is_read() -> None:
    policy = {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": "soon"}
    over = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    new = convert(manifest(seeds.SEED_004_STORED)).manifest | {"spec": {"runPolicy": policy}, "status": over}
    new["metadata"] |= OBJECT
    read = Reader(MXJOB).read(msgspec.json.encode(new), JobMemory())
    assert read.mistakes
    assert read.job is not None
    assert (read.job.kind, read.job.spec.run_policy) == ("MXJob", RunPolicy(clean_pod_policy="All"))
