"""Fluent builders of jobs and pods: `make_mxjob("a").worker(2).obj()`, `make_pod(job, "Worker", 1).failed(3)`."""

import copy
from datetime import UTC, datetime
from typing import Any

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import Condition, MXJob, MXJobStatus
from mxnet_operator.api.validation import decode
from mxnet_operator.builders import build_pod
from mxnet_operator.plan import Effects, NodeView, Observed, PodView, Policy, Reads, ServiceView
from mxnet_operator.plan import plan as decide
from mxnet_operator.plan.children import SERVICES, Rules
from mxnet_operator.plan.integration import IntegrationPolicy
from mxnet_operator.plan.replicas import parse_indexes

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


class JobBuilder:
    """A job under construction; every method returns the builder."""

    def __init__(self, name: str) -> None:
        self._manifest: dict[str, Any] = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
            "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {}},
        }

    def replicas(self, replica_type: str, count: int | None, **container: Any) -> "JobBuilder":
        spec: dict[str, Any] = {
            "template": {"spec": {"containers": [{"name": "mxnet", "image": "mxjob/mxnet:1.9.1", **container}]}}
        }
        if count is not None:
            spec["replicas"] = count
        self._manifest["spec"]["mxReplicaSpecs"][replica_type] = spec
        return self

    def scheduler(self, count: int | None = 1, **container: Any) -> "JobBuilder":
        return self.replicas(names.SCHEDULER, count, **container)

    def server(self, count: int | None = 1, **container: Any) -> "JobBuilder":
        return self.replicas(names.SERVER, count, **container)

    def worker(self, count: int | None = 1, **container: Any) -> "JobBuilder":
        return self.replicas(names.WORKER, count, **container)

    def gang(self, servers: int = 2, workers: int = 2) -> "JobBuilder":
        return self.scheduler().server(servers).worker(workers)

    def template(self, replica_type: str, **fields: Any) -> "JobBuilder":
        """Fields of a type's pod spec."""
        self._manifest["spec"]["mxReplicaSpecs"][replica_type]["template"]["spec"].update(fields)
        return self

    def template_metadata(self, replica_type: str, **fields: Any) -> "JobBuilder":
        self._manifest["spec"]["mxReplicaSpecs"][replica_type]["template"]["metadata"] = fields
        return self

    def restart(self, policy: str) -> "JobBuilder":
        for spec in self._manifest["spec"]["mxReplicaSpecs"].values():
            spec["restartPolicy"] = policy
        return self

    def run_policy(self, **fields: Any) -> "JobBuilder":
        self._manifest["spec"].setdefault("runPolicy", {}).update(fields)
        return self

    def success_policy(self, policy: str) -> "JobBuilder":
        self._manifest["spec"]["successPolicy"] = policy
        return self

    def status(self, **fields: Any) -> "JobBuilder":
        self._manifest["status"] = fields
        return self

    def condition(self, condition_type: str) -> "JobBuilder":
        """A condition that holds since the start, as the controller wrote it."""
        status = self._manifest.setdefault("status", {})
        since = "2026-11-21T11:00:00Z"
        status.setdefault("startTime", since)
        status.setdefault("conditions", []).append(
            {
                "type": condition_type,
                "status": "True",
                "reason": conditions.reason(condition_type),
                "message": f"MXJob {self._manifest['metadata']['name']} is {condition_type.lower()}.",
                "lastUpdateTime": since,
                "lastTransitionTime": since,
            }
        )
        status["state"] = conditions.job_state({"status": {"conditions": status["conditions"]}})
        return self

    def without_state(self) -> "JobBuilder":
        """As training-operator 1.8.1 writes it."""
        del self._manifest["status"]["state"]
        return self

    def deleted(self) -> "JobBuilder":
        self._manifest["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:00Z"
        return self

    def manifest(self) -> dict[str, Any]:
        return copy.deepcopy(self._manifest)

    def obj(self) -> MXJob:
        """The job; where a test says nothing of counts, its status has those that go with its conditions."""
        manifest = self.manifest()
        status = manifest.get("status") or {}
        if status.get("conditions") and not {"ready", "replicaStatuses"} & set(status):
            started = {c["type"] for c in status["conditions"] if c["status"] == "True"} & {"Running", "Succeeded"}
            specs = manifest["spec"]["mxReplicaSpecs"].items()
            counts = {names.canonical_type(name): spec.get("replicas", 1) for name, spec in specs}
            total = sum(counts.values())
            status["ready"] = f"{total if started else 0}/{total}"
            done = {name: len(parse_indexes(text)) for name, text in status.get("completedIndexes", {}).items()}
            status["replicaStatuses"] = {
                name: {"active": n - done.get(name, 0), "succeeded": done.get(name, 0)} if started else {}
                for name, n in counts.items()
            }
        return decode(manifest)


class PodBuilder:
    """A pod of a job, scheduled and waiting to start until a method says otherwise."""

    def __init__(self, job: MXJob, replica_type: str, index: int) -> None:
        name = names.replica_name(job.metadata.name, replica_type, index)
        self._pod = PodView(
            name=name,
            uid=f"uid-of-{name}",
            owner_uid=job.metadata.uid,
            type=replica_type,
            index=index,
            node_name="node",
        )

    def set(self, **fields: Any) -> "PodBuilder":
        self._pod = msgspec.structs.replace(self._pod, **fields)
        return self

    def unscheduled(self) -> "PodBuilder":
        return self.set(node_name="")

    def running(self) -> "PodBuilder":
        return self.set(phase="Running", started_at=NOW)

    def succeeded(self, at: datetime = NOW) -> "PodBuilder":
        return self.set(phase="Succeeded", exit_code=0, reason="Completed", started_at=NOW, finished_at=at)

    def failed(self, exit_code: int, message: str = "", at: datetime = NOW) -> "PodBuilder":
        return self.set(
            phase="Failed", exit_code=exit_code, reason="Error", message=message, started_at=NOW, finished_at=at
        )

    def deleting(self) -> "PodBuilder":
        return self.set(deleting=True)

    def obj(self) -> PodView:
        return self._pod


def make_mxjob(name: str = "digits") -> JobBuilder:
    return JobBuilder(name)


def make_pod(job: MXJob, replica_type: str, index: int = 0) -> PodBuilder:
    return PodBuilder(job, replica_type, index)


def make_services(job: MXJob) -> tuple[ServiceView, ...]:
    """The two Services of a job with a Scheduler."""
    return tuple(
        ServiceView(name=name, uid=f"uid-of-{name}", owner_uid=job.metadata.uid)
        for name in (names.replica_name(job.metadata.name, names.SCHEDULER, 0), names.subdomain(job.metadata.name))
    )


def observe(job: MXJob, *pods: PodBuilder) -> Observed:
    return Observed(tuple(pod.obj() for pod in pods), make_services(job))


def plan(
    job: MXJob,
    observed: Observed,
    now: datetime,
    policy: Policy | None = None,
    rules: Rules = (SERVICES,),
    *,
    integrations: tuple[IntegrationPolicy, ...] = (),
) -> Effects:
    """The effects of a job of which everything has been observed: its pods are fresh, its nodes are there."""
    replace = msgspec.structs.replace
    while isinstance(answer := decide(job, observed, now, policy or Policy(), rules, integrations=integrations), Reads):
        known = {node.name for node in observed.nodes}
        unknown = tuple(NodeView(name=name, state="Present") for name in answer.nodes if name not in known)
        observed = replace(observed, nodes=(*observed.nodes, *unknown), job_is_newest=True)
        observed = replace(observed, pods_listed=answer.pods or observed.pods_listed)
    return answer


def reads(
    job: MXJob,
    observed: Observed,
    now: datetime,
    policy: Policy | None = None,
    rules: Rules = (SERVICES,),
    *,
    integrations: tuple[IntegrationPolicy, ...] = (),
) -> Reads:
    """What a plan must know first; nothing where the observation is enough."""
    answer = decide(job, observed, now, policy or Policy(), rules, integrations=integrations)
    return answer if isinstance(answer, Reads) else Reads()


def after(job: MXJob, effects: Effects) -> MXJob:
    """The job once the status of a plan is stored."""
    assert effects.status is not None
    return msgspec.structs.replace(job, status=effects.status)


def condition(of: Effects | MXJob, condition_type: str) -> Condition | None:
    """The condition in the status of a plan or of a job; None where there is none."""
    return next((c for c in (of.status or MXJobStatus()).conditions if c.type == condition_type), None)


def with_policy(job: MXJob, **fields: Any) -> MXJob:
    """The job after its user changed these fields of its runPolicy."""
    policy = msgspec.structs.replace(job.spec.run_policy, **fields)
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, run_policy=policy))


def built_pod(builder: JobBuilder, replica_type: str = "Worker", index: int = 0, attempt: int = 0) -> dict[str, Any]:
    """The manifest of a replica's pod, as it is posted."""
    return build_pod(with_defaults(builder.obj()), replica_type, index, attempt)
