"""The run that a page describes: attempts from events, and what each type of replica runs."""

from builders import make_mxjob
from controller_fixtures import submitted

from mxnet_operator.dashboard.job_run import run_of
from mxnet_operator.readers.training_log import TrainingLog

SERVER = {"image": "mx:1", "command": ["python", "t.py"], "args": ["--name", "a b"]}


def stored(builder):
    job = submitted(builder)
    job["metadata"] |= {"uid": "u-1", "namespace": "team"}
    return {**job, "status": {"restarts": 1}}


def event(reason, uid="u-1", message="why"):
    involved = {"kind": "MXJob", "name": "a", "uid": uid}
    return {"reason": reason, "involvedObject": involved, "message": message, "lastTimestamp": "2026-11-21T12:00:00Z"}


def test_only_restarts_of_this_job_are_attempts():
    events = [event("MXJobRestarting"), event("MXJobFailed"), event("MXJobRestarting", uid="u-0")]
    run = run_of(stored(make_mxjob("a").worker(1)), [], TrainingLog(), events=events)
    assert (run.restarts, [each.message for each in run.attempts]) == (1, ["why"])


def test_the_result_is_the_status_s_or_else_what_the_main_replica_ended_with():
    ended = {"name": "mxnet", "state": {"terminated": {"message": '{"accuracy": 0.5}'}}}
    metadata = {"name": "a-worker-0", "ownerReferences": [{"uid": "u-1", "controller": True}]}
    pod = {"metadata": metadata, "spec": {}, "status": {"phase": "Succeeded", "containerStatuses": [ended]}}
    job = stored(make_mxjob("a").worker(1))
    assert run_of(job, [pod], TrainingLog()).accuracy == 0.5
    assert [each.index for each in run_of(job, [pod], TrainingLog()).replicas] == [0]  # its labels were taken off
    job["status"]["result"] = '{"accuracy": 0.75}'
    assert run_of(job, [pod], TrainingLog()).accuracy == 0.75


def test_replicas_that_run_the_same_are_one_program_with_versions_or_the_digest_that_ran():
    job = stored(make_mxjob("a").scheduler(**SERVER).server(1, **SERVER).worker(1, image="mx:2", command=["train"]))
    own = [{"uid": "u-1", "controller": True}]
    container = {"name": "mxnet", "image": "mx:2", "imageID": "mx@sha256:12"}
    pod = {
        "metadata": {"name": "a-worker-0", "ownerReferences": own},
        "spec": {},
        "status": {"containerStatuses": [container]},
    }
    run = run_of(job, [pod], TrainingLog(), versions={"mx:1": "Python 3.11, mxnet 1.9.1"})
    assert [(each.type, each.image, each.command, each.versions) for each in run.programs] == [
        ("scheduler, server", "mx:1", "python t.py --name 'a b'", "Python 3.11, mxnet 1.9.1"),
        ("worker", "mx:2", "train", "mx@sha256:12"),
    ]
    pod["status"]["containerStatuses"][0]["imageID"] = "mx:2"
    assert run_of(job, [pod], TrainingLog()).programs[1].versions == ""
