"""However a run ends, none of its jobs is alive afterwards: each ending for a step and for a runner, side by side."""

import asyncio

import pytest
from argo_fixtures import COMMAND, one_runner, one_training
from argo_fronts import HoldsRequest
from waiting import SECONDS

from mxnet_argo import MXJobSpec
from mxnet_operator.readers.argo_workflow import WORKFLOW_LABEL

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.kubernetes("workflow-controller", "argoexec", "argo"),
    pytest.mark.asyncio(loop_scope="module"),
]

MAKERS = {"step": one_training, "runner": one_runner}
OVER = {"Succeeded", "Failed", "Error"}
NODE_NAME = "workflows.argoproj.io/node-name"
SPEC = MXJobSpec(image="i", command=COMMAND, servers=0)


class Run:
    """One run of a workflow, until nothing of it is left."""

    def __init__(self, argo, kind, ending):
        self.argo = argo
        self.name = f"{kind}-{ending}".replace("_", "-")
        self._kind = kind

    async def begin(self, front=None, **fields):
        """Submit the run; its pods find the API by `front`, if there is one."""
        manifest = MAKERS[self._kind](spec=SPEC, **fields).to_dict()
        manifest["metadata"] = {"name": self.name}
        if front is not None:
            self.argo.pods.servers[self.name] = front.url
        await self.argo.submit(manifest)

    async def begun(self, **fields):
        """Submit the run; its job, once that has its pods."""
        await self.begin(**fields)
        return await self.argo.job(self.name)

    async def patch(self, spec):
        """Change the spec of the Workflow."""
        (await self.argo.api.merge(self.argo.path("workflows", self.name), {"spec": spec})).ok()

    def front(self, method, query=""):
        """A front that holds a run's first request about jobs with this method and query."""
        return HoldsRequest(self.argo.server, self.argo.api, method, query).served()

    async def exit_handlers_pod(self):
        """The name of the running pod of the run's exit handler."""

        def of_handler(found):
            return [name for name, pod in found.items() if ".onExit" in pod["metadata"]["annotations"][NODE_NAME]]

        pods = {"labelSelector": f"workflows.argoproj.io/workflow={self.name},workflows.argoproj.io/completed=false"}
        return of_handler(await self.argo.until("pods", of_handler, **pods))[0]

    async def nothing_is_left(self):
        """The run is over or gone, no pod of Argo's could make a job any more, and no job of it is unfinished."""
        run = {"fieldSelector": f"metadata.name={self.name}"}
        await self.argo.until("workflows", lambda runs: all(phase(each) in OVER for each in runs.values()), **run)
        pods = {"labelSelector": f"workflows.argoproj.io/workflow={self.name},workflows.argoproj.io/completed=false"}
        await self.argo.until("pods", lambda found: not any(is_alive(pod) for pod in found.values()), **pods)
        jobs = {"labelSelector": f"{WORKFLOW_LABEL}={self.name}"}
        left = await self.argo.until("mxjobs", lambda all_: all(state(job) in OVER for job in all_.values()), **jobs)
        return [state(job) for job in left.values()]


def phase(workflow):
    return workflow.get("status", {}).get("phase")


def state(job):
    return job.get("status", {}).get("state")


def is_alive(pod):
    return pod["status"]["phase"] in {"Pending", "Running"}


async def success(run):
    await run.argo.end(await run.begun())


async def failure(run):
    await run.argo.end(await run.begun(), exit_code=1)


async def stop(run):
    await run.begun()
    await run.argo.shut_down(run.name, "Stop")


async def terminate(run):
    await run.begun()
    await run.argo.shut_down(run.name, "Terminate")


async def deletion_of_the_workflow(run):
    await run.begun()
    (await run.argo.api.delete(run.argo.path("workflows", run.name))).ok()


async def deadline_of_the_workflow(run):
    await run.begun()
    await run.patch({"activeDeadlineSeconds": 1})


async def deadline_of_the_step(run):
    """As `timeout`: activeDeadlineSeconds of a template is refused when it is built."""
    await run.begun(timeout="60s")


async def stop_after_the_poller_was_killed(run):
    await run.begun()
    poller = await run.argo.poller(run.name)
    run.argo.kill(poller)
    await run.patch({"shutdown": "Stop"})


async def stop_with_the_exit_handler_killed(run):
    async with run.front("GET", "fieldSelector=status.state") as front:
        await run.begun(front=front)
        await run.argo.shut_down(run.name, "Stop")
        await asyncio.wait_for(front.held.wait(), SECONDS)
        run.argo.kill(await run.exit_handlers_pod())
        await run.nothing_is_left()


async def stop_during_a_slow_creation(run):
    """The API server makes the job when the workflow is over: neither poller nor exit handler ever saw it."""
    async with run.front("POST") as front:
        await run.begin(front)
        await asyncio.wait_for(front.held.wait(), SECONDS)
        await run.argo.shut_down(run.name, "Stop")
        await run.argo.finished(run.name)
        await front.let_go()


ENDINGS = {
    success: ["Succeeded"],
    failure: [],
    stop: [],
    terminate: [],
    deletion_of_the_workflow: [],
    deadline_of_the_workflow: [],
    deadline_of_the_step: [],
    stop_after_the_poller_was_killed: [],
    stop_with_the_exit_handler_killed: [],
    stop_during_a_slow_creation: [],
}
"""Each ending, and the states of the jobs that are left of the run."""


async def carried_out(argo, kind, ending):
    run = Run(argo, kind, ending.__name__)
    try:
        await ending(run)
        left = await run.nothing_is_left()
        if not ENDINGS[ending]:
            await argo.no_jobs(run.name)  # a failed one is deleted, too, by the exit handler
            left = []
        assert left == ENDINGS[ending]
    except BaseException as error:
        error.add_note(f"the ending was {ending.__name__}")
        raise


@pytest.mark.parametrize("kind", list(MAKERS))
async def test_no_job_is_alive_after_any_ending_of_its_run(argo, kind):
    ends = await asyncio.gather(*(carried_out(argo, kind, ending) for ending in ENDINGS), return_exceptions=True)
    if wrong := [each for each in ends if each is not None]:
        raise BaseExceptionGroup("jobs are alive, or runs did not come to their end", wrong)
