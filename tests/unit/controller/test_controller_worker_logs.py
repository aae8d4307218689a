"""A controller that reads workers' logs: whose, how often, and what it says of the job's training."""

import asyncio
from datetime import timedelta

import pytest
from apiserver_objects import binding
from builders import NOW, make_mxjob, make_pod, observe
from controller_fixtures import EVENTS, JOBS, PODS, submitted, world
from log_sources import ScriptedLogs
from msgspec.structs import replace

from mxnet_operator.api import conditions
from mxnet_operator.api.conditions import STALLED
from mxnet_operator.integrations.integration import Surroundings
from mxnet_operator.integrations.worker_logs import (
    AT_A_TIME,
    LOOK_AGAIN_WHERE_FORBIDDEN,
    LOOK_EVERY,
    PUT_OFF,
    WorkerLogs,
)
from mxnet_operator.integrations.worker_logs.policy import LogView, WorkerLogsPolicy
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.plan import plan

EPOCH = "INFO:root:Epoch[3] Validation-accuracy=0.9"
STALL = (
    "mxjob: stalled for 300 s, without CPU or output, at /app/train.py:11, in MXNet's wait_to_read: do all workers make"
    " as many batches?"
)
SLEEP = "mxjob: stalled for 301 s, without CPU or output, at train.py:16, in <module>"


def condition(job):
    found = (each for each in job.get("status", {}).get("conditions", ()) if each["type"] == STALLED)
    return next(((each["status"], each["message"]) for each in found), None)


async def begin(w, pods):
    """Say what scheduler and kubelet would."""
    for name in pods:
        (await w.api.post(f"{PODS}/{name}/binding", binding(name, "node"))).ok()
    await w.move(pods, "Running")


async def test_the_condition_comes_with_a_standstill_and_ends_with_the_next_line(tmp_path):
    logs = ScriptedLogs(EPOCH, STALL)
    async with world(tmp_path, start=False, log_source=logs) as w:
        await w.start(integrations=[WorkerLogs(look_every=0.05)])
        await w.submit(submitted(make_mxjob("digits").scheduler().worker(2)))
        await begin(w, list(await w.pods(3)))
        words = "stalled for 5m: worker-0, worker-1 wait in MXNet's wait_to_read at train.py:11 (uneven batches?)"
        await w.eventually(JOBS, lambda jobs: condition(jobs["digits"]) == ("True", words))
        assert (await w.event("Stalled"))["type"] == "Warning"
        logs.say(EPOCH)
        await w.eventually(
            JOBS, lambda jobs: condition(jobs["digits"]) == ("False", "The workers make progress again.")
        )
        events = (await w.api.get(EVENTS)).ok()["items"]
        assert [each["reason"] for each in events].count("Stalled") == 1


async def test_a_job_that_ends_stands_still_no_more(tmp_path):
    async with world(tmp_path, start=False, log_source=ScriptedLogs(STALL)) as w:
        await w.start(integrations=[WorkerLogs(look_every=0.05)])
        await w.submit(submitted(make_mxjob("digits").worker(1)))
        await begin(w, list(await w.pods(1)))
        await w.eventually(JOBS, lambda jobs: (condition(jobs["digits"]) or ("",))[0] == "True")
        await w.move(["digits-worker-0"], "Failed", exit_code=1)
        await w.state("digits", "Failed")
        await w.eventually(JOBS, lambda jobs: condition(jobs["digits"])[0] == "False")


async def test_the_status_says_where_the_training_is_while_it_runs(tmp_path):
    logs = ScriptedLogs("INFO:root:Epoch[3] Train-mse=0.5", "INFO:root:Epoch[3] Time cost=20")
    async with world(tmp_path, start=False, log_source=logs) as w:
        await w.start(integrations=[WorkerLogs(look_every=0.05)])
        command = ["python", "train.py", "--num-epochs", "10"]
        await w.submit(submitted(make_mxjob("digits").worker(2, command=command)))
        await begin(w, list(await w.pods(2)))

        async def says(words):
            await w.eventually(JOBS, lambda jobs: jobs["digits"]["status"].get("progress", "") == words)

        await says("epoch 3 of 10, about 2m left")
        logs.say("INFO:root:Epoch[4] Train-mse=nan")
        await says("epoch 4 of 10, about 1m40s left. Train-mse is nan in epoch 4: the training has diverged")
        await w.move(["digits-worker-0", "digits-worker-1"], "Succeeded", exit_code=0)
        await w.state("digits", "Succeeded")
        await says("")


