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
from mxnet_operator.api.types import Metric, SlowWorker, StalledWorker, TrainingStatus
from mxnet_operator.integrations.integration import ReaderContext
from mxnet_operator.integrations.worker_logs import (
    AT_A_TIME,
    COMPARE_EVERY,
    LOOK_AGAIN_WHERE_FORBIDDEN,
    LOOK_EVERY,
    PUT_OFF,
    WorkerLogs,
)
from mxnet_operator.integrations.worker_logs.policy import LogView, WorkerLogsPolicy
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.plan import plan
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.training_status import where
from mxnet_operator.readers.worker_logs import stall_text

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


async def test_the_status_has_the_training_while_it_runs_and_what_stays_of_it_at_the_end(tmp_path):
    logs = ScriptedLogs("INFO:root:Epoch[3] Train-mse=0.5", "INFO:root:Epoch[3] Time cost=20")
    async with world(tmp_path, start=False, log_source=logs) as w:
        await w.start(integrations=[WorkerLogs(look_every=0.05)])
        command = ["python", "train.py", "--num-epochs", "10"]
        await w.submit(submitted(make_mxjob("digits").worker(2, command=command)))
        await begin(w, list(await w.pods(2)))

        async def shows(**expected):
            def training(jobs):
                return {**(jobs["digits"]["status"].get("training") or {}), "lastUpdatedTime": None}

            await w.eventually(JOBS, lambda jobs: training(jobs) == {**expected, "lastUpdatedTime": None})

        figures = [{"name": "train_mse", "value": "0.5"}, {"name": "time_cost", "value": "20"}]
        of = {"epochs": 10, "metrics": figures}
        await shows(epoch=3, progressPercentage=40, estimatedRemainingSeconds=120, **of)
        logs.say("INFO:root:Epoch[4] Train-mse=nan")
        of["metrics"] = [{"name": "train_mse", "value": "nan"}, figures[1]]
        of["warnings"] = ["Train-mse is nan in epoch 4: the training has diverged."]
        await shows(epoch=4, progressPercentage=50, estimatedRemainingSeconds=100, **of)
        await w.move(["digits-worker-0", "digits-worker-1"], "Succeeded", exit_code=0)
        await w.state("digits", "Succeeded")
        await shows(epoch=4, **of)


EPOCH_3 = TrainingStatus(epoch=3, epochs=10, progress_percentage=30, estimated_remaining_seconds=300)


@pytest.mark.parametrize(
    ("known", "read", "is_written"),
    [
        (None, EPOCH_3, True),
        (EPOCH_3, replace(EPOCH_3, estimated_remaining_seconds=200, metrics=(Metric(name="a", value="1"),)), False),
        (EPOCH_3, replace(EPOCH_3, epoch=4, progress_percentage=40), True),
        (replace(EPOCH_3, progress_percentage=90), replace(EPOCH_3, progress_percentage=100), True),
        (EPOCH_3, replace(EPOCH_3, warnings=("Train-mse is nan",)), True),
        (replace(EPOCH_3, warnings=("Train-mse is nan",)), EPOCH_3, True),
        (EPOCH_3, replace(EPOCH_3, slow_workers=(SlowWorker(name="worker-1", percent=5),)), True),
        (
            replace(EPOCH_3, slow_workers=(SlowWorker(name="worker-1", percent=5),)),
            replace(EPOCH_3, slow_workers=(SlowWorker(name="worker-1", percent=6),)),
            False,
        ),
        (EPOCH_3, TrainingStatus(), False),
        (EPOCH_3, None, False),
        (replace(EPOCH_3, stalled=(StalledWorker(name="worker-0", seconds=300, place="a.py:1"),)), None, True),
        (
            replace(EPOCH_3, stalled=(StalledWorker(name="worker-0", seconds=300, place="a.py:1"),)),
            replace(EPOCH_3, stalled=(StalledWorker(name="worker-0", seconds=420, place="a.py:1"),)),
            False,
        ),
        (
            TrainingStatus(metrics=(Metric(name="a", value="1"),)),
            TrainingStatus(metrics=(Metric(name="a", value="2"),)),
            True,
        ),
    ],
)
def test_a_training_is_written_once_for_each_epoch_and_when_something_is_wrong_or_no_longer_is(known, read, is_written):
    job = make_mxjob("digits").worker(2).condition(conditions.RUNNING).obj()

    def status_after(minutes, job, view):
        pods = [make_pod(job, "Worker", index).running() for index in range(2)]
        observed = replace(observe(job, *pods), pods_listed="owned").with_fact(view)
        return plan(job, observed, NOW + timedelta(minutes=minutes), integrations=(WorkerLogsPolicy(),)).status

    first = status_after(2, job, LogView(EPOCH_3))
    assert replace(first.training, last_updated_time=None) == EPOCH_3
    begun = replace(job, status=replace(first, training=known))
    found = status_after(4, begun, LogView(read))
    written = None if found is None or found.training == known else found.training
    assert (written is not None) == is_written
    if written is not None:
        wanted = read or replace(known, stalled=())
        assert replace(written, last_updated_time=None) == wanted
        assert written.last_updated_time == NOW + timedelta(minutes=4)


