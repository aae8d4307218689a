"""The pod of a replica with the fail-fast hook: what is mounted, and which containers are wrapped."""

from typing import Any

import pytest
from builders import JobBuilder, make_mxjob

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders import build_pod
from mxnet_operator.builders.fail_fast import CONFIG_MAP, HOOK, MOUNT_PATH, config_map

COMMAND = ["python", "train.py"]


def spec(builder: JobBuilder, replica_type: str = "Worker", *, has_hook: bool = True) -> dict[str, Any]:
    built: dict[str, Any] = build_pod(with_defaults(builder.obj()), replica_type, 0, 0, has_hook=has_hook)["spec"]
    return built


def test_the_command_is_wrapped_and_the_hook_mounted_beside_what_the_user_has() -> None:
    mine = {"volumeMounts": [{"name": "data", "mountPath": "/data"}], "args": ["--epochs", "2"]}
    builder = make_mxjob().worker(1, command=COMMAND, **mine).template("Worker", volumes=[{"name": "data"}])
    built = spec(builder)
    (container,) = built["containers"]
    assert container["command"][-2:] == COMMAND
    assert container["args"] == ["--epochs", "2"]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/data", MOUNT_PATH]
    assert built["volumes"] == [
        {"name": "data"},
        {"name": "mxjob-failfast", "configMap": {"name": CONFIG_MAP}},
    ]


@pytest.mark.parametrize("replica_type", ["Scheduler", "Server", "Worker"])
def test_whatever_runs_mxnet_and_names_a_command_has_the_hook(replica_type: str) -> None:
    builder = make_mxjob().scheduler(command=COMMAND).server(command=COMMAND).worker(1, command=COMMAND)
    (container,) = spec(builder, replica_type)["containers"]
    assert container["command"] == ["sh", f"{MOUNT_PATH}/run.sh", *COMMAND]


def test_replicas_of_a_tuning_have_no_hook() -> None:
    builder = make_mxjob().replicas("TunerTracker", 1, command=COMMAND).replicas("Tuner", 1, command=COMMAND)
    for replica_type in ("TunerTracker", "Tuner"):
        assert spec(builder, replica_type) == spec(builder, replica_type, has_hook=False)


def test_one_type_without_a_command_goes_without_where_another_has_the_hook() -> None:
    builder = make_mxjob().scheduler(args=["train.py"]).worker(1, command=COMMAND)
    assert spec(builder, "Scheduler") == spec(builder, "Scheduler", has_hook=False)
    assert "volumes" in spec(builder, "Worker")


def test_a_job_can_do_without() -> None:
    builder = make_mxjob().worker(1, command=COMMAND).run_policy(failFast=False)
    assert spec(builder) == spec(builder, has_hook=False)


def test_other_containers_stay_as_they_are() -> None:
    containers = [
        {"name": "mxnet", "image": "a", "command": COMMAND},
        {"name": "sidecar", "image": "b", "command": ["s"]},
    ]
    built = spec(make_mxjob().worker(1).template("Worker", containers=containers))
    assert built["containers"][1]["command"] == ["s"]
    assert "volumeMounts" not in built["containers"][1]


def test_the_config_map_cannot_be_changed_and_is_named_by_its_content() -> None:
    made = config_map("ml")
    assert made["immutable"] is True
    assert made["metadata"]["name"] == CONFIG_MAP
    assert set(made["data"]) == {path.name for path in HOOK.iterdir() if path.suffix in {".py", ".sh"}}
