"""The election, on the local API server: who leads, who takes over and when, and what a server's trouble does."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from apiserver_fixtures import running_server
from waiting import MOMENT

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.errors import ApiUnavailable, InvalidAnswerError
from mxnet_operator.kube.lease import LeaderElector, LeaseTimes, boot_clock, own_identity

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LEASE = f"{LEASES}/mxnet-operator"
TIMES = LeaseTimes(duration=60, renew_deadline=40, retry_period=0.01)


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class SometimesAway(Client):
    """A client whose server can't be reached while `away`; it notes when it was asked."""

    away = False

    def __init__(self, credentials):
        super().__init__(credentials)
        self.asked = asyncio.Event()

    def check(self):
        self.asked.set()
        if self.away:
            raise ApiUnavailable("away")

    async def get(self, path, *args, **kwargs):
        self.check()
        return await super().get(path, *args, **kwargs)

    async def replace(self, path, *args, **kwargs):
        self.check()
        return await super().replace(path, *args, **kwargs)


class Candidate:
    """An elector at work, whose terms a test can await."""

    def __init__(self, client, identity, clock, times):
        self.client = client
        self.elector = LeaderElector(client, "default", "mxnet-operator", identity=identity, times=times, clock=clock)
        self.leading, self.ended = asyncio.Event(), asyncio.Event()
        self.terms = 0
        self.task = asyncio.create_task(self.elector.run(self.lead))

    async def lead(self):
        self.terms += 1
        self.leading.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.leading.clear()
            self.ended.set()

    async def stop(self):
        self.task.cancel()
        (result,) = await asyncio.gather(self.task, return_exceptions=True)
        assert isinstance(result, asyncio.CancelledError), result

    async def asks(self, times=2):
        """Wait until it has asked the server some more times."""
        for _ in range(times):
            self.client.asked.clear()
            await soon(self.client.asked)


async def soon(event):
    async with asyncio.timeout(MOMENT):
        await event.wait()


class Election:
    def __init__(self, running):
        self.api = running.api
        self.clock = Clock()
        self._credentials = load_credentials(str(running.kubeconfig))
        self._candidates = []

    async def join(self, identity, clock=None, times=TIMES):
        client = await SometimesAway(self._credentials).__aenter__()
        candidate = Candidate(client, identity, clock or self.clock, times)
        self._candidates.append(candidate)
        return candidate

    async def leader(self, identity="a", **options):
        candidate = await self.join(identity, **options)
        await soon(candidate.leading)
        return candidate

    async def spec(self):
        return (await self.api.get(LEASE)).ok()["spec"]

    async def close(self):
        for candidate in self._candidates:
            candidate.task.cancel()
            await asyncio.gather(candidate.task, return_exceptions=True)
            await candidate.client.__aexit__(None, None, None)


@asynccontextmanager
async def election(tmp_path):
    async with running_server(tmp_path) as running:
        made = Election(running)
        try:
            yield made
        finally:
            await made.close()


async def test_the_first_to_come_leads_and_the_record_says_so(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader()
        spec = await e.spec()
        assert a.elector.leads
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 60, 0)
        assert spec["acquireTime"] <= spec["renewTime"]


