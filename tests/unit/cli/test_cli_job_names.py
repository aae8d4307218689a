"""A name that no job can have finds no job, whatever it would mean within a URL; an empty one is a wrong usage."""

import asyncio
import re
import sys

import pytest
from apiserver_fixtures import running_server
from cli_outcomes import outcome
from controller_fixtures import JOBS, gang

from mxnet_operator.api.printable import printable
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.server import job_kinds
from mxnet_operator.cli.verbs import delete
from mxnet_operator.client.job_client import JobClient
from mxnet_operator.kube.errors import ApiError

VERBS = ("get", "describe", "logs", "delete", "wait")
ODD = [
    "digits#2",
    "digits?x=1",
    "digits ",
    "digits\r\nX-Header: 1",
    "digits%2Fstatus",
    "..",
    "mxjob/..",
    "digits\udcff",
    "#",
]
EMPTY = ["", "mxjob/", "/"]
NAMESPACES = ["a b", "a#", "a?limit=1", "default#", "%64efault"]
NO_NAMESPACES = [".", "..", "a/b", "default/mxjobs/digits?"]


async def test_what_the_server_rejects_for_one_job_keeps_no_other_from_being_done(monkeypatch):
    done = []

    async def get_job(_client, _namespace, name):
        return {"metadata": {"name": name}}

    async def work(name, _job):
        if name == "a":
            raise ApiError(403, "Forbidden", "no")
        for _ in range(9):
            await asyncio.sleep(0)
        done.append(name)

    monkeypatch.setattr(job_kinds, "get_job", get_job)
    with pytest.raises(ApiError):
        await job_kinds.for_each(None, "default", ["a", "b", "b", "c"], work)
    assert done == ["b", "c"]


async def test_every_job_is_asked_to_go_before_any_is_waited_for(tmp_path, monkeypatch):
    """There may be more of them than connections, and each wait holds one."""
    done = []

    class Deleting(JobClient):
        async def delete_job(self, ref):
            is_found = await super().delete_job(ref)
            for _ in range(99 if ref.name == "b" else 0):
                await asyncio.sleep(0)
            done.append("asked")
            return is_found

    async def gone(_client, _job):
        done.append("gone")

    monkeypatch.setattr(delete, "JobClient", Deleting)
    monkeypatch.setattr(delete, "until_gone", gone)
    async with running_server(tmp_path) as running:
        for name in ("a", "b"):
            (await running.api.post(JOBS, gang(name))).ok()
        code, _ = await outcome(monkeypatch, "delete", "--kubeconfig", str(running.kubeconfig), "a", "b")
    assert (code, done) == (Exit.OK, ["asked", "asked", "gone", "gone"])


async def test_a_name_that_is_not_there_fails_the_command_and_keeps_no_other_job(tmp_path, monkeypatch):
    async with running_server(tmp_path) as running:
        (await running.api.post(JOBS, gang())).ok()
        options = ("--kubeconfig", str(running.kubeconfig), "--no-wait")
        code, _ = await outcome(monkeypatch, "delete", *options, "digits", "nope")
        left = (await running.api.listed(JOBS))[0].values()
    assert code == Exit.FAILED
    assert all("deletionTimestamp" in each["metadata"] for each in left)


@pytest.mark.sampled
@pytest.mark.parametrize("verb", VERBS)
async def test_an_odd_name_finds_no_job(tmp_path, monkeypatch, capsys, verb):
    async def said(name, *options):
        capsys.readouterr()
        words = [verb, "--kubeconfig", str(running.kubeconfig), *options, "--", name]
        code, message = await outcome(monkeypatch, *words)
        shown = printable(message) or re.split("list all|did you mean", capsys.readouterr().err)[0]
        return code, " ".join(shown.removeprefix("error: ").split())

    def none(name, namespace="default"):
        return Exit.FAILED, " ".join(printable(f"no MXJob {name} in namespace {namespace}").split())

    async with running_server(tmp_path) as running:
        (await running.api.post(JOBS, gang())).ok()
        found = {name: await said(name) for name in [*ODD, *EMPTY]}
        there = {namespace: await said("digits", "-n", namespace) for namespace in [*NAMESPACES, *NO_NAMESPACES]}
        assert list((await running.api.listed(JOBS))[0]) == ["digits"]
    empty = (Exit.USAGE, "a job's name can't be empty")
    assert found == {name: none(name) for name in ODD} | dict.fromkeys(EMPTY, empty)
    assert there == {namespace: none("digits", namespace) for namespace in NAMESPACES} | {
        namespace: (Exit.USAGE, f"{namespace} is not a valid namespace") for namespace in NO_NAMESPACES
    }


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["logs", "didgits"], "no MXJob didgits in namespace default\ndid you mean digits?"),
        (["describe", "mxjob/digts"], "no MXJob mxjob/digts in namespace default\ndid you mean digits?"),
        (["logs", "dig"], "no MXJob dig in namespace default\ndid you mean digits, digits-2?"),
        (["describe", "digit"], "did you mean digits, digits-2?"),
        (["logs", "-f", "digits", "worker-1"], "a replica is an option: mxjob logs -f digits --kubeconfig"),
        (["logs", "digits/worker-1"], "for its log: mxjob logs digits --replica worker-1"),
        (["get", "-n", "nosuch"], "there is no namespace nosuch; list all jobs: mxjob get -A"),
        (["get", "--context", "prod"], "no context prod: the contexts are test"),
    ],
)
async def test_a_misspelt_name_is_answered_with_the_one_that_exists(tmp_path, words, said):
    async with running_server(tmp_path) as running:
        for name in ("digits", "digits-2"):
            (await running.api.post(JOBS, gang(name=name))).ok()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "mxnet_operator.cli.mxjob",
            *words,
            "--kubeconfig",
            str(running.kubeconfig),
            stderr=asyncio.subprocess.PIPE,
        )
        _, err = await process.communicate()
    assert said in err.decode()
