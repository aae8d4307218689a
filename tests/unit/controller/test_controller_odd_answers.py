"""A controller whose every request is answered with something odd at first goes on, and so do its jobs."""

import asyncio
import logging
import os

import pytest
from apiserver_fixtures import running_server
from builders import make_mxjob
from controller_fixtures import ControllerWorld, RecordingClient, submitted
from odd_answers import ODD, OddProxy
from waiting import MOMENT, until

from mxnet_operator.controller.controller import Controller
from mxnet_operator.controller.metrics import Metrics
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.lease import LeaderElector, LeaseTimes
from mxnet_operator.kube.supervision import keep_running

SHIFTS = int(os.environ.get("MXJOB_ODD_ANSWERS", "4"))
"""In how many runs the answers are dealt out otherwise; with 41 each verb of each resource meets each answer."""
TIMES = LeaseTimes(duration=20, renew_deadline=15, retry_period=0.2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("shift", [round(number * len(ODD) / SHIFTS) for number in range(SHIFTS)])
async def test_odd_answers_to_every_request_delay_a_job_and_end_nothing(tmp_path, caplog, shift):
    caplog.set_level(logging.INFO)
    async with (
        running_server(tmp_path) as running,
        OddProxy(running.api, tmp_path, shift).served() as proxy,
        RecordingClient(load_credentials(str(proxy.kubeconfig))) as client,
    ):
        w = ControllerWorld(running.api, client, running.kubeconfig)
        metrics = Metrics()
        elector = LeaderElector(client, "default", "mxnet-operator", times=TIMES)
        controller = Controller(client, elector=elector, observer=metrics, fail_fast_hook=True, discovery_interval=0.2)
        task = asyncio.create_task(controller.run())
        job = make_mxjob("digits").scheduler(command=["python"]).worker(1, command=["python"])
        try:
            await w.submit(submitted(job.restart("ExitCode").run_policy(backoffLimit=2, cleanPodPolicy="All")))
            pods = await w.pods(2)
            await w.move(pods, "Running")
            await w.state("digits", "Running")
            await w.move(["digits-worker-0"], "Failed", exit_code=137)
            await w.state("digits", "Restarting")
            async with asyncio.timeout(MOMENT):
                await until(lambda: any("DELETE" in asked for asked in proxy.given))
        finally:
            over = task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    print(proxy.given)
    assert not over
    assert b"task_crashes_total{" not in metrics.render("")[0]
    tracebacks = [record.getMessage() for record in caplog.records if record.exc_info]
    assert tracebacks == []


async def test_a_bug_in_a_task_is_told_counted_and_outlived(caplog):
    met, crashed = [], []
    go_on = asyncio.Event()

    async def buggy():
        met.append(1)
        if len(met) < 3:
            raise KeyError("nobody expected this")
        go_on.set()

    class AtOnce:
        def delay(self, failures):
            return 0.0

    await keep_running("reflector pods", buggy, on_crash=crashed.append, backoff=AtOnce())
    assert go_on.is_set()
    assert crashed == ["reflector pods"] * 2
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 2
    assert all(record.exc_info and "reflector pods" in record.getMessage() for record in errors)


async def test_failures_in_a_row_wait_longer_and_a_good_while_makes_them_count_anew():
    now, asked = [0.0], []
    runs = iter([1.0, 1.0, 1.0, 1000.0, 1.0, None])

    class Noted:
        def delay(self, failures):
            asked.append(failures)
            return 0.0

    async def run():
        took = next(runs)
        if took is not None:
            now[0] += took
            raise RuntimeError

    await keep_running("t", run, on_crash=lambda name: None, backoff=Noted(), clock=lambda: now[0])
    assert asked == [1, 2, 3, 1, 2]
