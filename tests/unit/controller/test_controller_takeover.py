"""Two processes of `mxnet-operator run`: one stands still in the middle of its work, the other takes over."""

import asyncio
import signal

import pytest
from builders import make_mxjob
from controller_fixtures import EVENTS, JOBS, PODS, SERVICES, gang, running_program, submitted, world

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/mxnet-operator"
WORKERS = 60
SHORT_LEASE = [
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=200ms",
]
"""A lease that a leader on a busy machine doesn't lose: its process may wait seconds for a processor."""


async def holder(w):
    return (await w.api.get(LEASE)).ok()["spec"].get("holderIdentity")


async def everything(w):
    """What there is, in which version."""
    found = {}
    for path in (PODS, SERVICES, JOBS, EVENTS):
        for item in (await w.api.get(path)).ok()["items"]:
            meta = item["metadata"]
            found[path, meta["name"]] = (meta["uid"], meta["resourceVersion"])
    return found


async def leader_first(a, b):
    """The two programs, in the order: the one that says that it leads, the other."""
    tasks = [asyncio.create_task(program.says("leading")) for program in (a, b)]
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return (a, b) if tasks[0] in done else (b, a)


@pytest.mark.exhaustive
async def test_a_paused_leader_is_replaced_and_does_no_harm_when_it_wakes_up(tmp_path):
    async with world(tmp_path, start=False) as w:
        kubeconfig = w.running.kubeconfig
        async with running_program(kubeconfig, *SHORT_LEASE) as a, running_program(kubeconfig, *SHORT_LEASE) as b:
            paused, other = await leader_first(a, b)
            await w.submit(submitted(make_mxjob("digits").scheduler().server(2).worker(WORKERS)))
            await w.eventually(PODS, lambda pods: len(pods) >= 5)
            paused.process.send_signal(signal.SIGSTOP)
            first = await holder(w)
            await other.says("leading")
            assert await holder(w) != first
            pods = await w.pods(WORKERS + 3)
            await w.move(pods, "Running")
            await w.state("digits", "Running")
            before = await everything(w)

            paused.process.send_signal(signal.SIGCONT)
            await paused.says("lost the lease")
            await paused.says("standing by")
            assert await everything(w) == before
            assert {pod["metadata"]["uid"] for pod in pods.values()} == {
                uid for (path, _), (uid, _) in before.items() if path == PODS
            }
            assert paused.process.returncode is None

            other.process.send_signal(signal.SIGTERM)
            assert await other.end() == 0
            await paused.says("leading")
            assert await holder(w) == first
            await w.run_to_success(pods)
            await w.state("digits", "Succeeded")
            await w.submit(gang("next"))
            await w.state("next", "Created")
