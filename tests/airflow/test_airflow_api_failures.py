"""What tasks make of a Kubernetes API that is away, or refuses them: on a whole Airflow, with real jobs."""

import pytest
from airflow_scenes import TOKEN, TRIGGER, anywhere
from api_gateway import refusal
from waiting import eventually

pytestmark = pytest.mark.whole_airflow


@anywhere
def test_an_outage_that_is_short_enough_is_waited_out(live):
    scene = live.begin("deferred")
    uid = scene.in_progress()
    scene.gateway.down = True
    eventually(lambda: "The API server can't be reached, and it is waited for" in scene.train.log())
    scene.end()
    scene.gateway.down = False
    scene.train.wait("success")
    assert scene.train.xcom()["uid"] == uid
    assert scene.creations() == 1


@anywhere
def test_after_a_long_outage_the_worker_looks_for_itself_and_defers_again(live):
    scene = live.begin("deferred_impatient")
    uid = scene.in_progress()
    # Longer for the trigger than it waits; the worker would wait no longer, and may look before the gate is open again.
    scene.gateway.down, scene.gateway.down_for = True, TRIGGER
    scene.train.wait("scheduled", "queued", "running")
    scene.gateway.down = False
    assert scene.in_progress(deferrals=2) == uid
    assert scene.succeed().try_number == 1
    assert scene.train.xcom()["uid"] == uid
    assert scene.creations() == 1


@anywhere
def test_a_token_may_be_replaced_while_a_task_is_deferred(live):
    scene = live.begin("deferred")
    uid = scene.in_progress()
    scene.gateway.rotate("another-" + TOKEN)
    eventually(lambda: "reading them anew" in scene.train.log())
    scene.succeed()
    assert scene.train.xcom()["uid"] == uid


@anywhere
def test_credentials_that_stay_refused_fail_the_task_for_good_and_leave_the_job(live):
    scene = live.begin("deferred")
    uid = scene.in_progress()
    scene.gateway.tokens = set()
    assert scene.train.wait("failed").try_number == 1
    assert "MXNetPermissionError" in scene.train.log()
    assert scene.uids() == {uid}


def refusing_once(answer):
    """A handler that answers the first creation itself."""
    left = [answer]

    async def handler(asked, forward):
        return left.pop() if asked.method == "POST" and asked.path.endswith("/mxjobs") and left else None

    return handler


@anywhere
def test_a_task_for_which_a_quota_has_no_room_tries_again(live):
    words = 'mxjobs.kubeflow.org "x" is forbidden: exceeded quota: jobs, requested: count/mxjobs.kubeflow.org=1'
    scene = live.begin("deferred", refusing_once(refusal(403, "Forbidden", words)))
    scene.in_progress()
    assert scene.succeed().try_number == 2
    assert words in scene.train.log(1)


@pytest.mark.kubernetes
@pytest.mark.parametrize("site", ["real"], indirect=True)
def test_a_real_quota_is_waited_for_by_retries(live):
    with live.site.namespace() as namespace:
        live.site.core.create_namespaced_resource_quota(
            namespace, {"metadata": {"name": "none"}, "spec": {"hard": {"count/mxjobs.kubeflow.org": "0"}}}
        )
        eventually(lambda: live.site.core.read_namespaced_resource_quota("none", namespace).status.hard)
        scene = live.begin("deferred", namespace=namespace)
        eventually(lambda: "exceeded quota" in scene.train.log(1))
        live.site.core.delete_namespaced_resource_quota("none", namespace)
        scene.in_progress()
        assert scene.succeed().try_number > 1


@anywhere
def test_a_right_that_is_missing_is_named_and_not_asked_for_again(live):
    words = (
        'mxjobs.kubeflow.org is forbidden: User "airflow" cannot create resource "mxjobs" in API group "kubeflow.org"'
    )
    scene = live.begin("deferred", refusing_once(refusal(403, "Forbidden", words)))
    assert scene.train.wait("failed").try_number == 1
    assert words in scene.train.log()
