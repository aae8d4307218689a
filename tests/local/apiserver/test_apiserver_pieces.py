"""The small grammars of the API server, as tables: strategic merge, ages, cells, and the list of types."""

import json
import runpy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mxnet_operator.api import builtin_types as checked_in
from mxnet_operator.api.strategic_merge import strategic_merge
from mxnet_operator.local.apiserver.requests import find_target
from mxnet_operator.local.apiserver.resources import PODS, Catalog
from mxnet_operator.local.apiserver.tables import age, table, wants_table

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


def test_an_age_is_that_of_a_timestamp():
    assert age((NOW - timedelta(hours=3, minutes=1)).isoformat(), NOW) == "3h1m"
    assert age(None, NOW) == "<unknown>"


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
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, False, "Init:0/1"),
    ],
)
def test_a_pod_shows_why_it_is_where_it_is(status, deleting, shown):
    metadata = {"name": "p", **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})}
    pod = {"metadata": metadata, "spec": {"containers": [{}], "initContainers": [{}]}, "status": status}
    row = table(PODS, [pod], NOW, {})["rows"][0]
    assert row["cells"][2] == shown


def test_a_table_is_made_for_who_asks_first_for_one():
    tables = "application/json;as=Table;v=v1;g=meta.k8s.io"
    of_metadata = tables.replace("Table", "PartialObjectMetadataList")
    for accept in (f"{tables},application/json", "application/json; as=Table; v=v1; g=meta.k8s.io, */*"):
        assert wants_table({"Accept": accept})
    for headers in ({}, {"Accept": f"application/json,{tables}"}, {"Accept": f"{of_metadata},application/json"}):
        assert not wants_table(headers)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api/v1/pods", ("pods", "", "", "")),
        ("/api/v1/namespaces", ("namespaces", "", "", "")),
        ("/api/v1/namespaces/a", ("namespaces", "", "a", "")),
        ("/api/v1/namespaces/a/status", ("namespaces", "", "a", "status")),
        ("/api/v1/namespaces/a/pods/b/log", ("pods", "a", "b", "log")),
        ("/api/v1/namespaces/status/pods", ("pods", "status", "", "")),
        ("/apis/coordination.k8s.io/v1/namespaces/a/leases/b", ("leases", "a", "b", "")),
        ("/api/v1/pods/b", None),
        ("/api/v1/namespaces/a/nodes/b", None),
        ("/api/v1/namespaces/a/pods/b/c/d", None),
        ("/apis", None),
        ("/", None),
    ],
)
def test_a_path_means_a_resource(path, found):
    target = find_target(Catalog([]), path)
    actual = target and (target.resource.plural, target.namespace, target.name, target.subresource)
    assert actual == found


def test_the_built_in_types_are_those_of_the_official_client():
    made = runpy.run_path(str(TOOL))["builtin_types"]()
    known, needed = checked_in.types(), checked_in.required()
    for name, fields in made.items():
        stored = {field: word + "!" * (field in needed.get(name, ())) for field, word in known.get(name, {}).items()}
        missing = fields.items() - stored.items()
        assert not missing, f"{name} lacks {json.dumps(dict(missing))}: run make generate"
