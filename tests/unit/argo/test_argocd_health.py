"""Argo CD's health check for MXJobs, on its test data, by a Lua 5.1 with the libraries that Argo CD opens."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa import lua51

from mxnet_argo.__main__ import files
from mxnet_operator.api import conditions
from mxnet_operator.api.validation import unknown_fields, validate
from mxnet_operator.readers.waiting import WAITING

ARGO = Path(__file__).parents[3] / "argo"
FOLDER = ARGO / "argocd" / "resource_customizations" / "kubeflow.org" / "MXJob"
HEALTH = (FOLDER / "health.lua").read_text()
TESTS = yaml.safe_load((FOLDER / "health_test.yaml").read_text())["tests"]
OPENED = {"assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "select", "setmetatable", "table"}
OPENED |= {"tonumber", "tostring", "type", "unpack"}
"""Of Lua's globals, those that Argo CD has without its option useOpenLibs: neither string nor os nor io."""


def health(job: Any) -> dict[str, str]:
    lua = lua51.LuaRuntime(register_eval=False, register_builtins=False)
    for name in list(lua.globals()):
        if name not in OPENED:
            lua.globals()[name] = None
    lua.globals()["obj"] = lua.table_from(job, recursive=True)
    return dict(lua.execute(HEALTH))


@pytest.mark.parametrize("test", TESTS, ids=lambda test: Path(test["inputPath"]).stem)
def test_a_job_is_as_healthy_as_its_test_data_say(test: dict[str, Any]) -> None:
    job = yaml.safe_load((FOLDER / test["inputPath"]).read_text())
    assert (validate(job), unknown_fields(job)) == ([], [])
    assert health(job) == test["healthStatus"]


def test_every_file_of_test_data_is_tested_and_every_state_occurs() -> None:
    assert {each["inputPath"] for each in TESTS} == {f"testdata/{file.name}" for file in FOLDER.glob("testdata/*")}
    jobs = [yaml.safe_load(file.read_text()) for file in FOLDER.glob("testdata/*")]
    states = {conditions.CREATED, conditions.RUNNING, conditions.RESTARTING, conditions.SUSPENDED}
    assert states | conditions.TERMINAL <= {job.get("status", {}).get("state") for job in jobs}


@pytest.mark.parametrize("status", [{}, {"conditions": []}, {"state": ""}, {"state": "Later"}], ids=str)
def test_a_status_that_says_nothing_known_is_progressing(status: dict[str, Any]) -> None:
    assert health({"status": status})["status"] == "Progressing"


def test_whatever_a_job_waits_for_is_its_message() -> None:
    running = {"type": "Running", "status": "True", "message": "MXJob digits is running."}
    for name, status in WAITING.items():
        if name not in (conditions.SUSPENDED, conditions.RESTARTING):
            waits = {"type": name, "status": status, "message": f"because of {name}"}
            found = health({"status": {"state": "Running", "conditions": [running, waits]}})
            assert found == {"status": "Progressing", "message": f"because of {name}"}


def test_a_suspended_job_waits_for_its_queue_or_for_its_user() -> None:
    suspended = {"type": "Suspended", "status": "True", "message": "MXJob digits is suspended."}
    queued = {"type": "Admitted", "status": "False", "message": "The job waits in queue a."}
    status = {"state": "Suspended", "conditions": [queued, suspended]}
    assert health({"status": status})["message"] == queued["message"]
    assert health({"spec": {"runPolicy": {"suspend": True}}, "status": status})["message"] == suspended["message"]


def test_a_state_without_a_message_is_its_own() -> None:
    assert health({"status": {"state": "Failed"}}) == {"status": "Degraded", "message": "Failed"}


def test_the_config_map_has_this_check() -> None:
    made = yaml.safe_load(files(ARGO)[ARGO / "argocd" / "argocd-cm.yaml"])
    assert made["data"] == {"resource.customizations.health.kubeflow.org_MXJob": HEALTH}