class Server:
    """The last lines of pods' logs, and which of them were read."""

    def __init__(self):
        self.lines = {"digits-worker-0": STALL, "digits-worker-1": SLEEP}
        self.read = []
        self.holds = asyncio.Event()
        self.holds.set()

    async def stream(self, path, params, *, idle_timeout):
        name = path.split("/")[-2]
        self.read.append(name)
        await self.holds.wait()
        found = self.lines.get(name, "")
        if isinstance(found, Exception):
            raise found
        lines = found.split("\n")[-params["tailLines"] :]
        yield "".join(f"2026-01-01T00:00:00Z {line}\n" for line in lines).encode()[: params["limitBytes"]]


class Looker:
    """Looks at a running job of two workers at the times that a test says."""

    def __init__(self, integration=None):
        self.server, self.now, self.rules = Server(), 1000.0, {}
        around = ReaderContext(client=self.server, record=None, clock=lambda: self.now)
        self.reader = (integration or WorkerLogs()).reader(around)

    async def look(
        self,
        after=0.0,
        *,
        name="digits",
        state=conditions.RUNNING,
        done=(),
        command=None,
        is_removed=False,
        deleting=(),
    ):
        """Return what is known of a job after so many seconds; None where nothing new is."""
        self.now += after
        job = make_mxjob(name).scheduler().worker(2, command=command).run_policy(**self.rules).condition(state).obj()
        workers = [make_pod(job, "Worker", index) for index in range(2)]
        pods = [pod.succeeded() if index in done else pod.running() for index, pod in enumerate(workers)]
        pods = [pod.deleting() if index in deleting else pod for index, pod in enumerate(pods)]
        seen = observe(job, make_pod(job, "Scheduler").running(), *pods)
        if is_removed:
            specs = {kind: spec for kind, spec in job.spec.mx_replica_specs.items() if kind != "Worker"}
            job = replace(job, spec=replace(job.spec, mx_replica_specs=specs))
        observed = await self.reader.observe(job, b"", seen)
        self.again = await self.reader.after(job)
        found = observed.fact(LogView)
        self.training = found.training if found else None
        self.judged = found.judged if found else None
        self.progress = where(self.training) if self.training else None
        return None if found is None else stall_text(found.training.stalled if found.training else ())


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


@pytest.mark.parametrize("line", ["an image of class 3", "", STALL])
async def test_lines_without_an_epoch_leave_the_epoch_as_it_is(looker, line):
    looker.server.lines["digits-worker-0"] = EPOCH
    await looker.look()
    await looker.look(after=LOOK_EVERY)
    looker.server.lines["digits-worker-0"] = line
    await looker.look(after=LOOK_EVERY)
    assert looker.training.epoch == 3


async def test_speeds_of_all_workers_are_compared_at_every_fifth_reading(looker):
    def lines(speed):
        return "\n".join(f"Epoch[0] Batch [{batch}] Speed: {speed} samples/sec" for batch in (1, 2, 3))

    looker.server.lines = {"digits-worker-0": lines(100), "digits-worker-1": lines(20)}
    await looker.look()
    found = []
    for _ in range(COMPARE_EVERY + 1):
        await looker.look(after=LOOK_EVERY)
        found.append([(each.name, each.node, each.percent) for each in looker.training.slow_workers])
        looker.server.lines["digits-worker-1"] = lines(100)
    slow = [("worker-1", "node", 20)]
    assert found == [*[slow] * COMPARE_EVERY, []]
    assert looker.server.read.count("digits-worker-1") == 2


async def test_the_last_line_is_read_behind_long_ones(looker):
    """The limit of a reading cuts off its end."""
    looker.server.lines["digits-worker-1"] = looker.server.lines["digits-worker-0"] = "\n".join(
        [*["x" * 5000] * 60, STALL]
    )
    await looker.look()
    words = await looker.look(after=LOOK_EVERY)
    assert words == "stalled for 5m: worker-0, worker-1 wait in MXNet's wait_to_read at train.py:11 (uneven batches?)"


