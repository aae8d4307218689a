"""The address of a job's page in its status: there from the first on, and always by the present template."""

import msgspec
import pytest
from builders import NOW, JobBuilder, make_mxjob, make_pod, observe, plan

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import Observed, Policy

POLICY = Policy(job_url_template="https://jobs.example.com/{namespace}/{name}?uid={uid}")
OTHER = Policy(job_url_template="https://other.example.com/{name}")


def address(job: MXJob) -> str:
    return f"https://jobs.example.com/{job.metadata.namespace}/{job.metadata.name}?uid={job.metadata.uid}"


def with_url(job: MXJob, url: str) -> MXJob:
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, url=url))


def settled(builder: JobBuilder) -> tuple[MXJob, Observed]:
    """A job of which nothing is new without a template."""
    job = builder.obj()
    observed = observe(job, *([make_pod(job, "Worker").running()] if job.status.state == "Running" else []))
    first = plan(job, observed, NOW)
    if first.status is not None:
        job = msgspec.structs.replace(job, status=first.status)
    answer = plan(job, observed, NOW)
    assert (answer.status, answer.actions) == (None, ())
    return job, observed


def running() -> JobBuilder:
    return make_mxjob().worker(1).condition("Created").condition("Running")


def finished(state: str) -> JobBuilder:
    return make_mxjob().worker(1).run_policy(cleanPodPolicy="None").condition("Created").condition(state)


def test_the_first_status_of_a_job_has_it() -> None:
    job = make_mxjob().gang().obj()
    answer = plan(job, Observed(), NOW, POLICY)
    assert (answer.status.state, answer.status.url) == ("Created", address(job))


@pytest.mark.parametrize("builder", [running(), finished("Succeeded"), finished("Failed")])
def test_a_job_from_before_the_template_gets_it_and_then_nothing_is_new(builder: JobBuilder) -> None:
    job, observed = settled(builder)
    answer = plan(job, observed, NOW, POLICY)
    assert answer.status is not None
    assert answer.status == msgspec.structs.replace(job.status, url=address(job))
    assert (answer.actions, answer.events) == ((), ())
    assert plan(with_url(job, address(job)), observed, NOW, POLICY).status is None


def test_it_follows_the_template_and_goes_with_it() -> None:
    job, observed = settled(running())
    before = with_url(job, address(job))
    changed, gone = (plan(before, observed, NOW, policy).status for policy in (OTHER, Policy()))
    assert changed.url == f"https://other.example.com/{job.metadata.name}"
    assert gone.url == ""


def test_a_job_that_is_being_deleted_is_left_as_it_is() -> None:
    job, observed = settled(running())
    deleted = msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, deletion_timestamp=NOW))
    assert plan(deleted, observed, NOW, POLICY).status is None


def test_a_later_status_keeps_it() -> None:
    job = running().obj()
    ended = observe(job, make_pod(job, "Worker").succeeded())
    answer = plan(with_url(job, address(job)), ended, NOW, POLICY)
    assert (answer.status.state, answer.status.url) == ("Succeeded", address(job))
