"""Events that belong to a job: not only those about the MXJob itself."""

from mxnet_operator.client.job_events import job_events

JOB = {
    "kind": "MXJob",
    "metadata": {"name": "a", "namespace": "ml", "uid": "u", "creationTimestamp": "2026-01-01T12:00:00Z"},
    "spec": {"mxReplicaSpecs": {"Worker": {"replicas": 1}}},
}


def event(kind, name, minute, uid=""):
    return {
        "involvedObject": {"kind": kind, "name": name, "uid": uid},
        "lastTimestamp": f"2026-01-01T12:{minute:02}:00Z",
        "metadata": {},
    }


class Events:
    def __init__(self, *stored):
        self.stored = stored

    async def list(self, _path, query):
        field, _, wanted = query["fieldSelector"].partition("=")
        key = field.removeprefix("involvedObject.")
        return {"items": [each for each in self.stored if each["involvedObject"][key] == wanted]}


async def test_events_of_its_pods_and_its_pod_group_are_the_jobs_and_those_of_an_earlier_job_are_not():
    own = [event("MXJob", "a", 0, "u"), event("PodGroup", "a", 1), event("Pod", "a-worker-0", 2)]
    others = [
        event("MXJob", "a", 3, "an earlier job"),
        event("Pod", "b-worker-0", 3),
        event("PodGroup", "a", 3) | {"lastTimestamp": "2026-01-01T11:59:00Z"},
    ]
    assert await job_events(Events(*others, *reversed(own)), JOB) == own
