"""Provisioning of the fail-fast hook's ConfigMap in a namespace, before the first pod that mounts it."""

from mxnet_operator.child_objects.fail_fast import CONFIG_MAP, DATA, config_map
from mxnet_operator.kube.client import ApiError, Client
from mxnet_operator.kube.resources import CONFIGMAPS


async def provide_hook(client: Client, namespace: str) -> str:
    """Create the ConfigMap if it is missing; return why it can't be created, empty if it exists.

    A job also runs without the hook, only worse; so a quota or a missing right is reported and stops nothing.

    Raises:
        KubeError: the server may answer otherwise a little later.
    """
    try:
        found = await client.get(CONFIGMAPS.path(namespace, CONFIG_MAP))
    except ApiError as error:
        if error.code == 404:
            return await _create(client, namespace)
        if error.code == 403:
            return error.message
        raise
    if found.get("data") == DATA:
        return ""
    return f'configmaps "{CONFIG_MAP}" has other content than this release\'s: delete it'


async def _create(client: Client, namespace: str) -> str:
    try:
        await client.create(CONFIGMAPS.path(namespace), config_map(namespace))
    except ApiError as error:
        if error.code == 403:
            return error.message
        raise
    return ""
