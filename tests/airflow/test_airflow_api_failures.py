"""What tasks make of a Kubernetes API that is away, or refuses them: on a whole Airflow, with real jobs."""

import pytest
from airflow_world import TOKEN, TRIGGER
from api_gateway import refusal
from waiting import eventually

pytestmark = pytest.mark.whole_airflow


def test_an_outage_that_is_short_enough_is_waited_out(world):
    run = world.begin("deferred")
    uid = run.in_progress()
    run.gateway.down = True
    eventually(lambda: "The API server doesn't answer; trying until" in run.train.log())
    run.end()
    run.gateway.down = False
    run.train.wait("success")
    assert run.train.xcom()["uid"] == uid
    assert run.creations() == 1


@pytest.mark.exhaustive
def test_after_a_long_outage_the_worker_looks_for_itself_and_defers_again(world):
    run = world.begin("deferred_impatient")
    uid = run.in_progress()
    # Longer for the trigger than it waits; the worker would wait no longer, and may look before the gate is open again.
    run.gateway.down, run.gateway.down_for = True, TRIGGER
    run.train.wait("scheduled", "queued", "running")
    run.gateway.down = False
    assert run.in_progress(deferrals=2) == uid
    assert run.succeed().try_number == 1
    assert run.train.xcom()["uid"] == uid
    assert run.creations() == 1


@pytest.mark.exhaustive
def test_a_token_may_be_replaced_and_one_that_stays_refused_fails_the_task_for_good_and_leaves_the_job(world):
    accepted = []

    async def handler(asked, forward):
        accepted.append(asked)

    run = world.begin("deferred", handler)
    uid = run.in_progress()
    run.gateway.rotate("another-" + TOKEN)
    eventually(lambda: "reading them anew" in run.train.log())
    accepted.clear()
    eventually(lambda: accepted)
    assert TRIGGER in accepted[0].agent  # and not a worker, in which the task resumes if its trigger gives up
    run.gateway.tokens = set()
    assert run.train.wait("failed").try_number == 1
    assert "MXNetPermissionError" in run.train.log()
    assert run.uids() == {uid}


def refusing_once(answer):
    """A handler that answers the first creation itself."""
    left = [answer]

    async def handler(asked, forward):
        return left.pop() if asked.method == "POST" and asked.path.endswith("/mxjobs") and left else None

    return handler


@pytest.mark.exhaustive
@pytest.mark.kubernetes
@pytest.mark.parametrize("cluster", ["real"], indirect=True)
def test_a_real_quota_is_waited_for_by_retries(world):
    with world.cluster.namespace() as namespace:
        world.cluster.core.create_namespaced_resource_quota(
            namespace, {"metadata": {"name": "none"}, "spec": {"hard": {"count/mxjobs.kubeflow.org": "0"}}}
        )
        eventually(lambda: world.cluster.core.read_namespaced_resource_quota("none", namespace).status.hard)
        run = world.begin("deferred", namespace=namespace)
        eventually(lambda: "exceeded quota" in run.train.log(1))
        world.cluster.core.delete_namespaced_resource_quota("none", namespace)
        run.in_progress()
        assert run.succeed().try_number > 1


def test_a_right_that_is_missing_is_named_and_not_asked_for_again(world):
    words = (
        'mxjobs.kubeflow.org is forbidden: User "airflow" cannot create resource "mxjobs" in API group "kubeflow.org"'
    )
    run = world.begin("deferred", refusing_once(refusal(403, "Forbidden", words)))
    assert run.train.wait("failed").try_number == 1
    assert words in run.train.log()