async def test_a_warning_goes_when_its_reason_goes_and_not_with_its_line(looker):
    async def warnings(line):
        looker.server.lines["digits-worker-0"] = line
        await looker.look(after=LOOK_EVERY)
        return looker.training.warnings

    await looker.look()
    (diverged,) = await warnings("Epoch[1] Train-mse=nan")
    assert await warnings("Epoch[2] Batch [20] Speed: 10 samples/sec") == (diverged,)
    assert await warnings("Epoch[2] Train-mse=0.5") == ()
    for epoch in range(3, 7):
        assert await warnings(f"Epoch[{epoch}] Train-accuracy=0.1") == ()
    (flat,) = await warnings("Epoch[7] Train-accuracy=0.11")
    assert "does not learn so far" in flat
    assert await warnings("Epoch[8] Train-accuracy=0.95") == ()


async def test_the_time_that_is_left_knows_from_where_a_script_counts(looker):
    """A window of lines that begins with epoch 1 is not of a script that counts from there."""
    await looker.look()
    for epoch, left in ((0, "about 9s"), (1, "about 8s"), (2, "about 7s")):
        looker.server.lines["digits-worker-0"] = f"Epoch[{epoch}] Time cost=1"
        await looker.look(after=LOOK_EVERY, command=["train.py", "--epochs", "10"])
        assert looker.progress == f"epoch {epoch} of 10, {left} left"


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
    looker.server.lines |= {"digits-worker-0": error, "digits-worker-1": EPOCH}
    await looker.look()
    assert await looker.look(after=LOOK_EVERY) is None
    looker.server.lines["digits-worker-0"] = EPOCH
    assert await looker.look(after=LOOK_EVERY) == ""


@pytest.mark.parametrize("error", [ApiError(500, "InternalError", "dial tcp"), TimeoutError()])
async def test_a_worker_on_a_dead_node_hides_not_that_another_stands_still(looker, error):
    looker.server.lines["digits-worker-1"] = error
    await looker.look()
    words = await looker.look(after=LOOK_EVERY)
    where = "worker-0 waits in MXNet's wait_to_read at train.py:11"
    assert words == f"stalled for 5m: {where}, but not worker-1 (uneven batches?)"


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


EARLY = {"metric": "validation_accuracy", "startEpoch": 3, "below": 0.5}


async def test_a_poor_trial_ends_once_as_succeeded_before_its_pods_are_deleted_and_is_not_retried(tmp_path):
    poor = ("Epoch[2] Validation-accuracy=0.1", "Epoch[3] Validation-accuracy=0.31", "Epoch[3] Time cost=20")
    async with world(tmp_path, start=False, log_source=ScriptedLogs(*poor)) as w:
        await w.start(integrations=[WorkerLogs(look_every=0.05)])
        rules = {"earlyStopping": EARLY, "backoffLimit": 3, "cleanPodPolicy": "Running"}
        await w.submit(submitted(make_mxjob("digits").scheduler().worker(2).restart("OnFailure").run_policy(**rules)))
        await begin(w, list(await w.pods(3)))
        job = await w.state("digits", "Succeeded")
        assert job["status"]["conditions"][-1] | {"lastUpdateTime": "", "lastTransitionTime": ""} == {
            "type": "Succeeded",
            "status": "True",
            "reason": "EarlyStopped",
            "message": "MXJob digits was stopped early: validation_accuracy is 0.31 in epoch 3"
            " (earlyStopping: below 0.5).",
            "lastUpdateTime": "",
            "lastTransitionTime": "",
        }
        assert (job["status"]["training"]["epoch"], job["status"].get("result")) == (3, None)
        assert (await w.event("EarlyStopped"))["type"] == "Normal"
        await w.eventually(PODS, lambda pods: all("deletionTimestamp" in pod["metadata"] for pod in pods.values()))
        job = (await w.api.get(f"{JOBS}/digits")).ok()
        assert job["status"].get("restarts", 0) == 0


BOUNDS = {
    "below": ({"below": 0.5}, 0.49, "below 0.5"),
    "at the bound": ({"below": 0.5, "above": 0.5}, 0.5, None),
    "above": ({"above": 0.5}, 0.51, "above 0.5"),
    "not above": ({"above": 0.5}, 0.1, None),
    "NaN is beyond a lower bound": ({"below": 0.5}, float("nan"), "below 0.5"),
    "NaN is beyond an upper bound": ({"above": 0.5}, float("nan"), "above 0.5"),
    "zero is a bound": ({"below": 0}, -1.0, "below 0"),
}


