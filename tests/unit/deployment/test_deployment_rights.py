"""The page about security names the rights that the manifests grant, each with the component that it comes with."""

import re
from pathlib import Path

import pytest
import yaml
from audit import Right, granted
from deployment import MANIFESTS, of_kind, rendered, roles_of_controller, with_components

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
COMPONENTS = sorted(each.parent.name for each in (MANIFESTS / "components").glob("*/rbac.yaml"))


def rows(section: str) -> list[list[str]]:
    """The cells of the table of a section; an empty first cell is the one above it."""
    _, _, text = PAGE.read_text().partition(f"## {section}\n")
    found: list[list[str]] = []
    for line in text.partition("\n## ")[0].splitlines():
        if line.startswith("|"):
            cells = [each.strip() for each in line.strip("|").split("|")]
            found.append([cells[0] or found[-1][0], *cells[1:]])
    return found[2:]


def told() -> set[tuple[str, Right]]:
    """The rights in the table, each with the component that it comes with, or an empty text."""
    rights = set()
    for on, may, _ in rows("What it may do, and why"):
        component = re.search(r"\(with `components/([a-z-]+)` only\)", on)
        for part in re.sub(r"\(.*?\)", "", on).split(";"):
            resources, _, group = part.strip().partition(" of ")
            verbs = [each for each in re.findall(r"[a-z]+", re.sub(r"`.*?`", "", may)) if each in VERBS]
            rights |= {
                (component[1] if component else "", Right(group, resource.strip(), verb))
                for resource in resources.split(",")
                for verb in verbs
            }
    return rights


@pytest.mark.programs("kubectl")
def test_the_table_of_rights_is_what_the_manifests_grant(tmp_path: Path) -> None:
    base = granted(roles_of_controller(rendered("standalone")))
    given = {("", right) for right in base if right.group != "coordination.k8s.io"}
    for component in COMPONENTS:
        folder = tmp_path / component
        folder.mkdir()
        given |= {
            (component, right) for right in granted(roles_of_controller(with_components(folder, component))) - base
        }
    assert told() == given


@pytest.mark.programs("kubectl")
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_in_a_kustomization_of_one_namespace_binds_the_account_there(
    tmp_path: Path, component: str
) -> None:
    """By itself its file binds the account in the namespace `mxnet-operator`, as docs/install.md says."""
    alone = list(yaml.safe_load_all((MANIFESTS / "components" / component / "rbac.yaml").read_text()))
    within = with_components(tmp_path, component, overlay="namespaced", namespace="team-a")
    for objects, namespace in ((alone, "mxnet-operator"), (within, "team-a")):
        bindings = {each["metadata"]["name"]: each for each in of_kind(objects, "ClusterRoleBinding")}
        subjects = [subject for each in bindings.values() for subject in each["subjects"]]
        ours = [each["namespace"] for each in subjects if each["name"] == "mxnet-operator"]
        assert ours == [namespace]


@pytest.mark.programs("kubectl")
def test_the_legacy_overlay_lacks_the_rights_that_the_page_says() -> None:
    rights = granted(roles_of_controller(rendered("legacy")))
    ours = {(each.resource, each.verb) for each in rights if each.group == "kubeflow.org" and "mxjobs" in each.resource}
    for group in ("fioravanzo.org", "mxnet.mlkube.io"):
        theirs = {(each.resource, each.verb) for each in rights if each.group == group}
        assert ours - theirs == {("mxjobs", "patch"), ("mxjobs", "delete")}
    words = re.search(r"With the overlay `legacy`, the same but (.*?) on the mxjobs", PAGE.read_text())
    assert words is not None
    assert words[1] == "`patch` and `delete`"
