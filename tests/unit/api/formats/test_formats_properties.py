"""Of generated jobs of every format: what is converted means the same, and no status is lost in a format's words.

Hypothesis prints the example that fails, and a blob by which it is found again (`@reproduce_failure`).
"""

import copy

import msgspec
import pytest
from builders import NOW
from format_strategies import JOBS, statuses
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mxnet_operator.api import job_formats
from mxnet_operator.api.conversion import convert
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.formats import FORMATS
from mxnet_operator.api.validation import decode, unknown_fields, validate
from mxnet_operator.builders.pods import build_pod
from mxnet_operator.plan import Observed, plan

thorough = settings(max_examples=25, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
every_format = pytest.mark.parametrize("name", JOBS)


def planned(manifest, metadata):
    """What is done first for a manifest that was stored with this metadata: actions, events, and the pods built."""
    job = decode(job_formats.to_v1({**manifest, "metadata": metadata}))
    first = plan(job, Observed((), ()), NOW)
    pods = [
        build_pod(with_defaults(job), action.type, action.index, action.attempt)
        for action in first.actions
        if hasattr(action, "attempt")
    ]
    return first, pods


@every_format
@thorough
@given(data=st.data())
def test_a_job_is_valid_in_its_format_and_in_v1(name, data):
    manifest = data.draw(JOBS[name])
    assert job_formats.errors(manifest) == []
    assert unknown_fields(manifest) == []
    meant = job_formats.to_v1(manifest)
    assert validate(meant) == []
    assert unknown_fields(meant) == []


@every_format
@thorough
@given(data=st.data())
def test_a_format_is_known_again_when_the_server_gives_it_back_in_the_stored_version(name, data):
    manifest = data.draw(JOBS[name])
    job_format = job_formats.format_of(manifest)
    assert job_format.name == name or (
        name == "flat-v1" and job_format.name in {"v1", "v1beta1"}
    )  # written with few fields
    back = {**manifest, "apiVersion": job_format.kind.api_version}
    if job_format.name == "v1beta1":  # its definition's default
        back["spec"] = {"cleanPodPolicy": "All", **manifest["spec"]}
    assert job_formats.format_of(back) is job_format
    assert decode(job_formats.to_v1(back)) == decode(job_formats.to_v1(manifest))


@every_format
@thorough
@given(data=st.data())
def test_what_is_converted_plans_the_same_pods(name, data):
    manifest = data.draw(JOBS[name])
    conversion = convert(manifest)
    converted = manifest if conversion is None else conversion.manifest
    assert planned(converted, manifest["metadata"]) == planned(manifest, manifest["metadata"])


@every_format
@thorough
@given(data=st.data())
def test_converting_twice_changes_nothing_and_converting_changes_no_input(name, data):
    manifest = data.draw(JOBS[name])
    written = copy.deepcopy(manifest)
    conversion = convert(manifest)
    meant = job_formats.to_v1(manifest)
    assert manifest == written
    assert job_formats.to_v1(meant) == meant
    if conversion is not None:
        assert convert(conversion.manifest) is None
        assert job_formats.to_v1(conversion.manifest) == conversion.manifest


@every_format
@thorough
@given(data=st.data())
def test_every_remark_names_a_field_of_what_was_converted(name, data):
    conversion = convert(data.draw(JOBS[name]))
    for remark in conversion.remarks if conversion else ():
        node = conversion.manifest
        for key in remark.path:
            node = node[int(key)] if isinstance(node, list) else node[key]


@pytest.mark.parametrize("job_format", FORMATS, ids=lambda job_format: job_format.name)
@thorough
@given(status=statuses(), pods_left=st.booleans())
def test_a_status_comes_back_as_it_was_written(job_format, status, pods_left):
    wire = job_formats.status_to_wire(job_format, {"metadata": {"uid": "7f3a"}}, status, pods_left=pods_left)
    stored = msgspec.json.decode(msgspec.json.encode(wire))
    assert job_formats.status_from_wire(job_format, stored) == status
