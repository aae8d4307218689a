"""What Helm makes of the chart: what kustomize makes of the overlays and components, and the values."""

import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml
from deployment import MANIFESTS, of_kind, one, rendered, with_components
from helm import CHART, helm, templated

pytestmark = [pytest.mark.exhaustive, pytest.mark.programs("helm", "kubectl")]

OF_HELM = {"helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"}
COMPONENTS = yaml.safe_load((CHART / "values.yaml").read_text())["components"]


@pytest.fixture(scope="module")
def standalone():
    return rendered("standalone")


def by_name(objects):
    """The objects without what only one of the two makes: Helm's labels, the Namespace and the CRDs."""
    found = {}
    for each in objects:
        metadata = each["metadata"]
        labels = {name: value for name, value in metadata.get("labels", {}).items() if name not in OF_HELM}
        if each["kind"] not in {"Namespace", "CustomResourceDefinition"}:
            key = (each["kind"], metadata.get("namespace"), metadata["name"])
            assert key not in found
            found[key] = {**each, "metadata": {**metadata, "labels": labels}}
    return found


def test_without_values_it_is_the_standalone_overlay(tmp_path, standalone):
    assert by_name(templated(tmp_path, {})) == by_name(standalone)


def test_its_crds_are_those_of_the_manifests(standalone):
    shown = helm("show", "crds", CHART)
    assert shown.returncode == 0, shown.stderr
    assert [*yaml.safe_load_all(shown.stdout)] == of_kind(standalone, "CustomResourceDefinition")


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_is_that_of_kustomize(tmp_path, component, standalone):
    here = by_name(templated(tmp_path, {"components": {component: True}}))
    assert here == by_name(with_components(tmp_path, component))
    assert here != by_name(standalone)


def test_each_component_of_kustomize_is_one_of_the_chart_or_said_not_to_be():
    assert {path.name for path in (MANIFESTS / "components").iterdir()} == {*COMPONENTS, "secure-metrics"}


def test_every_object_is_in_the_releases_namespace_and_says_what_made_it(tmp_path):
    objects = templated(tmp_path, {"components": dict.fromkeys(COMPONENTS, True)}, "--namespace=elsewhere")
    text = yaml.safe_dump_all(objects)
    assert "namespace: mxnet-operator" not in text
    assert {each["metadata"].get("namespace", "elsewhere") for each in objects} == {"elsewhere"}
    subjects = [
        subject for each in of_kind(objects, "RoleBinding", "ClusterRoleBinding") for subject in each["subjects"]
    ]
    assert {subject["namespace"] for subject in subjects} == {"elsewhere", "kueue-system"}
    assert all(each["metadata"]["labels"].keys() >= OF_HELM for each in objects)


def test_values_reach_the_deployment(tmp_path, standalone):
    values = {
        "image": {"repository": "registry.example/mx", "tag": "2", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull"}],
        "replicas": 3,
        "args": ["--gang-scheduling=none"],
        "resources": {"limits": {"memory": "1Gi"}},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
        "podLabels": {"team": "ml"},
        "podAnnotations": {"sidecar.istio.io/inject": "true", "note": "mine"},
    }
    deployment = one(templated(tmp_path, values), "Deployment")
    before = one(standalone, "Deployment")
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert deployment["spec"]["replicas"] == 3
    assert (container["image"], container["imagePullPolicy"]) == ("registry.example/mx:2", "Always")
    assert container["resources"] == {"limits": {"memory": "1Gi"}}
    flags = before["spec"]["template"]["spec"]["containers"][0]["args"]
    assert container["args"] == [*flags, "--gang-scheduling=none"]
    for field in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName"):
        assert template["spec"][field] == values[field]
    assert template["metadata"]["labels"] == {**before["spec"]["template"]["metadata"]["labels"], "team": "ml"}
    assert template["metadata"]["annotations"] == values["podAnnotations"]


def test_an_image_is_named_by_a_digest(tmp_path):
    digest = "sha256:" + 64 * "a"
    deployment = one(templated(tmp_path, {"image": {"tag": digest}}), "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"mxnet-operator@{digest}"


@pytest.mark.parametrize(
    ("set_", "words"),
    [
        ("replicas=two", "replicas"),
        ("replicas=-1", "replicas"),
        ("components.kueu=true", "kueu"),
        ("components.kueue=yes", "components.kueue"),
        ("image.pullPolicy=Sometimes", "image.pullPolicy"),
        ("image.repository=", "image.repository"),
        ("args={run}", "args.0"),
        ("replica=1", "replica"),
    ],
)
def test_a_value_that_is_none_is_refused_with_its_path(set_, words):
    done = helm("template", CHART, f"--set={set_}")
    assert done.returncode != 0
    assert words in done.stderr.replace("/", ".")


def test_it_is_sound_to_helms_own_checks_and_so_is_a_package_of_it(tmp_path, standalone):
    linted = helm("lint", "--strict", CHART)
    assert linted.returncode == 0, linted.stdout
    packed = helm("package", CHART, f"--destination={tmp_path}")
    assert packed.returncode == 0, packed.stderr
    (archive,) = tmp_path.glob("*.tgz")
    with tarfile.open(archive) as members:
        names = {member.name.partition("/")[2] for member in members}
    assert {"crds/crd.yaml", "files/base/rbac.yaml"} < names
    assert "files/base/crd.yaml" not in names
    shown = helm("template", "mxnet-operator", archive, "--namespace=mxnet-operator")
    assert by_name(yaml.safe_load_all(shown.stdout)) == by_name(standalone)


def test_its_versions_are_the_projects():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (project["version"].replace(".dev", "-dev"), project["version"])
