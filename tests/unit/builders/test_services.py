"""The Services of a job as they are posted: whom they select, and that they publish what is not ready."""

from builders import make_mxjob

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders import build_pod, build_service


def test_the_root_has_a_service_of_its_own() -> None:
    spec = build_service(with_defaults(make_mxjob().gang().obj()), "digits-scheduler-0", "root")["spec"]
    assert spec["clusterIP"] == "None"
    assert spec["publishNotReadyAddresses"] is True
    assert spec["selector"]["training.kubeflow.org/replica-type"] == "scheduler"
    assert spec["ports"] == [{"name": "mxjob-port", "port": 9091, "targetPort": 9091, "protocol": "TCP"}]


def test_the_subdomain_selects_every_pod_of_the_job_and_of_no_other() -> None:
    job = with_defaults(make_mxjob().gang().obj())
    selector = build_service(job, "digits-mx", "replicas")["spec"]["selector"]
    for replica_type in ("Scheduler", "Server", "Worker"):
        labels = build_pod(job, replica_type, 0, 0)["metadata"]["labels"]
        assert selector.items() <= labels.items()
    assert selector["mxjob.kubeflow.org/job-uid"] == "uid-of-digits"
