"""PersistentVolumeClaims that a job mounts and its namespace lacks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mxnet_operator.api.manifest_text import dump_all
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.running.local_files import claim_folder, is_local
from mxnet_operator.client.jobs import in_v1_words
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.resources import PERSISTENT_VOLUME_CLAIMS
from mxnet_operator.readers.volumes import claims_needed

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

Object = dict[str, Any]


async def missing_claims(client: "Client", job: Object, namespace: str, objects: Sequence[Object]) -> list[Object]:
    """Return the claims to create for `job` on the local cluster; on another, print them for the user to create.

    `objects` are created before the job. On other clusters a claim that this user may not read counts as present.

    Raises:
        ApiError, ApiUnavailable: a request to the local cluster fails.
    """
    local = is_local(client.server)
    given = {each["metadata"]["name"] for each in objects if each["kind"] == "PersistentVolumeClaim"}
    missing = []
    for name in sorted(_mounted(job) - given):
        try:
            if await client.find(PERSISTENT_VOLUME_CLAIMS.path(namespace, name)) is None:
                missing.append(_claim(name))
        except ApiError:
            if local:
                raise
    for each in missing:
        name = each["metadata"]["name"]
        if local:
            say(f"there is no PersistentVolumeClaim {name} yet; its folder is {claim_folder(namespace, name)}")
        else:
            say(f"there is no PersistentVolumeClaim {name}, and the job waits for it; to create it:")
            say(f"kubectl apply -n {namespace} -f - <<'EOF'\n{dump_all([each])}EOF")
    return missing if local else []


def _mounted(job: Object) -> set[str]:
    replica_specs = in_v1_words(job)["spec"].get("mxReplicaSpecs") or {}
    return {name for each in replica_specs.values() for name in claims_needed(each["template"]["spec"])}


def _claim(name: str) -> Object:
    """Return a claim that the pods of a job can share, on whichever nodes they run."""
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "10Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
