"""Alerts and dashboard: they name metrics that exist, and the alerts fire when promtool says so."""

import json
import os
import re
import subprocess

import debian
import pytest
import yaml
from deployment import MANIFESTS, one
from kubernetes_programs import MissingProgramError

from mxnet_operator.controller.metrics import Metrics

OBJECTS = list(yaml.safe_load_all((MANIFESTS / "components/monitoring/monitoring.yaml").read_text()))
RULES = one(OBJECTS, "PrometheusRule")["spec"]
BOARD = json.loads(one(OBJECTS, "ConfigMap")["data"]["mxnet-operator.json"])
PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
GAUGES = {
    "leader_election_master_status",
    "mxnet_operator_job_stalled",
    "mxnet_operator_jobs",
    "mxnet_operator_watch_last_event_seconds",
    "workqueue_longest_running_processor_seconds",
}
"""Metrics that a controller adds once it runs."""


def series(name, values, **labels):
    shown = ", ".join(f'{key}="{value}"' for key, value in {"job": "mxnet-operator", **labels}.items())
    return {"series": f"{name}{{{shown}}}", "values": values}


def leader(*values):
    return [series("leader_election_master_status", each, namespace="mx", pod=f"p{n}") for n, each in enumerate(values)]


CASES = {
    "MXNetOperatorNoLeader": {
        "5m": (leader("0x20", "0x20"), leader("1x20", "0x20")),
        "6m": ([], leader("0x20", "1x20")),
        "7m": (leader("1x20", "1x20"), leader("1x20", "0x20")),
    },
    "MXNetOperatorWatchSilent": {
        "10m": tuple(
            [series("mxnet_operator_watch_last_event_seconds", each, namespace="mx", pod="p", resource="pods")]
            for each in ("0+60x20", "30x20")
        ),
    },
    "MXNetOperatorReconcileErrors": {
        "90m": tuple(
            [series("controller_runtime_reconcile_errors_total", each, namespace="mx")] for each in ("0+1x100", "7x100")
        ),
    },
    "MXNetOperatorBug": {
        "10m": tuple(
            [series("controller_runtime_reconcile_panics_total", each, namespace="mx")] for each in ("0 0 1x20", "1x20")
        ),
    },
    "MXNetOperatorQueueOld": {
        "30m": tuple(
            [series("workqueue_longest_running_processor_seconds", each, namespace="mx")]
            for each in ("0+60x40", "5x40")
        ),
    },
    "MXJobsNotAccepted": {
        "30m": tuple(
            [series("mxnet_operator_jobs", each, job_namespace="team", state="New")] for each in ("2x40", "2x10 0x30")
        ),
    },
    "MXJobsWait": {
        "7h": tuple(
            [series("mxnet_operator_jobs", each, job_namespace="team", state="Created")]
            for each in ("3x600", "3x200 0x10 3x400")
        ),
        "8h": tuple(
            [
                series("mxnet_operator_jobs", "3x600", job_namespace="team", state="Created"),
                series("mxnet_operator_jobs", running, job_namespace="other", state="Running"),
            ]
            for running in ("0x600", "1x600")
        ),
    },
    "MXJobFailed": {
        "60m": tuple(
            [series("training_operator_jobs_failed_total", each, job_namespace="team")]
            for each in ("1x50 2x50", "7x100")
        ),
        "70m": tuple(
            [series("training_operator_jobs_failed_total", each, job_namespace="team")]
            for each in ("_x65 1x50", "_x20 1x80")
        ),
    },
    "MXJobStalled": {
        "30m": tuple(
            [series("mxnet_operator_job_stalled", each, job_namespace="team", job_name="a")]
            for each in ("1x40", "0x28 1x9")
        ),
    },
}
"""By alert and time, series with which it fires then, and others with which it doesn't."""


@pytest.fixture(scope="module")
def promtool():
    try:
        return debian.unpacked(("prometheus",)) / "usr/bin/promtool"
    except MissingProgramError as error:
        pytest.fail(str(error), pytrace=False) if os.environ.get("CI") else pytest.skip(str(error))


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(RULES))
    return path


def expressions():
    yield from (rule["expr"] for group in RULES["groups"] for rule in group["rules"])
    yield from (target["expr"] for panel in BOARD["panels"] for target in panel["targets"])


def test_every_metric_that_is_asked_for_is_served():
    served = set(re.findall(r"^# HELP (\S+)", Metrics().render("")[0].decode(), re.MULTILINE)) | PROCESS | GAUGES
    asked = {re.sub(r"_bucket$", "", name) for text in expressions() for name in re.findall(r"(\w+)\{", text)}
    assert len(asked) > 10
    assert asked <= served


def test_every_alert_names_its_section_of_the_troubleshooting():
    headings = re.findall(
        r"^### `(MX\w+)`$", (MANIFESTS.parents[1] / "docs/troubleshooting.md").read_text(), re.MULTILINE
    )
    rules = [rule for group in RULES["groups"] for rule in group["rules"]]
    assert sorted(headings) == sorted(rule["alert"] for rule in rules)
    for rule in rules:
        assert rule["annotations"]["runbook_url"] == f"docs/troubleshooting.md#{rule['alert'].lower()}"


@pytest.mark.exhaustive
def test_each_alert_fires_when_it_should_and_only_then(promtool, rules, tmp_path):
    assert {rule["alert"] for group in RULES["groups"] for rule in group["rules"]} == set(CASES)
    tests = [
        {"interval": "1m", "input_series": given, "promql_expr_test": [ask(alert, at, fires=fires)]}
        for alert, by_time in CASES.items()
        for at, pair in by_time.items()
        for fires, given in zip((True, False), pair, strict=True)
    ]
    path = tmp_path / "tests.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run([promtool, "test", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def ask(alert, at, *, fires):
    """Ask for the number of firing alerts of a name."""
    samples = [{"labels": "{}", "value": 1}] if fires else []
    return {
        "expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})',
        "eval_time": at,
        "exp_samples": samples,
    }