def test_the_time_that_is_left_goes_by_without_a_write():
    job = make_mxjob("digits").worker(2).condition(conditions.RUNNING).obj()

    def status_after(minutes, job, **found):
        pods = [make_pod(job, "Worker", index).running() for index in range(2)]
        observed = replace(observe(job, *pods), pods_listed="owned").with_fact(LogView(**found))
        return plan(job, observed, NOW + timedelta(minutes=minutes), integrations=(WorkerLogsPolicy(),)).status

    begun = replace(job, status=status_after(2, job, progress="epoch 3 of 10, about 5m left"))
    assert begun.status.progress == "epoch 3 of 10, about 5m left"
    assert status_after(4, begun, progress="epoch 3 of 10, about 4m left") is None
    for words in ("epoch 4 of 10, about 4m left", "epoch 3 of 10, about 5m left. Train-mse is nan", ""):
        assert status_after(4, begun, progress=words).progress == words


class Server:
    """The last lines of pods' logs, and which of them were read."""

    def __init__(self):
        self.lines = {"digits-worker-0": STALL, "digits-worker-1": SLEEP}
        self.read = []
        self.holds = asyncio.Event()
        self.holds.set()

    async def get_bytes(self, path, params):
        name = path.split("/")[-2]
        self.read.append(name)
        await self.holds.wait()
        found = self.lines[name]
        if isinstance(found, Exception):
            raise found
        lines = found.split("\n")[-params["tailLines"] :]
        return "".join(f"{line}\n" for line in lines).encode()[: params["limitBytes"]]


class Looker:
    """Looks at a running job of two workers at the times that a test says."""

    def __init__(self, integration=None):
        self.server, self.now = Server(), 1000.0
        around = Surroundings(client=self.server, record=None, clock=lambda: self.now)
        self.reader = (integration or WorkerLogs()).reader(around)

    async def look(
        self,
        after=0.0,
        *,
        name="digits",
        state=conditions.RUNNING,
        done=(),
        progress="",
        command=None,
        is_removed=False,
    ):
        """Return what is known of a job after so many seconds; None where nothing new is."""
        self.now += after
        job = make_mxjob(name).scheduler().worker(2, command=command).condition(state).obj()
        job = replace(job, status=replace(job.status, progress=progress))
        workers = [make_pod(job, "Worker", index) for index in range(2)]
        pods = [pod.succeeded() if index in done else pod.running() for index, pod in enumerate(workers)]
        seen = observe(job, make_pod(job, "Scheduler").running(), *pods)
        if is_removed:
            specs = {kind: spec for kind, spec in job.spec.mx_replica_specs.items() if kind != "Worker"}
            job = replace(job, spec=replace(job.spec, mx_replica_specs=specs))
        observed = await self.reader.observe(job, b"", seen)
        self.again = await self.reader.after(job)
        found = observed.fact(LogView)
        self.progress = None if found is None else found.progress
        return None if found is None else found.stall


@pytest.fixture
def looker():
    return Looker()


async def test_a_log_is_read_when_it_is_time_to(looker):
    assert await looker.look() is None
    assert looker.again == timedelta(seconds=LOOK_EVERY)
    assert await looker.look(after=LOOK_EVERY - 1) is None
    assert looker.server.read == []
    words = await looker.look(after=1)
    assert (
        words
        == "stalled for 5m1s: worker-1 stands at train.py:16, worker-0 waits in MXNet's wait_to_read at train.py:11"
    )
    assert looker.again == timedelta(seconds=LOOK_EVERY)
    assert looker.server.read == ["digits-worker-0", "digits-worker-1"]


async def test_of_a_job_that_trains_one_log_is_read(looker):
    looker.server.lines["digits-worker-0"] = EPOCH
    await looker.look()
    assert await looker.look(after=LOOK_EVERY) == ""
    assert looker.progress == "epoch 3"
    assert looker.server.read == ["digits-worker-0"]


@pytest.mark.parametrize("line", ["an image of class 3", "", STALL])
async def test_lines_without_an_epoch_leave_the_progress_as_it_is(looker, line):
    looker.server.lines["digits-worker-0"] = line
    await looker.look()
    await looker.look(after=LOOK_EVERY, progress="epoch 3 of 10")
    assert looker.progress == "epoch 3 of 10"


async def test_the_last_line_is_read_behind_long_ones(looker):
    """The limit of a reading cuts off its end."""
    looker.server.lines["digits-worker-1"] = looker.server.lines["digits-worker-0"] = "\n".join(
        [*["x" * 5000] * 60, STALL]
    )
    await looker.look()
    words = await looker.look(after=LOOK_EVERY)
    assert words == "stalled for 5m: worker-0, worker-1 wait in MXNet's wait_to_read at train.py:11 (uneven batches?)"


async def test_a_warning_stays_when_its_line_is_no_longer_among_the_last(looker):
    looker.server.lines["digits-worker-0"] = "Epoch[5] Train-accuracy=0.1"
    await looker.look()
    await looker.look(
        after=LOOK_EVERY, progress="epoch 4 of 10. Train-mse is nan in epoch 1: the training has diverged"
    )
    assert looker.progress == "epoch 5. Train-mse is nan in epoch 1: the training has diverged"


