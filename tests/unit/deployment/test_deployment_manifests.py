"""What kubectl makes of the overlays."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from audit import Right, granted
from builders import make_mxjob
from deployment import MANIFESTS, OVERLAYS, POLICIES, of_kind, one, rendered, roles_of_controller, with_components

from mxnet_operator.api.crd import definitions, legacy_definitions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.formats.mxnetjob import KIND as MXNETJOB
from mxnet_operator.api.kinds import ALL, LEGACY, MXJOB
from mxnet_operator.builders.fail_fast import CONFIG_MAP
from mxnet_operator.builders.pods import build_pod
from mxnet_operator.integrations.gangs import backends_of

ROOT = Path(__file__).parents[3]


CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "Namespace",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


@pytest.fixture(scope="module", params=OVERLAYS)
def objects(request):
    return rendered(request.param)


@pytest.fixture(scope="module")
def standalone():
    return rendered("standalone")


def pod_spec(objects):
    return one(objects, "Deployment")["spec"]["template"]["spec"]


def test_all_that_refers_to_the_controllers_account_means_the_one_that_is_installed(objects):
    account = one(objects, "ServiceAccount")["metadata"]
    subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    assert pod_spec(objects)["serviceAccountName"] == account["name"]
    bindings = of_kind(objects, "RoleBinding", "ClusterRoleBinding")
    assert {tuple(sorted(one.items())) for each in bindings for one in each["subjects"]} == {
        tuple(sorted(subject.items()))
    }
    namespaces = {each["metadata"].get("namespace") for each in objects if each["kind"] not in CLUSTER_WIDE}
    assert namespaces == {account["namespace"]}


def test_the_container_runs_as_nobody_with_a_read_only_root_and_no_capabilities(objects):
    pod = pod_spec(objects)
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_of_all_config_maps_the_controller_may_read_the_one_that_this_release_makes(objects):
    rules = [rule for role in roles_of_controller(objects) for rule in role["rules"]]
    named = [
        rule.get("resourceNames") for rule in rules if "configmaps" in rule["resources"] and "get" in rule["verbs"]
    ]
    assert named == [[CONFIG_MAP]], "the hook has changed: write its ConfigMap's new name into base/rbac.yaml"


def test_probes_metrics_and_arguments_name_the_same_ports(objects):
    (container,) = pod_spec(objects)["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"--metrics-bind-address=:{ports['metrics']}" in container["args"]
    assert f"--health-probe-bind-address=:{ports['health']}" in container["args"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
    service = one(objects, "Service")
    assert [port["targetPort"] for port in service["spec"]["ports"]] == ["metrics"]
    assert (
        service["spec"]["selector"].items()
        <= one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    )


def test_requests_and_limits_are_set(objects):
    (container,) = pod_spec(objects)["containers"]
    assert {name: set(amounts) for name, amounts in container["resources"].items()} == {
        "requests": {"cpu", "memory"},
        "limits": {"cpu", "memory"},
    }


def test_the_namespaced_overlay_has_nothing_of_the_clusters():
    assert of_kind(rendered("namespaced"), *CLUSTER_WIDE) == []


def test_each_kustomization_of_the_page_renders_in_a_fresh_folder_with_the_readers_image(tmp_path):
    page = (ROOT / "docs" / "install.md").read_text()
    blocks = re.findall(r"^```yaml\n# kustomization\.yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = block.replace("- mxnet-operator/operator/", f"- {os.path.relpath(ROOT, folder)}/operator/")
        (folder / "kustomization.yaml").write_text(text)
        (container,) = pod_spec(rendered(folder))["containers"]
        assert container["image"] == "REGISTRY/mxnet-operator:0.2.0.dev0-COMMIT"


def test_an_overlay_over_the_namespaced_one_can_choose_another_namespace(tmp_path):
    below = os.path.relpath(MANIFESTS / "overlays" / "namespaced", tmp_path)
    (tmp_path / "kustomization.yaml").write_text(f"namespace: team-a\nresources: [{below}]\n")
    objects = rendered(tmp_path)
    assert {each["metadata"]["namespace"] for each in objects} == {"team-a"}
    assert {each["namespace"] for binding in of_kind(objects, "RoleBinding") for each in binding["subjects"]} == {
        "team-a"
    }


def test_both_overlays_grant_the_controller_the_same_rights_but_for_nodes_which_are_in_no_namespace():
    cluster_wide, namespaced = (granted(roles_of_controller(rendered(overlay))) for overlay in OVERLAYS)
    assert cluster_wide - namespaced == {Right("", "nodes", "get")}
    assert namespaced <= cluster_wide


def test_the_namespaced_controller_looks_at_its_own_namespace_only():
    (container,) = pod_spec(rendered("namespaced"))["containers"]
    assert "--namespace=$(POD_NAMESPACE)" in container["args"]
    (variable,) = container["env"]
    assert (variable["name"], variable["valueFrom"]) == (
        "POD_NAMESPACE",
        {"fieldRef": {"fieldPath": "metadata.namespace"}},
    )


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [("standalone", definitions()), ("legacy", definitions() + legacy_definitions()), ("namespaced", [])],
)
def test_an_overlay_installs_the_crds_as_the_code_defines_them(overlay, expected):
    def by_name(crds):
        return sorted(crds, key=lambda crd: crd["metadata"]["name"])

    assert by_name(of_kind(rendered(overlay), "CustomResourceDefinition")) == by_name(expected)


def test_the_legacy_overlay_is_the_standalone_one_with_further_kinds_and_the_same_rights_on_them():
    standalone, legacy = rendered("standalone"), rendered("legacy")
    kinds = ("ClusterRole", "CustomResourceDefinition", "ValidatingAdmissionPolicy")
    assert [each for each in standalone if each["kind"] not in kinds] == [
        each for each in legacy if each["kind"] not in kinds
    ]
    for name in ("mxnet-operator", "mxjob-editor", "mxjob-viewer"):
        before, after = (
            granted(r for r in of_kind(objects, "ClusterRole") if r["metadata"]["name"] == name)
            for objects in (standalone, legacy)
        )
        older = {Right("kubeflow.org", *rest) for rest in {(r.resource, r.verb) for r in after - before}}
        assert {right.group for right in after - before} == {kind.group for kind in LEGACY}
        assert older <= before  # nothing that they don't have on MXJobs


def test_no_rule_is_for_everything(objects):
    assert "*" not in json.dumps([role["rules"] for role in of_kind(objects, "Role", "ClusterRole")])


def test_each_file_of_the_base_is_in_its_kustomization():
    names = yaml.safe_load((MANIFESTS / "base" / "kustomization.yaml").read_text())["resources"]
    assert names == ["crd.yaml", "rbac.yaml", "admission.yaml", "deployment.yaml"]


@pytest.mark.parametrize(("overlay", "kinds"), [("standalone", (MXJOB, MXNETJOB)), ("legacy", ALL)])
def test_the_policies_know_the_kinds_of_job_that_an_overlay_installs(overlay, kinds):
    policies = of_kind(rendered(overlay), "ValidatingAdmissionPolicy")
    variables = {v["name"]: v["expression"] for policy in policies for v in policy["spec"].get("variables", ())}
    assert yaml.safe_load(variables["kinds"]) == [f"{kind.group}/{kind.kind}" for kind in kinds]


def test_the_policies_bind_the_account_and_each_is_bound(standalone):
    account = one(standalone, "ServiceAccount")["metadata"]["name"]
    policies = of_kind(standalone, "ValidatingAdmissionPolicy")
    assert {policy["metadata"]["name"] for policy in policies} == set(POLICIES)
    for policy in policies:
        (condition,) = policy["spec"]["matchConditions"]
        assert condition["expression"] == (
            f"request.userInfo.username.matches('^system:serviceaccount:[^:]+:{account}$')"
        )
        assert policy["spec"]["failurePolicy"] == "Fail"
    bindings = of_kind(standalone, "ValidatingAdmissionPolicyBinding")
    assert {each["spec"]["policyName"] for each in bindings} == set(POLICIES)
    assert all(each["spec"]["validationActions"] == ["Deny"] for each in bindings)


def test_a_policy_covers_every_kind_of_child_that_the_controller_may_write(standalone):
    """Events and its own Lease are no children: nothing is run by them."""
    policies = of_kind(standalone, "ValidatingAdmissionPolicy")
    rules = [rule for policy in policies for rule in policy["spec"]["matchConstraints"]["resourceRules"]]
    covered = {resource for rule in rules for resource in rule["resources"]}
    writes = {
        right.resource
        for right in granted(roles_of_controller(standalone))
        if right.group == "" and right.verb not in {"get", "list", "watch"}
    }
    assert writes - {"events"} <= covered


def test_of_the_two_controllers_a_drain_takes_one_at_a_time_and_a_single_one_is_not_held_back(objects):
    budget = one(objects, "PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert budget["selector"] == one(objects, "Deployment")["spec"]["selector"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_network_policy_lets_probes_and_metrics_in_and_only_the_api_server_out(overlay, tmp_path):
    objects = with_components(tmp_path, "network-policy", overlay=overlay, namespace="team-a")
    policy = one(objects, "NetworkPolicy")
    deployment = one(objects, "Deployment")
    assert policy["metadata"]["namespace"] == deployment["metadata"]["namespace"] == "team-a"
    assert policy["spec"]["podSelector"] == deployment["spec"]["selector"]
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    (container,) = pod_spec(objects)["containers"]
    allowed = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    assert allowed == {port["name"] for port in container["ports"]}
    (egress,) = policy["spec"]["egress"]
    assert {443, 6443} <= {port["port"] for port in egress["ports"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_secure_metrics_are_served_with_the_mounted_certificate_on_the_port_that_the_service_names(overlay, tmp_path):
    objects = with_components(tmp_path, "secure-metrics", "network-policy", overlay=overlay, namespace="team-a")
    pod = pod_spec(objects)
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"--metrics-bind-address=:{ports['metrics']}" in container["args"]
    (mount,) = container["volumeMounts"]
    assert f"--metrics-cert-path={mount['mountPath']}" in container["args"]
    (volume,) = pod["volumes"]
    assert (volume["name"], volume["secret"]["secretName"]) == (mount["name"], "mxnet-operator-metrics-tls")
    service = one(objects, "Service")
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (ports["metrics"], "metrics")
    annotations = service["metadata"]["annotations"]
    assert (annotations["prometheus.io/port"], annotations["prometheus.io/scheme"]) == (str(port["port"]), "https")
    account = one(objects, "ServiceAccount")["metadata"]
    bound = next(b for b in of_kind(objects, "ClusterRoleBinding") if b["metadata"]["name"].endswith("metrics-auth"))
    assert [(each["name"], each["namespace"]) for each in bound["subjects"]] == [(account["name"], "team-a")]


@pytest.mark.parametrize(("component", "flags"), [("coscheduling", []), ("volcano", ["--gang-scheduling=volcano"])])
def test_a_gang_schedulers_component_gives_the_rights_on_its_groups_and_chooses_it_where_auto_does_not(
    component, flags, tmp_path
):
    objects = with_components(tmp_path, component, namespace="team-a")
    (backend,) = backends_of(component)
    roles = [role for role in roles_of_controller(objects) if role["metadata"]["name"].endswith(component)]
    resources = {(right.group, right.resource) for right in granted(roles)}
    assert resources == {(each.group, each.plural) for each in backend.resources}
    changes = {"patch"} if backend.rule.touch is not None else set()
    assert {right.verb for right in granted(roles)} == {"get", "list", "watch", "create", "delete", *changes}
    (container,) = pod_spec(objects)["containers"]
    assert [each for each in container["args"] if each.startswith("--gang")] == flags


def test_the_example_for_jobs_selects_the_pods_that_the_controller_makes():
    policy = yaml.safe_load((ROOT / "examples" / "network-policy" / "jobs.yaml").read_text())["spec"]
    job = make_mxjob("digits").worker(1).obj()
    labels = build_pod(with_defaults(job), "Worker", 0, 0)["metadata"]["labels"]
    selectors = [policy["podSelector"], policy["ingress"][0]["from"][0]["podSelector"]]
    assert all(each["matchLabels"].items() <= labels.items() for each in selectors)
