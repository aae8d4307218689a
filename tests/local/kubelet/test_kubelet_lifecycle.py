"""What becomes of a pod, from its binding to its end, seen through a real API server."""

import sys

import pytest
from kubelet_fixtures import IMAGE, make_pod, statuses, terminated

from mxnet_operator.local.kubelet import processes


@pytest.mark.parametrize(
    ("script", "code", "reason", "signal"),
    [
        ("exit 3", 3, "Error", None),
        ("kill -9 $$$$", 137, "Error", 9),
        ("kill -TERM $$$$", 143, "Error", 15),
        ("kill -40 $$$$", 168, "Error", 40),
        ("exec no-such-program", 127, "Error", None),
    ],
)
async def test_a_failure_shows_its_exit_code_and_signal(node, script, code, reason, signal):
    pod = await node.run("bad", script)
    ended = terminated(pod)
    assert (pod["status"]["phase"], ended["exitCode"], ended["reason"]) == ("Failed", code, reason)
    assert ended.get("signal") == signal
    assert ended["startedAt"] <= ended["finishedAt"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [("echo oom_kill 8 > COUNTER; kill -9 $$$$", "OOMKilled"), ("echo oom_kill 8 > COUNTER; kill -TERM $$$$", "Error")],
)
async def test_one_that_is_killed_as_the_kernel_counts_a_kill_for_memory_was_out_of_memory(
    node, monkeypatch, tmp_path, script, reason
):
    """The container itself does what the kernel does: it counts the kill, then kills."""
    counter = tmp_path / "vmstat"
    counter.write_text("nr_free_pages 1\noom_kill 7\n")
    monkeypatch.setattr(processes, "VMSTAT", counter)
    fallback = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    ended = terminated(await node.run("oom", script.replace("COUNTER", str(counter)), container=fallback))
    assert ended["reason"] == reason
    assert ("because memory ran out; it had up to " in ended.get("message", "")) == (reason == "OOMKilled")


async def test_one_that_the_kubelet_kills_was_not_out_of_memory(node, monkeypatch, tmp_path):
    counter = tmp_path / "vmstat"
    counter.write_text("oom_kill 7\n")
    monkeypatch.setattr(processes, "VMSTAT", counter)
    ignores = "trap '' TERM; echo ready; while true; do sleep 0.1; done"
    await node.create(make_pod("stopped", ignores, terminationGracePeriodSeconds=1))
    await node.until_log("stopped", "ready")
    counter.write_text("oom_kill 8\n")
    await node.patch("stopped", {"spec": {"activeDeadlineSeconds": 1}})
    ended = terminated(await node.ended("stopped"))
    assert (ended["exitCode"], ended["reason"]) == (137, "Error")


async def test_a_command_that_does_not_exist_is_a_start_error_that_names_it(node):
    pod = await node.run("absent", "no-such-program", "--flag")
    ended = terminated(pod)
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert "no-such-program" in ended["message"]
    assert "not found in $PATH" in await node.log("absent")


async def test_a_container_without_a_command_fails_instead_of_waiting(node):
    pod = make_pod("empty", "x")
    pod["spec"]["containers"][0].pop("command")
    await node.create(pod)
    assert "no command specified" in terminated(await node.ended("empty"))["message"]


async def test_a_pod_has_its_address_before_it_runs_and_its_conditions_follow(node):
    await node.create(make_pod("steps", "echo up; exec sleep 1000"))
    pod = await node.until("steps", lambda pod: pod["status"].get("podIP"), "had an address")
    assert pod["status"]["podIP"].startswith(f"{node.subnet}.")
    pod = await node.running("steps")
    true = {each["type"] for each in pod["status"]["conditions"] if each["status"] == "True"}
    assert true == {"PodScheduled", "Initialized", "Ready", "ContainersReady"}
    assert pod["status"]["phase"] == "Running"
    assert statuses(pod)[0]["ready"] is True


async def test_a_pod_runs_until_its_last_container_has_ended(node):
    second = {"name": "side", "image": IMAGE, "command": ["sh", "-c", "exec sleep 1000"]}
    pod = make_pod("two", "exit 0")
    pod["spec"]["containers"].append(second)
    await node.create(pod)

    def half_ended(pod):
        return {next(iter(each["state"])) for each in statuses(pod)} == {"running", "terminated"}

    assert (await node.until("two", half_ended, "half ended"))["status"]["phase"] == "Running"
    await node.patch("two", {"spec": {"activeDeadlineSeconds": 1}})
    assert (await node.ended("two"))["status"]["reason"] == "DeadlineExceeded"


async def test_a_deadline_set_while_it_runs_ends_a_pod_and_keeps_its_log(node):
    await node.create(make_pod("late", "echo started; exec sleep 1000"))
    await node.until_log("late", "started")
    await node.patch("late", {"spec": {"activeDeadlineSeconds": 1}})
    pod = await node.ended("late")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert terminated(pod)["exitCode"] == 143
    assert await node.log("late") == "started\n"
    assert node.processes() == []


async def test_the_output_of_a_program_that_ends_at_once_is_all_there(node):
    await node.run("burst", sys.executable, "-c", "print('x' * 99 + '\\n', end='') or [print(n) for n in range(20000)]")
    assert (await node.log("burst")).splitlines()[-1] == "19999"
