"""Where all workers stand still, in a task's log."""

from mxnet_operator.api import names
from mxnet_operator.client.job_client import JobRef
from mxnet_provider.replica_logs import StalledGang

REPLICAS = {"Scheduler": {"replicas": 1}, "Worker": {"replicas": 2}}
JOB = {
    "apiVersion": names.API_VERSION,
    "kind": names.KIND,
    "metadata": {"name": "digits", "namespace": "default", "uid": "u"},
    "spec": {"mxReplicaSpecs": REPLICAS},
}
REF = JobRef.of(JOB)
WAITS = (
    "mxjob: stalled for 300 s, without CPU or output, at train.py:11, in MXNet's wait_to_read: "
    "do all workers make as many batches?"
)
LAST_LINES = {
    "scheduler-0": "",
    "worker-0": WAITS,
    "worker-1": "mxjob: stalled for 300 s, without CPU or output, at train.py:16, in <module>",
}


class Cluster:
    """The pods of a job with these last lines, and the log of its task."""

    def __init__(self) -> None:
        self.now = 0.0
        self.warnings: list[str] = []
        self.api = self
        self.stalled = StalledGang(self, self, lambda: self.now)  # type: ignore[arg-type]

    async def stream(self, path, params, *, idle_timeout):
        replica = path.removesuffix("/log").rpartition("/digits-")[2]
        yield f"2026-11-21T12:00:01.5Z {LAST_LINES[replica]}\n".encode()

    def warning(self, text, *values):
        self.warnings.append(text % values)

    async def poll_at(self, now):
        self.now = now
        await self.stalled.poll(JOB)
        return self.warnings


async def test_the_task_is_warned_once_and_after_all_workers_had_time_to_say_it():
    cluster = Cluster()
    cluster.stalled.read("Epoch[0] loss=1")
    assert await cluster.poll_at(20.0) == []
    cluster.stalled.read(WAITS)
    assert await cluster.poll_at(25.0) == []
    said = f"{REF.title} stalled for 5m: worker-1 stands at train.py:16, worker-0 waits in MXNet's wait_to_read at "
    assert await cluster.poll_at(30.0) == [f"{said}train.py:11"]
    assert await cluster.poll_at(900.0) == [f"{said}train.py:11"]


async def test_of_a_worker_that_goes_on_nothing_is_said_and_of_one_that_is_quiet_where_the_others_stand():
    cluster = Cluster()
    cluster.stalled.read(WAITS)
    cluster.stalled.read("Epoch[1] loss=1")
    assert await cluster.poll_at(300.0) == []
    assert len(await cluster.poll_at(330.0)) == 1
