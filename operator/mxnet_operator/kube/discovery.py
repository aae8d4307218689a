"""API discovery: whether a server serves a resource; every authenticated user may ask."""

from mxnet_operator.kube.answers import ApiResources
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.resources import Resource


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