async def test_the_time_that_is_left_knows_from_where_a_script_counts(looker):
    """A window of lines that begins with epoch 1 is not of a script that counts from there."""
    await looker.look()
    for epoch, left in ((0, "about 9s"), (1, "about 8s"), (2, "about 7s")):
        looker.server.lines["digits-worker-0"] = f"Epoch[{epoch}] Time cost=1"
        await looker.look(after=LOOK_EVERY, command=["train.py", "--epochs", "10"])
        assert looker.progress == f"epoch {epoch} of 10, {left} left"


async def test_workers_that_the_manifest_no_longer_has_are_read_as_well(looker):
    looker.server.lines["digits-worker-0"] = EPOCH
    await looker.look()
    await looker.look(after=LOOK_EVERY, is_removed=True)
    assert looker.progress == "epoch 3"


async def test_who_has_left_is_not_asked_and_the_one_that_waits_for_it_is(looker):
    await looker.look()
    await looker.look(after=LOOK_EVERY, done=[0])
    assert looker.server.read == []
    words = await looker.look(after=LOOK_EVERY, done=[0])
    assert words == "stalled for 5m1s: worker-1 stands at train.py:16, but not worker-0"
    assert set(looker.server.read) == {"digits-worker-1"}


@pytest.mark.parametrize("state", [conditions.CREATED, conditions.RESTARTING, conditions.SUSPENDED, conditions.FAILED])
async def test_a_job_that_does_not_run_does_not_stand_still(looker, state):
    await looker.look()
    assert await looker.look(after=LOOK_EVERY, state=state) == ""
    assert looker.again is None
    assert await looker.look() is None, "it runs anew"
    assert looker.server.read == []


@pytest.mark.parametrize("error", [ApiUnavailable("away"), ApiError(500, "InternalError", "dial tcp"), TimeoutError()])
async def test_a_log_that_cannot_be_read_changes_nothing(looker, error):
    looker.server.lines["digits-worker-0"] = error
    await looker.look()
    assert await looker.look(after=LOOK_EVERY) is None
    looker.server.lines["digits-worker-0"] = EPOCH
    assert await looker.look(after=LOOK_EVERY) == ""


@pytest.mark.parametrize("error", [ApiError(500, "InternalError", "dial tcp"), TimeoutError()])
async def test_a_worker_on_a_dead_node_hides_not_that_another_stands_still(looker, error):
    looker.server.lines["digits-worker-1"] = error
    await looker.look()
    words = await looker.look(after=LOOK_EVERY)
    assert words == "stalled for 5m: worker-0 waits in MXNet's wait_to_read at train.py:11 (uneven batches?)"


async def test_logs_that_do_not_come_hold_up_few_jobs_of_all_namespaces_together():
    integration = WorkerLogs()
    lookers = [Looker(integration) for _ in range(AT_A_TIME + 1)]
    for each in lookers:
        await each.look()
        each.server.holds.clear()
    held = [asyncio.create_task(each.look(after=LOOK_EVERY)) for each in lookers[:-1]]
    while not all(each.server.read for each in lookers[:-1]):  # noqa: ASYNC110 - they start in their turn
        await asyncio.sleep(0)
    assert await lookers[-1].look(after=LOOK_EVERY) is None
    assert lookers[-1].server.read == []
    for task in held:
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)


async def test_who_may_not_read_logs_tries_rarely_whatever_the_job(looker):
    looker.server.lines["digits-worker-0"] = ApiError(403, "Forbidden", "pods/log is forbidden")
    for name in ("digits", "other"):
        await looker.look(name=name)
    await looker.look(after=LOOK_EVERY)
    assert await looker.look(name="other") is None
    assert looker.again == timedelta(seconds=LOOK_AGAIN_WHERE_FORBIDDEN)
    assert looker.server.read == ["digits-worker-0"]


async def test_logs_that_do_not_come_hold_up_few_jobs(looker):
    names = [f"job-{number}" for number in range(AT_A_TIME + 1)]
    for name in names:
        await looker.look(name=name)
        looker.server.lines[f"{name}-worker-0"] = EPOCH
    looker.now += LOOK_EVERY
    looker.server.holds.clear()
    held = [asyncio.create_task(looker.look(name=name)) for name in names[:AT_A_TIME]]
    while len(looker.server.read) < AT_A_TIME:  # noqa: ASYNC110 - they start in their turn
        await asyncio.sleep(0)
    assert await looker.look(name=names[-1]) is None
    assert timedelta(seconds=PUT_OFF) <= looker.again <= timedelta(seconds=LOOK_EVERY)
    looker.server.holds.set()
    assert await asyncio.gather(*held) == [""] * AT_A_TIME
    assert await looker.look(name=names[-1], after=looker.again.total_seconds()) == ""


async def test_a_deleted_job_is_forgotten(looker):
    await looker.look()
    looker.reader.forget("default/digits")
    assert await looker.look(after=LOOK_EVERY) is None
    assert looker.server.read == []
