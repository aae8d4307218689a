"""Nodes in one word: which affinities `runPolicy.placement` adds, and that the template's own stay."""

from typing import Any

import pytest
from builders import JobBuilder, built_pod, make_mxjob

from mxnet_operator.api import names
from mxnet_operator.api.validation import decode, validate

HOST = "kubernetes.io/hostname"
JOB = {names.LABEL_JOB_UID: "uid-of-digits"}
ZONES = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "cache"}}}


def affinity(builder: JobBuilder, replica_type: str) -> dict[str, Any]:
    found: dict[str, Any] = built_pod(builder, replica_type)["spec"].get("affinity", {})
    return found


def preferred(**labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": JOB | labels}, "topologyKey": HOST}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def of_type(replica_type: str) -> dict[str, Any]:
    return preferred(**{names.LABEL_REPLICA_TYPE: replica_type})


@pytest.mark.parametrize("replica_type", ["Scheduler", "Server", "Worker"])
def test_nothing_is_added_without_it(replica_type: str) -> None:
    assert affinity(make_mxjob().gang(), replica_type) == {}


def test_workers_are_packed_and_servers_spread() -> None:
    builder = make_mxjob().gang().run_policy(placement="Pack")
    assert affinity(builder, "Worker") == {"podAffinity": of_type("worker")}
    assert affinity(builder, "Server") == {"podAntiAffinity": of_type("server")}
    assert affinity(builder, "Scheduler") == {}


@pytest.mark.parametrize("replica_type", ["Scheduler", "Server", "Worker"])
def test_exclusive_nodes_are_few_and_have_no_pods_of_other_jobs_of_any_namespace(replica_type: str) -> None:
    found = affinity(make_mxjob().gang().run_policy(placement="Exclusive"), replica_type)
    assert found["podAffinity"] == preferred()
    (term,) = found["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "labelSelector": {
            "matchExpressions": [
                {"key": names.LABEL_JOB_UID, "operator": "Exists"},
                {"key": names.LABEL_JOB_UID, "operator": "NotIn", "values": ["uid-of-digits"]},
            ]
        },
        "namespaceSelector": {},
        "topologyKey": HOST,
    }


def test_what_the_template_says_stays_and_comes_first() -> None:
    own = {"weight": 1, "podAffinityTerm": ZONES}
    spread = [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}]
    nodes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    templates = {
        "nodeAffinity": nodes,
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [ZONES],
            "preferredDuringSchedulingIgnoredDuringExecution": [own],
        },
    }
    builder = make_mxjob().gang().template("Worker", affinity=templates, topologySpreadConstraints=spread)
    spec = built_pod(builder.run_policy(placement="Pack"), "Worker")["spec"]
    ours = of_type("worker")["preferredDuringSchedulingIgnoredDuringExecution"]
    assert spec["topologySpreadConstraints"] == spread
    assert spec["affinity"] == {
        "nodeAffinity": nodes,
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [ZONES],
            "preferredDuringSchedulingIgnoredDuringExecution": [own, *ours],
        },
    }


@pytest.mark.parametrize(
    "malformed",
    ["pack", {"podAffinity": "x"}, {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": "x"}}],
)
def test_what_is_malformed_is_left_for_the_api_server_to_reject(malformed: Any) -> None:
    builder = make_mxjob().gang().template("Worker", affinity=malformed).run_policy(placement="Pack")
    assert affinity(builder, "Worker") == malformed


def test_another_word_is_rejected() -> None:
    manifest = make_mxjob().gang().run_policy(placement="Spread").manifest()
    assert validate(manifest)
    assert not validate(make_mxjob().gang().run_policy(placement="Pack").manifest())
    assert (
        decode(make_mxjob().gang().run_policy(placement="Exclusive").manifest()).spec.run_policy.placement
        == "Exclusive"
    )
