"""The ConfigMap with the fail-fast hook: made where jobs run, and never in the way of one."""

import pytest
from builders import make_mxjob
from controller_fixtures import submitted, world

from mxnet_operator.builders.fail_fast import CONFIG_MAP, DATA, MOUNT_PATH
from mxnet_operator.controller.fail_fast import provide_hook
from mxnet_operator.kube.errors import ApiError

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WORKERS = {"command": ["python", "train.py"]}


def wrapped(pod):
    return pod["spec"]["containers"][0].get("command", [])[:2] == ["sh", f"{MOUNT_PATH}/run.sh"]


async def test_the_first_job_of_a_namespace_brings_the_hook_and_the_second_finds_it(tmp_path):
    async with world(tmp_path, start=False) as w:
        await w.start(fail_fast_hook=True)
        await w.submit(submitted(make_mxjob("one").gang().worker(2, **WORKERS)))
        pods = await w.pods(5)
        assert [name for name, pod in sorted(pods.items()) if wrapped(pod)] == ["one-worker-0", "one-worker-1"]
        mounts = pods["one-worker-0"]["spec"]["containers"][0]["volumeMounts"]
        assert {"name": "mxjob-failfast", "mountPath": MOUNT_PATH, "readOnly": True} in mounts
        (made,) = (await w.api.get(CONFIG_MAPS)).ok()["items"]
        assert (made["metadata"]["name"], made["data"], made["immutable"]) == (CONFIG_MAP, DATA, True)
        await w.submit(submitted(make_mxjob("two").worker(1, **WORKERS)))
        assert wrapped((await w.pods(6))["two-worker-0"])
        assert w.writes.count(("POST", CONFIG_MAPS)) == 1


async def test_a_worker_without_a_command_runs_without_the_hook_and_its_user_is_told(tmp_path):
    async with world(tmp_path, start=False) as w:
        await w.start(fail_fast_hook=True)
        await w.submit(submitted(make_mxjob("bare").worker(1, args=["train.py"])))
        event = await w.event("FailFastHookMissing")
        assert event["message"].startswith("Worker: the template names no command to put the hook before. ")
        assert not wrapped((await w.pods(1))["bare-worker-0"])
        assert await w.names(CONFIG_MAPS) == []


async def test_a_config_map_of_that_name_with_other_content_is_not_mounted(tmp_path):
    async with world(tmp_path, start=False) as w:
        foreign = {"metadata": {"name": CONFIG_MAP}, "data": {"sitecustomize.py": "print('not ours')"}}
        (await w.api.post(CONFIG_MAPS, foreign)).ok()
        await w.start(fail_fast_hook=True)
        await w.submit(submitted(make_mxjob("one").worker(1, **WORKERS)))
        assert "other content" in (await w.event("FailFastHookMissing"))["message"]
        assert not wrapped((await w.pods(1))["one-worker-0"])


POLICY = "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: needs a team"
WEBHOOK = 'admission webhook "team.example.org" denied the request: needs a team'


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (403, "Forbidden", 'configmaps "x" is forbidden: exceeded quota: few'),
        (400, "", WEBHOOK),
        (400, "BadRequest", WEBHOOK),
        (418, "Teapot", WEBHOOK),
        (422, "Invalid", POLICY),
        (413, "RequestEntityTooLarge", "limit is 3145728"),
    ],
)
async def test_a_config_map_that_is_rejected_keeps_no_job_from_running(tmp_path, monkeypatch, code, reason, message):
    async with world(tmp_path, start=False) as w:
        answer_creations(monkeypatch, w, ApiError(code, reason, message))
        await w.start(fail_fast_hook=True)
        await w.submit(submitted(make_mxjob("one").worker(1, **WORKERS)))
        assert not wrapped((await w.pods(1))["one-worker-0"])
        assert (await w.event("FailFastHookMissing"))["message"].startswith(f"Worker: {message}. ")


@pytest.mark.parametrize(
    "passing", [ApiError(400, "", "<html>Bad Request</html>"), ApiError(403, "", "log in"), ApiError(503, "", "away")]
)
async def test_what_says_nothing_of_the_config_map_is_waited_out(tmp_path, monkeypatch, passing):
    async with world(tmp_path, start=False) as w:
        answer_creations(monkeypatch, w, passing, times=1)
        await w.start(fail_fast_hook=True)
        await w.submit(submitted(make_mxjob("one").worker(1, **WORKERS)))
        assert wrapped((await w.pods(1))["one-worker-0"])


FORBIDDEN = ApiError(403, "Forbidden", 'configmaps "x" is forbidden: cannot get resource "configmaps"')


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, ""),
        (ApiError(409, "AlreadyExists", "already exists"), ""),
        (ApiError(403, "Forbidden", "may not create"), "may not create"),
    ],
    ids=["created", "exists", "forbidden"],
)
async def test_a_config_map_that_another_releases_role_does_not_let_be_read_is_created(answer, problem):
    class Server:
        created = ()

        async def get(self, path):
            raise FORBIDDEN

        async def create(self, path, body):
            self.created += (body["data"],)
            if answer is not None:
                raise answer

    server = Server()
    assert await provide_hook(server, "default") == problem
    assert server.created == (DATA,)


def answer_creations(monkeypatch, w, error, times=1000):
    """Answer so many creations of ConfigMaps with an error."""
    create, left = w.client.create, iter(range(times))

    async def answer(path, body, **options):
        if body["kind"] == "ConfigMap" and next(left, None) is not None:
            raise error
        return await create(path, body, **options)

    monkeypatch.setattr(w.client, "create", answer)


@pytest.mark.parametrize(("hook", "policy"), [(True, {"failFast": False}), (False, {})], ids=["off", "by the kubelet"])
async def test_a_job_that_switches_it_off_or_whose_kubelet_brings_it_has_no_config_map(tmp_path, hook, policy):
    async with world(tmp_path, start=False) as w:
        await w.start(fail_fast_hook=hook)
        await w.submit(submitted(make_mxjob("off").worker(1, **WORKERS).run_policy(**policy)))
        assert not wrapped((await w.pods(1))["off-worker-0"])
        assert await w.names(CONFIG_MAPS) == []
