"""API discovery: whether a server serves a resource; every authenticated user may ask."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from mxnet_operator.kube.answers import ApiResources
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import Resource

_ABSENCES: Final = 2
"""Answers in a row that what was served no longer is before that is believed: a server that begins says so of CRDs."""

log = logging.getLogger(__name__)


async def is_served(client: Client, resource: Resource) -> bool:
    """Whether the server has this resource in this version.

    Raises:
        KubeError: discovery fails.
    """
    try:
        path = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
        found = await client.get(path, shape=ApiResources)
    except ApiError as error:
        if error.code != 404:
            raise
        return False
    return any(each["name"] == resource.plural for each in found["resources"])


async def until_gone(served: Callable[[], Awaitable[bool]], interval: float) -> None:
    """Ask `served` every `interval` seconds until what was served is no longer; an error is no answer."""
    absences = 0
    while absences < _ABSENCES:
        await asyncio.sleep(interval)
        try:
            absences = 0 if await served() else absences + 1
        except KubeError as error:
            log.debug("whether it is still served: %s", error)
