"""The small grammars of the API server, as tables: strategic merge, ages, cells, and the list of types."""

import json
import runpy
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mxnet_operator.api import builtin_types as checked_in
from mxnet_operator.api.strategic_merge import strategic_merge
from mxnet_operator.local.apiserver import resources
from mxnet_operator.local.apiserver.tables import table

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOOL = Path(__file__).parents[3] / "tools" / "builtin_types.py"


@pytest.mark.parametrize(
    ("old", "patch", "new"),
    [
        ({"env": [{"name": "a", "value": "1"}]}, {"env": [{"name": "b"}]}, "a=1 b"),
        ({"env": [{"name": "a", "value": "1"}]}, {"env": [{"name": "a", "value": "2"}]}, "a=2"),
        ({"env": [{"name": "a"}, {"name": "b"}]}, {"env": [{"name": "a", "$patch": "delete"}]}, "b"),
        ({"env": [{"name": "a"}]}, {"env": [{"$patch": "replace"}, {"name": "b"}]}, "b"),
        ({"env": [{"name": "a"}]}, {"env": None}, ""),
        (
            {"env": [{"name": "a"}, {"name": "b"}]},
            {"$setElementOrder/env": [{"name": "c"}, {"name": "b"}, {"name": "a"}], "env": [{"name": "c"}]},
            "c b a",
        ),
    ],
)
def test_lists_of_named_things_merge_by_name(old, patch, new):
    merged = strategic_merge(old, patch).get("env", [])
    assert " ".join(f"{e['name']}={e['value']}" if "value" in e else e["name"] for e in merged) == new


def test_other_lists_and_directives_of_a_strategic_merge():
    old = {"args": ["a"], "finalizers": ["x"], "selector": {"a": "1", "b": "2"}, "spec": {"type": "A", "a": 1}}
    assert strategic_merge(old, {"args": ["b"]})["args"] == ["b"]
    assert strategic_merge(old, {"finalizers": ["y"]})["finalizers"] == ["x", "y"]
    assert strategic_merge(old, {"$deleteFromPrimitiveList/finalizers": ["x"]})["finalizers"] == []
    assert strategic_merge(old, {"selector": {"$patch": "replace", "c": "3"}})["selector"] == {"c": "3"}
    assert strategic_merge(old, {"spec": {"$retainKeys": ["type"], "type": "B"}})["spec"] == {"type": "B"}
    ports = {"ports": [{"port": 1, "name": "a"}]}
    assert strategic_merge(ports, {"ports": [{"port": 1, "name": "b"}]}) == {"ports": [{"port": 1, "name": "b"}]}


@pytest.mark.parametrize(
    ("status", "deleting", "shown"),
    [
        ({"phase": "Pending"}, False, "Pending"),
        ({"phase": "Running"}, True, "Terminating"),
        ({"phase": "Failed", "reason": "Evicted"}, False, "Evicted"),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]},
            False,
            "ErrImagePull",
        ),
        (
            {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}]},
            False,
            "Completed",
        ),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, False, "ExitCode:3"),
        ({"initContainerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, False, "Init:ExitCode:3"),
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, False, "Init:0/1"),
    ],
)
def test_a_pod_shows_why_it_is_where_it_is(status, deleting, shown):
    metadata = {"name": "p", **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})}
    pod = {"metadata": metadata, "spec": {"containers": [{}], "initContainers": [{}]}, "status": status}
    row = table(resources.PODS, [pod], NOW, {})["rows"][0]
    assert row["cells"][2] == shown


ENDED = {"ready": False, "restartCount": 2, "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}
CLAIM = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
SHOWN = (
    (resources.PODS, {"spec": {"containers": [{}]}, "status": {"containerStatuses": [ENDED]}}, "0/1 Error 2"),
    (
        resources.SERVICES,
        {"spec": {"type": "ClusterIP", "ports": [{"port": 9091}]}},
        "ClusterIP <none> 9091/TCP",
    ),
    (resources.NODES, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Ready"),
    (resources.NODES, {"spec": {"unschedulable": True}}, "Unknown,SchedulingDisabled"),
    (resources.CONFIG_MAPS, {"data": {"a": "1"}, "binaryData": {"b": ""}}, "2"),
    (resources.CONFIG_MAPS, {}, "0"),
    (resources.PERSISTENT_VOLUME_CLAIMS, CLAIM, "Bound 1Gi"),
    (resources.PERSISTENT_VOLUME_CLAIMS, {"status": {"phase": "Pending"}}, "Pending  "),
    (resources.PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "a", "deletionTimestamp": "t"}}, "Terminating"),
    (resources.EVENTS, {"involvedObject": {"kind": "MXJob", "name": "j"}, "message": "a\n b"}, "<none> mxjob/j a b"),
)
"""Objects, and how their cells after the first begin."""


def test_objects_are_shown_as_kubectl_shows_them():
    for resource, obj, shown in SHOWN:
        cells = table(resource, [{"metadata": {"name": "a"}, **obj}], NOW, {})["rows"][0]["cells"]
        assert " ".join(map(str, cells[2 if resource is resources.EVENTS else 1 :])).startswith(shown), cells


def test_the_built_in_types_are_those_of_the_official_client():
    made = runpy.run_path(str(TOOL))["builtin_types"]()
    known, needed = checked_in.types(), checked_in.required()
    for name, fields in made.items():
        stored = {field: word + "!" * (field in needed.get(name, ())) for field, word in known.get(name, {}).items()}
        missing = fields.items() - stored.items()
        assert not missing, f"{name} lacks {json.dumps(dict(missing))}: run make generate"
