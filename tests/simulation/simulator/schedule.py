"""A schedule: a job and a list of steps. It is plain data, so it can be printed, cut down, and put into a test."""

from typing import Any

import msgspec
from simulator.api import JOB, NAMESPACE, Object

from mxnet_operator.api import names
from mxnet_operator.api.queue_labels import QUEUE_LABEL

QUEUE = "a"
"""The LocalQueue that a job names at first."""
Step = tuple[Any, ...]
"""What is done and to whom: `("exit", "worker-0", 137)`. See `steps` for all there are."""


class Setup(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The job of a schedule."""

    replicas: dict[str, int]
    restart: str = "Never"
    policy: dict[str, Any] = {}
    """Its runPolicy."""
    queue: dict[str, int] = {}
    """How Kueue has the queue that it names, as `kueue.Kueue` takes it; empty where there is no Kueue."""

    def manifest(self) -> Object:
        container: Object = {"name": names.CONTAINER, "image": "mxjob/mxnet:1.9.1"}
        specs = {
            replica_type: {
                "replicas": count,
                "restartPolicy": self.restart,
                "template": {"spec": {"containers": [container]}},
            }
            for replica_type, count in self.replicas.items()
        }
        labels = {"labels": {QUEUE_LABEL: QUEUE}} if self.queue else {}
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": JOB, "namespace": NAMESPACE, **labels},
            "spec": {
                "jobMode": "MXTune" if names.TUNER in self.replicas else "MXTrain",
                "mxReplicaSpecs": specs,
                "runPolicy": dict(self.policy),
            },
        }

    @property
    def labels(self) -> list[str]:
        """The replicas as steps name them: `worker-0`."""
        return [f"{kind.lower()}-{index}" for kind, count in self.replicas.items() for index in range(count)]

    @property
    def deciders(self) -> list[str]:
        """The replicas whose exit 0 makes the job succeed, as steps name them."""
        kinds = ("tuner-",) if names.TUNER in self.replicas else ("scheduler-", "worker-")
        return [label for label in self.labels if label.startswith(kinds)]

    @property
    def tunes(self) -> bool:
        return names.TUNER in self.replicas

    def restarts_as_gang(self, scope: str | None) -> bool:
        """What a restart brings back, by docs/semantics.md, of a job with this restartScope."""
        if scope is not None or names.TUNER in self.replicas:
            return scope == "Job"
        return names.SCHEDULER in self.replicas or self.replicas.get(names.WORKER, 0) > 1


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What happens: to this job, in this order; then all faults end and the job is run to its end."""

    setup: Setup
    steps: tuple[Step, ...]
    calm: bool = False
    """Without faults: the write budget holds."""

    def source(self) -> str:
        """The schedule as Python, to be pasted into a test."""
        steps = "".join(f"        {step!r},\n" for step in self.steps)
        calm = ", calm=True" if self.calm else ""
        return f"Schedule(\n    setup={self.setup!r},\n    steps=(\n{steps}    ){calm},\n)"


def pod_name(label: str) -> str:
    """The name of the pod that a step means by `worker-0`."""
    return f"{JOB}-{label}"
