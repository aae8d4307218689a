"""Two controllers for one cluster: one acts, the other knows all that it needs to take over, and nothing is doubled."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from controller_fixtures import EVENTS, PODS, ControllerWorld, RecordingClient, gang, world
from waiting import MOMENT, until

from mxnet_operator.controller.controller import Controller
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.errors import ApiUnavailable, WriteFencedError
from mxnet_operator.kube.lease import LeaderElector, LeaseTimes

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/mxnet-operator"
TIMES = LeaseTimes(duration=2, renew_deadline=1.5, retry_period=0.05)


class LeaselessClient(RecordingClient):
    """A client whose Leases can't be reached while `away`: everything else can."""

    away = False

    async def replace(self, path, *args, **kwargs):
        if self.away:
            raise ApiUnavailable("away")
        return await super().replace(path, *args, **kwargs)

    @property
    def jobs_writes(self):
        return [write for write in self.writes if "/leases" not in write[1]]


class Member:
    """A controller of its own client that takes part in the election."""

    def __init__(self, client, identity, clock=None):
        self.client = client
        options = {} if clock is None else {"clock": clock}
        self.elector = LeaderElector(client, "default", "mxnet-operator", identity=identity, times=TIMES, **options)
        self.controller = Controller(client, elector=self.elector)
        self.task = asyncio.create_task(self.controller.run())

    async def stop(self):
        self.task.cancel()
        (result,) = await asyncio.gather(self.task, return_exceptions=True)
        assert isinstance(result, asyncio.CancelledError), result


class Election(ControllerWorld):
    """A world with several controllers."""

    def __init__(self, running, credentials):
        super().__init__(running.api, None, running.kubeconfig)
        self.running = running
        self.credentials = credentials
        self.members = []

    async def join(self, identity, clock=None):
        client = await LeaselessClient(self.credentials).__aenter__()
        member = Member(client, identity, clock)
        self.members.append(member)
        async with asyncio.timeout(MOMENT):
            await member.controller.synced.wait()
        return member

    async def led_by(self, identity):
        held = {"fieldSelector": "metadata.name=mxnet-operator"}
        async with asyncio.timeout(MOMENT), self.api.watch(LEASE.rsplit("/", 1)[0], **held) as events:
            while event := await events.next():
                if event["object"]["spec"].get("holderIdentity") == identity:
                    return
        raise AssertionError("the watch ended")

    async def pod_uids(self):
        return {p["metadata"]["name"]: p["metadata"]["uid"] for p in (await self.api.get(PODS)).ok()["items"]}

    async def close(self):
        for member in self.members:
            member.task.cancel()
            await asyncio.gather(member.task, return_exceptions=True)
            await member.client.__aexit__(None, None, None)


@asynccontextmanager
async def election(tmp_path):
    async with world(tmp_path, start=False) as w:
        made = Election(w.running, load_credentials(str(w.running.kubeconfig)))
        try:
            yield made
        finally:
            await made.close()


async def test_only_the_leader_writes_and_the_standby_knows_what_there_is(tmp_path):
    async with election(tmp_path) as e:
        a = await e.join("a")
        await e.led_by("a")
        b = await e.join("b")
        await e.submit(gang())
        await e.pods(5)
        await e.state("digits", "Created")
        assert a.client.jobs_writes
        assert b.client.writes == []
        sizes = {str(r.resource): r for r in b.controller.reflectors}
        await until(lambda: len(sizes["pods"].cache) == 5 and len(sizes["mxjobs.kubeflow.org"].cache) == 1)
        assert len(b.controller.queue) == 0


async def test_a_standby_goes_on_where_a_leader_stopped_without_making_anything_twice(tmp_path):
    async with election(tmp_path) as e:
        a = await e.join("a")
        await e.led_by("a")
        b = await e.join("b")
        await e.submit(gang())
        pods = await e.pods(5)
        await e.state("digits", "Created")
        before = await e.pod_uids()
        await a.stop()
        await e.led_by("b")
        await e.run_to_success(pods)
        await e.state("digits", "Succeeded")
        await e.event("MXJobSucceeded")
        assert await e.pod_uids() == before
        assert len(a.client.jobs_writes) + len(b.client.jobs_writes) <= 5 + 8
        told = [ev["reason"] for ev in (await e.api.get(EVENTS)).ok()["items"]]
        assert len(told) == len(set(told))


async def test_a_leader_whose_time_is_over_writes_nothing_though_its_workers_still_run(tmp_path):
    """A process that stood still: its tasks wake up before anything has told them that the lease is gone."""
    late = [0.0]
    async with election(tmp_path) as e:
        a = await e.join("a", clock=lambda: asyncio.get_running_loop().time() + late[0])
        await e.led_by("a")
        await e.submit(gang("one"))
        await e.state("one", "Created")
        a.client.away = True
        done = list(a.client.jobs_writes)
        late[0] = 3600.0  # in one step, with every task of the controller as it was
        assert not a.controller.leads
        await e.submit(gang("two"))
        b = await e.join("b")
        await e.state("two", "Created")
        assert a.client.jobs_writes == done
        assert {path.rsplit("/", 1)[1] for _, path in b.client.jobs_writes} >= {"pods", "services"}


async def test_a_write_is_refused_before_it_is_sent_where_the_lease_is_lost(tmp_path):
    async with world(tmp_path, start=False) as w:
        allowed = [True]
        fenced = w.client.fenced(lambda: allowed[0])
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await fenced.create(PODS, pod)
        allowed[0] = False
        writes = [
            fenced.create(PODS, pod | {"metadata": {"name": "q"}}),
            fenced.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}),
            fenced.replace(f"{PODS}/p", pod),
            fenced.delete(f"{PODS}/p"),
        ]
        for write in writes:
            with pytest.raises(WriteFencedError):
                await write
        assert await w.names(PODS) == ["p"]
        assert "labels" not in (await fenced.get(f"{PODS}/p"))["metadata"]
