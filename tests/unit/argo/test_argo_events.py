"""The Sensor on the page about Argo, by Argo Events' own code: validation, and what becomes of an event."""

import json
import subprocess
from typing import Any

import argo_page
import pytest
from kubernetes_programs import programs_or_skip

pytestmark = pytest.mark.programs("argo-trigger")


def triggered(sensor: dict[str, Any], key: str) -> "subprocess.CompletedProcess[str]":
    """What the sensor makes of an event of MinIO about an object of this key."""
    event = {"notification": [{"s3": {"object": {"key": key}}}]}
    return subprocess.run(
        [programs_or_skip(["argo-trigger"])["argo-trigger"]],
        input=json.dumps({"sensor": sensor, "data": {"data": event}}),
        env={},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("key", ["digits/train.rec", 'a "quoted" key', "{{ .Values }}", "a\nb", "\u00e9"])
def test_an_event_makes_a_workflow_whose_jobs_arguments_have_its_key(key: str) -> None:
    done = triggered(argo_page.sensor(), key)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    given = {each["name"]: each["value"] for each in made["spec"]["arguments"]["parameters"]}
    shown = argo_page.trigger()["source"]["resource"]["spec"]["arguments"]["parameters"]
    assert given == {each["name"]: each["value"] for each in shown} | {"args": given["args"]}
    assert json.loads(given["args"]) == ["--data", key]
