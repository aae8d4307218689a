"""Metrics for those only whom RBAC lets get them, asked with tokens of a real API server."""

import asyncio
import ssl

import aiohttp
import pytest
import trustme
from audit import Right, granted, requests_of
from control_plane_fixtures import new_namespace
from controller_fixtures import running_program
from deployment import of_kind, one, roles_of_controller, token_of, user_name, with_components
from waiting import SECONDS

pytestmark = pytest.mark.kubernetes

RBAC = "/apis/rbac.authorization.k8s.io/v1"
READER = "mxnet-operator-metrics-reader"
REVIEWS = {
    Right("authentication.k8s.io", "tokenreviews", "create"),
    Right("authorization.k8s.io", "subjectaccessreviews", "create"),
}


def account(name, namespace):
    return [{"kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}]


class Installation:
    """The objects of an overlay with the component, and the controller that runs with their rights."""

    def __init__(self, api, objects, url, trust):
        self.api, self.objects, self.url, self.trust = api, objects, url, trust

    async def scrape(self, token=None, scheme="Bearer"):
        headers = {} if token is None else {"Authorization": f"{scheme} {token}"}
        connector = aiohttp.TCPConnector(ssl=self.trust)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            answer = await session.get(self.url)
            return answer.status, await answer.text()

    async def grant(self, name, namespace):
        """A binding of the reader's role, as docs/operate.md has it."""
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
        body = {"metadata": {"name": f"{namespace}-{name}"}, "roleRef": role, "subjects": [subject]}
        (await self.api.post(f"{RBAC}/clusterrolebindings", body)).ok()


@pytest.fixture
async def installation(kubernetes, api, tmp_path):
    """The controller at work in one namespace, with the rights of the overlay and the component."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    (tmp_path / "tls.crt").write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    (tmp_path / "tls.key").write_bytes(issued.private_key_pem.bytes())
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    async with new_namespace(api, settled=True) as namespace:
        folder = tmp_path / "overlay"
        folder.mkdir()
        objects = with_components(folder, "secure-metrics", overlay="namespaced", namespace=namespace)
        made = [o for o in objects if o["kind"] in PATHS]
        for each in made:
            (await api.post(path_of(each), each)).ok()
        token = token_of(kubernetes, objects)
        kubeconfig = kubernetes.kubeconfig(f"metrics-{namespace}", token)
        options = ("--namespace", namespace, "--no-leader-elect", "--metrics-cert-path", str(tmp_path))
        async with running_program(kubeconfig, *options) as program:
            url = (await program.says("metrics at")).split()[-1]
            yield Installation(api, objects, url, trust)
        for each in of_kind(made, "ClusterRole", "ClusterRoleBinding"):
            await api.delete(f"{path_of(each)}/{each['metadata']['name']}")


PATHS = {
    "ServiceAccount": "/api/v1",
    "Role": RBAC,
    "RoleBinding": RBAC,
    "ClusterRole": RBAC,
    "ClusterRoleBinding": RBAC,
}


def path_of(manifest):
    kind, namespace = manifest["kind"], manifest["metadata"].get("namespace")
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{PATHS[kind]}{within}/{kind.lower()}s"


async def test_who_may_get_metrics_gets_them_and_nobody_else_does(kubernetes, installation):
    api, namespace = installation.api, one(installation.objects, "ServiceAccount")["metadata"]["namespace"]
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    for name in ("prometheus", "curious", "gone"):
        (await api.post(accounts, {"metadata": {"name": name}})).ok()
    tokens = {name: token_of(kubernetes, account(name, namespace)) for name in ("prometheus", "curious", "gone")}
    for_another = {"audiences": ["https://elsewhere.example"], "expirationSeconds": 600}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": for_another}
    elsewhere = (await api.post(f"{accounts}/prometheus/token", request)).ok()["status"]["token"]
    for name in ("prometheus", "gone"):
        await installation.grant(name, namespace)
    (await api.delete(f"{accounts}/gone")).ok()

    async with asyncio.timeout(SECONDS):
        while (scraped := await installation.scrape(tokens["prometheus"]))[0] == 503:
            pass  # until the API server lets the controller ask it
    code, text = scraped
    assert (code, "workqueue_depth" in text) == (200, True)
    header, payload, signature = tokens["prometheus"].split(".")
    refused = {
        "no token": (None, 401),
        "no token of the cluster": ("nonsense", 401),
        "a signature that was changed": (f"{header}.{payload}.{signature[::-1]}", 401),
        "a token for another audience": (elsewhere, 401),
        "an account that is gone": (tokens["gone"], 401),
        "an account without the right": (tokens["curious"], 403),
        "the controller itself": (token_of(kubernetes, installation.objects), 403),
    }
    for who, (token, expected) in refused.items():
        code, text = await installation.scrape(token)
        assert (who, code, "workqueue_depth" in text) == (who, expected, False)
    assert (await installation.scrape(tokens["prometheus"], scheme="Basic"))[0] == 401
    asked = {each.right for each in requests_of(kubernetes, user_name(installation.objects))}
    assert asked >= REVIEWS == granted(roles_of_controller(installation.objects)) & REVIEWS