@pytest.mark.parametrize(("bounds", "value", "words"), BOUNDS.values(), ids=BOUNDS)
def test_a_value_ends_a_trial_beyond_a_bound_of_its_rule(bounds, value, words):
    assert ended_early(rule(**bounds), LogView(EPOCH_3, (3, value))) == words


def rule(**bounds):
    return make_mxjob("digits").worker(2).run_policy(earlyStopping={"metric": "a", "startEpoch": 3, **bounds})


def ended_early(job, view, *pods):
    """The bound for which the plan ends a running job, by what was read; None where it goes on or ends otherwise."""
    job = job.condition(conditions.RUNNING).obj()
    pods = pods or [make_pod(job, "Worker", index).running() for index in range(2)]
    observed = replace(observe(job, *pods), pods_listed="owned").with_fact(view)
    found = plan(job, observed, NOW, integrations=(WorkerLogsPolicy(),))
    newest = found.status.conditions[-1] if found.status else None
    if newest is None or newest.reason != "EarlyStopped":
        return None
    assert not found.actions, "the end is stored first"
    assert found.status.training == replace(
        view.training, last_updated_time=NOW, progress_percentage=None, estimated_remaining_seconds=None
    )
    return newest.message.partition("earlyStopping: ")[2].rstrip(").")


def test_a_trial_without_a_rule_or_a_value_and_one_that_fails_or_succeeds_end_otherwise():
    poor, job = LogView(EPOCH_3, (3, 0.1)), rule(below=0.5)
    made = job.obj()
    running, other = make_pod(made, "Worker", 0), make_pod(made, "Worker", 1)
    assert ended_early(job, poor, running.running(), other.running()) == "below 0.5"
    assert ended_early(job, poor, running.running(), other.failed(1)) is None
    assert ended_early(rule(below=0.5), poor, running.succeeded(), other.succeeded()) is None
    assert ended_early(rule(below=0.5).run_policy(suspend=True), poor) is None
    assert ended_early(rule(below=0.5), LogView(EPOCH_3)) is None
    assert ended_early(rule(below=0.5), LogView(EPOCH_3, (2, 0.1))) is None
    assert ended_early(make_mxjob("digits").worker(2), poor) is None


READ = {
    "the epoch has ended": ("Epoch[3] Validation-accuracy=0.4", (3, 0.4), ()),
    "its figure comes later": ("Epoch[2] Validation-accuracy=0.1\nEpoch[3] Train-accuracy=0.4", (2, 0.1), ()),
    "the next has begun": ("Epoch[3] Validation-accuracy=0.4\nEpoch[4] Batch [20] Speed: 9 samples/sec", (3, 0.4), ()),
    "NaN": ("Epoch[3] Validation-accuracy=nan", "nan", ()),
    "another name": (
        "Epoch[3] Validation-top5=0.4\nEpoch[3] Time cost=2\nEpoch[4] Train-top5=0.5",
        None,
        ("earlyStopping waits for validation_accuracy, but epochs report validation_top5.",),
    ),
    "not yet": ("Epoch[3] Train-top5=0.4", None, ()),
}


@pytest.mark.parametrize(("lines", "judged", "warnings"), READ.values(), ids=READ)
async def test_the_newest_epoch_that_has_ended_is_judged_and_a_name_that_no_epoch_has_is_a_warning(
    looker, lines, judged, warnings
):
    looker.rules = {"earlyStopping": EARLY}
    looker.server.lines["digits-worker-0"] = lines
    await looker.look()
    await looker.look(after=LOOK_EVERY)
    found = looker.judged if looker.judged is None or looker.judged[1] == looker.judged[1] else "nan"
    assert (found, looker.training.warnings[-1:] if judged is None else ()) == (judged, warnings)


@pytest.mark.parametrize(
    ("line", "metric", "newest"),
    [
        ("Epoch[{}] Batch [20]\tSpeed: 9.0 samples/sec\taccuracy=0.4", "train_accuracy", (3, 0.4)),
        ("Iteration {}, loss 0.4", "loss", None),
    ],
)
def test_an_epoch_that_has_not_ended_and_an_iteration_are_not_judged(line, metric, newest):
    log = TrainingLog()
    for number in (3, 4):
        assert log.take(line.format(number))
    assert log.newest(metric) == newest
