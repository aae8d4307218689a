"""The controller of a local cluster holds the Lease like any other."""

import asyncio

from controller_fixtures import gang, running_program, world
from waiting import MOMENT, until

from mxnet_operator.cli.daemons.local_cluster import make_controller

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/mxnet-operator"


async def test_an_operator_that_is_started_beside_a_local_cluster_stands_by(tmp_path):
    async with world(tmp_path, start=False) as w:
        controller = make_controller(w.client)
        running = asyncio.create_task(controller.run())
        try:
            async with asyncio.timeout(MOMENT):
                await controller.synced.wait()
            await until(lambda: controller.leads)
            async with running_program(w.kubeconfig) as second:
                await second.says("standing by: mxjob-local leads")
                await w.submit(gang())
                await w.run_to_success(await w.pods(5))
                await w.state("digits", "Succeeded")
            spec = (await w.api.get(LEASE)).ok()["spec"]
            assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("mxjob-local", 0)
            renewals = [write for write in w.writes if "leases" in write[1]]
            assert len(renewals) == 1  # an idle cluster stays idle
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert not controller.leads
