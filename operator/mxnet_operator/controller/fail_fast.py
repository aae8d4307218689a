"""Provisioning of the fail-fast hook's ConfigMap in a namespace, before the first pod that mounts it."""

from typing import Any, Final

from mxnet_operator.builders.fail_fast import CONFIG_MAP, DATA, config_map
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.resources import CONFIGMAPS
from mxnet_operator.plan.rejection import is_by_admission

_NO_REJECTION: Final = frozenset({401, 404, 409})
"""Answers, besides the transient ones, that say nothing of the ConfigMap: credentials, a namespace that is going."""


async def provide_hook(client: Client, namespace: str) -> str:
    """Create the ConfigMap if it is missing; return why it can't be created, empty if it exists.

    A job also runs without the hook, only worse; so a quota, a missing right or an admission policy is reported and
    stops nothing.

    Raises:
        KubeError: the server may answer otherwise a little later.
    """
    try:
        found = await client.get(CONFIGMAPS.path(namespace, CONFIG_MAP))
    except ApiError as error:
        if error.code == 404:
            return await _create(client, namespace, readable=True)
        if error.code == 403:
            return await _create(client, namespace, readable=False)
        raise
    return _problem(found)


async def _create(client: Client, namespace: str, *, readable: bool) -> str:
    """Create the ConfigMap; one that exists is trusted where it can't be read.

    The Role of another release names another ConfigMap to read, while its right to create holds for all. Of one that
    exists its name is the hash of the content, it is immutable, and an admission policy guards it.
    """
    try:
        await client.create(CONFIGMAPS.path(namespace), config_map(namespace))
    except ApiError as error:
        if (error.code, error.reason) == (409, "AlreadyExists"):  # Another controller, or another job's reconciliation.
            return _problem(await client.get(CONFIGMAPS.path(namespace, CONFIG_MAP))) if readable else ""
        if _is_rejected(error):
            return error.message
        raise
    return ""


def _problem(found: dict[str, Any]) -> str:
    if found.get("data") == DATA:
        return ""
    return f'configmaps "{CONFIG_MAP}" has other content than this release\'s: delete it'


def _is_rejected(error: ApiError) -> bool:
    """Return whether the server, and no proxy in its place, rejects the ConfigMap, with whatever code."""
    if error.is_transient or error.code in _NO_REJECTION:
        return False
    return bool(error.reason) or is_by_admission(error.message)
