"""The Sensor on the page about Argo: Go's own templates with sprig, which Helm has as Argo Events does, read it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm import helm

ROOT = Path(__file__).parents[3]
MAP: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rendered"}}


def sensor() -> dict[str, Any]:
    """The Sensor, as whoever copies it has it."""
    page = (ROOT / "docs" / "argo.md").read_text()
    blocks = ("\n".join(line[4:] for line in each.splitlines()) for each in page.split("\n\n") if each[:4] == "    ")
    (found,) = (each for each in map(yaml.safe_load, filter(lambda text: "kind: Sensor" in text, blocks)))
    made: dict[str, Any] = found
    return made


@pytest.mark.kubernetes("helm")
@pytest.mark.parametrize("key", ["digits/train.rec", 'a "quoted" key', "{{ .Values }}", "a\nb", "é"])
def test_the_sensors_template_makes_the_jobs_arguments_of_an_event(tmp_path: Path, key: str) -> None:
    (trigger,) = sensor()["spec"]["triggers"]
    (parameter,) = trigger["template"]["k8s"]["parameters"]
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: rendered, version: 0.1.0}")
    template = yaml.safe_dump(MAP) + "args: {{ with .Values }}" + parameter["src"]["dataTemplate"] + "{{ end }}\n"
    (tmp_path / "templates" / "map.yaml").write_text(template)
    event = {"Input": {"notification": [{"s3": {"object": {"key": key}}}]}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    done = helm("template", tmp_path, f"--values={tmp_path / 'event.json'}")
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["args"] == ["--data", key]


def test_the_sensor_sets_the_argument_that_it_means() -> None:
    (trigger,) = sensor()["spec"]["triggers"]
    k8s = trigger["template"]["k8s"]
    (parameter,) = k8s["parameters"]
    place: Any = k8s["source"]["resource"]
    for key in parameter["dest"].split(".")[:-1]:
        place = place[int(key) if key.isdigit() else key]
    assert (place["name"], parameter["dest"].rpartition(".")[2]) == ("args", "value")
