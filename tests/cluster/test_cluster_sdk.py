"""The last official Python SDK on a real Kubernetes; nothing runs in the pods there, so it reads no logs."""

import asyncio
import threading

import pytest
from controller_fixtures import PODS
from kubeflow_sdk import life_of_a_job
from locked_python import locked_python
from waiting import SECONDS, while_runs

pytestmark = pytest.mark.kubernetes


async def test_the_sdk_follows_a_job_from_its_creation_to_its_deletion(world, kubernetes):
    await asyncio.to_thread(locked_python, "kubeflow-training")
    running = threading.Event()
    args = ("--namespace", world.namespace, "--without-logs", "sdk", "any/image:1")
    sdk = asyncio.create_task(
        asyncio.to_thread(life_of_a_job, kubernetes.kubeconfig(), *args, when_running=running.set)
    )
    pods = await while_runs(sdk, "the SDK", world.pods(4))
    await world.move(pods, "Running")
    assert await asyncio.to_thread(running.wait, SECONDS)
    await world.move(pods, "Succeeded", exit_code=0)
    seen = await sdk
    assert seen["conditions"].items() >= {"Created": "True", "Running": "False", "Succeeded": "True"}.items()
    assert (seen["succeeded"], seen["failed"], seen["listed"]) == (True, False, ["sdk"])
    assert seen["pods"] == sorted(pods)
    assert seen["labels"] == {"team": "vision"}
    await world.emptied(PODS)
