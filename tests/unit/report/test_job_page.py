"""The page of a local cluster's job: what it shows, and what it must not let through."""

from mxnet_operator.local.job_pages import JobView, html, replica_view


def job(state="Running", **metadata):
    return {
        "metadata": {"name": "digits", "namespace": "team", **metadata},
        "status": {"state": state, "conditions": [{"type": state, "status": "True", "message": f"It is {state}."}]},
    }


def pod(state, index=0):
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": str(index)}
    return {
        "metadata": {"name": f"digits-worker-{index}", "labels": labels},
        "status": {"phase": "Running", "containerStatuses": [{"name": "mxnet", "state": state}]},
    }


STARTED = {"running": {"startedAt": "2026-11-21T12:00:00Z"}}
LOG = "INFO:root:Epoch[0] Validation-accuracy=0.5\nINFO:root:Epoch[1] Validation-accuracy=0.75\n"


def page(state="Running", log=LOG, container=STARTED):
    return html(JobView(job(state), [replica_view(pod(container), log)]))


def test_state_replicas_logs_and_curve_are_shown():
    found = page()
    assert '<span class="state running">Running</span>' in found
    assert "<code>digits-worker-0</code>" in found
    assert "Epoch[1] Validation-accuracy=0.75" in found
    assert "After epoch 1: Validation-accuracy 0.75" in found
    assert "<polyline" in found


def test_a_job_that_is_over_says_how_and_is_not_loaded_again():
    found = page("Failed", container={"terminated": {"exitCode": 3, "startedAt": "a", "finishedAt": "b"}})
    assert "It is Failed." in found
    assert "exited with code 3" in found
    assert "http-equiv" not in found
    assert 'http-equiv="refresh"' in page()


def test_a_replica_is_told_as_mxjob_tells_it():
    assert "2026-11-21T12:00:00Z" in page()
    assert "ImagePullBackOff" in page("Created", container={"waiting": {"reason": "ImagePullBackOff"}})
    waiting = pod({"waiting": {"reason": "PodInitializing"}})
    failed = [{"name": "fetch", "state": {"terminated": {"exitCode": 7}}}]
    waiting["status"] |= {"phase": "Failed", "initContainerStatuses": failed}
    assert replica_view(waiting, "").state == "init container fetch exited with code 7"


def test_what_a_script_prints_is_text_and_never_markup():
    found = page(log="<script>alert(1)</script>\nEpoch[0] A<b>=0.5\n")
    assert "<script" not in found
    assert "&lt;script&gt;" in found


def test_a_long_log_is_cut_and_says_so():
    found = page(log="\n".join(f"line {number}" for number in range(1000)))
    assert "700 earlier lines are not shown." in found
    assert "line 999" in found
    assert "line 699\n" not in found


def test_a_job_without_figures_or_pods_has_a_page_too():
    assert "<polyline" not in html(JobView(job(), []))
    assert "ErrImagePull" in page(container={"waiting": {"reason": "ErrImagePull"}}, log="")


def test_figures_of_a_gluon_script_are_drawn_and_seconds_are_not_drawn_beside_accuracy():
    found = page(log="epoch 1, loss 0.7, test acc 0.804, time 0.9 sec\n")
    assert "After epoch 1: loss 0.7, Test-accuracy 0.804<" in found
    assert found.count('stroke-width="2"') == 2