async def test_a_second_one_stands_by_while_the_first_renews(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader()
        b = await e.join("b")
        for _ in range(4):  # twice the lease's duration
            await b.asks()
            e.clock.now += 30
            await a.asks()
        a.client.away = True  # no renewal comes between b's look and what it would write
        await b.asks(6)  # two an attempt, of which a's last renewals can make some vain
        assert a.elector.leads
        assert not b.elector.leads
        assert b.terms == 0


async def test_a_leader_that_stops_gives_the_lease_back_and_the_next_one_need_not_wait(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader()
        b = await e.join("b")
        await b.asks()
        await a.stop()
        assert a.ended.is_set()
        assert not a.elector.leads
        await soon(b.leading)
        spec = await e.spec()
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


async def test_a_leader_that_falls_silent_is_replaced_after_the_duration_and_not_before(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader()
        a.client.away = True
        b = await e.join("b")
        await b.asks()
        e.clock.now += 59
        await b.asks()
        assert b.terms == 0
        e.clock.now += 1
        await soon(b.leading)
        assert (await e.spec())["holderIdentity"] == "b"


@pytest.mark.parametrize("renewed", ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
async def test_the_times_in_the_record_decide_nothing(tmp_path, renewed):
    async with election(tmp_path) as e:
        spec = {"holderIdentity": "another", "leaseDurationSeconds": 30, "acquireTime": renewed, "renewTime": renewed}
        (await e.api.post(LEASES, {"metadata": {"name": "mxnet-operator"}, "spec": spec})).ok()
        b = await e.join("b")
        await b.asks()
        e.clock.now += 29  # its holder's own duration counts, which is not ours
        await b.asks()
        assert b.terms == 0
        e.clock.now += 1
        await soon(b.leading)


async def test_who_can_not_renew_stops_at_the_deadline_which_is_before_another_may_start(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader()
        await a.asks()
        a.client.away = True
        await a.asks()
        e.clock.now += 40
        assert not a.elector.leads  # before its tasks have noticed anything
        await soon(a.ended)
        assert (await e.spec())["holderIdentity"] == "a"


async def test_a_renewal_that_succeeds_after_the_deadline_begins_a_new_term(tmp_path):
    """Workers have stopped by then, so the old term can't go on as if nothing had been."""
    async with election(tmp_path) as e:
        a = await e.leader()
        send = a.client.replace

        async def slowly(path, *args, **kwargs):
            e.clock.now += 11
            a.client.replace = send
            return await send(path, *args, **kwargs)

        a.client.replace = slowly
        e.clock.now += 30  # the deadline is ten seconds away
        await soon(a.ended)
        await soon(a.leading)
        assert a.terms == 2
        assert (await e.spec())["leaseTransitions"] == 0


async def test_a_renewal_that_gets_lost_leaves_time_for_another(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader(clock=boot_clock, times=LeaseTimes(duration=12, renew_deadline=8, retry_period=0.01))
        send, renewed = a.client.replace, asyncio.Event()

        async def lost(*_args, **_kwargs):
            a.client.replace = again
            await asyncio.Event().wait()

        async def again(*args, **kwargs):
            stored = await send(*args, **kwargs)
            renewed.set()
            return stored

        a.client.replace = lost
        await soon(renewed)
        assert a.elector.leads
        assert (a.terms, a.ended.is_set()) == (1, False)


async def test_losing_the_lease_ends_the_term_and_not_the_candidate(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader()
        a.client.away = True
        e.clock.now += 40
        await soon(a.ended)
        a.client.away = False
        await soon(a.leading)
        assert a.terms == 2
        assert a.elector.leads


async def test_who_comes_back_after_another_took_over_stands_by(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader()
        a.client.away = True
        b = await e.join("b")
        await b.asks()
        e.clock.now += 60
        await soon(b.leading)
        await soon(a.ended)
        a.client.away = False
        await a.asks()
        assert a.terms == 1
        assert not a.elector.leads
        assert b.elector.leads


async def test_a_lease_that_somebody_else_took_is_lost_at_once(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader()
        (await e.api.merge(LEASE, {"spec": {"holderIdentity": "somebody"}})).ok()
        await soon(a.ended)
        assert not a.elector.leads


async def test_a_lease_that_was_deleted_or_touched_is_kept(tmp_path):
    async with election(tmp_path) as e:
        a = await e.leader()
        (await e.api.merge(LEASE, {"metadata": {"annotations": {"touched": "yes"}}})).ok()
        await a.asks(4)
        (await e.api.delete(LEASE)).ok()
        await a.asks(4)
        assert (await e.spec())["holderIdentity"] == "a"
        assert a.terms == 1


async def test_what_a_term_dies_of_ends_the_election_and_gives_the_lease_back(tmp_path):
    async with election(tmp_path) as e:
        a = await e.join("a")

        async def die():
            raise LookupError("a bug")

        a.task.cancel()
        with pytest.raises(LookupError):
            await a.elector.run(die)
        assert "holderIdentity" not in await e.spec()


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ({"duration": 10, "renew_deadline": 10}, "two would lead"),
        ({"renew_deadline": 1.2, "retry_period": 1}, "no time to renew"),
        ({"duration": 0}, "at least 1 s"),
        ({"retry_period": 0}, "more than 0"),
    ],
)
def test_times_that_do_not_fit_together_are_refused(times, says):
    with pytest.raises(ValueError, match=says):
        LeaseTimes(**times)


def test_no_two_processes_of_a_host_have_one_identity():
    assert own_identity() != own_identity()


def test_the_clock_never_goes_back():
    assert boot_clock() <= boot_clock()


@pytest.mark.parametrize("took", [0, 10, 39])
async def test_a_term_is_counted_from_the_sending_of_its_renewal_not_from_the_answer(tmp_path, took):
    """What took long to come back may have been stored at once: from there on others count."""
    async with election(tmp_path) as e:
        client = await SometimesAway(e._credentials).__aenter__()
        send, begun = client.create, e.clock.now

        async def slowly(path, *args, **kwargs):
            stored = await send(path, *args, **kwargs)
            e.clock.now += took
            return stored

        client.create = slowly
        candidate = Candidate(client, "a", e.clock, TIMES)
        e._candidates.append(candidate)
        await soon(candidate.leading)
        e.clock.now = begun + TIMES.renew_deadline - 0.1
        assert candidate.elector.leads
        e.clock.now = begun + TIMES.renew_deadline
        assert not candidate.elector.leads


@pytest.mark.parametrize("spec", [{"holderIdentity": "another"}, {"holderIdentity": None}, {}, "mine", None])
async def test_an_answer_that_names_another_holder_makes_nobody_a_leader(tmp_path, spec):
    """A webhook, or a proxy's cache, may answer with another lease than the one that was written."""
    async with running_server(tmp_path) as server, Client(load_credentials(str(server.kubeconfig))) as client:

        async def create(path, body, **_):
            return {**body, "spec": spec}

        client.create = create
        elector = LeaderElector(client, "default", "mxnet-operator", identity="mine", times=TIMES, clock=Clock())
        with pytest.raises(InvalidAnswerError, match="not the lease that was written"):
            await elector._attempt()
        assert not elector.leads
